"""A check's command is extended so that its runner reports each test."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.models.verification import ProjectCheck
from resolver.verification.checks import complete_check
from resolver.verification.runners import instrument, runner_of
from tests.verification.scripted import tree_of

OUT = "/out"
ADDOPTS = (
    "--junitxml=/out/report.xml -o junit_family=xunit1 --maxfail=0 --continue-on-collection-errors"
)
NODE = (
    "--test-reporter=/out.mjs --test-reporter-destination=/out/report.xml "
    "--test-reporter=spec --test-reporter-destination=stdout"
)


def check(command: str, runner: str | None = None, **more: object) -> ProjectCheck:
    return ProjectCheck.model_validate(
        {"name": "unit", "command": command, "runner": runner, **more}
    )


@pytest.mark.parametrize(
    ("command", "runner", "expected", "report", "name"),
    [
        ("cd web && npm test", "jest",
         "cd web && npm test -- --json --outputFile=/out/report.json --bail=0", "/out/report.json",
         "jest-json"),
        ("pnpm run unit", "vitest",
         "pnpm run unit --reporter=default --reporter=junit --outputFile.junit=/out/report.xml "
         "--bail=0", "/out/report.xml", "junit"),
        ("npm test -- --grep x", "mocha",
         "npm test -- --grep x --reporter=xunit --reporter-option=output=/out/report.xml "
         "--no-bail", "/out/report.xml", "junit"),
        ("npx jest --ci", "", "npx jest --ci --json --outputFile=/out/report.json --bail=0",
         "/out/report.json", "jest-json"),
        ("bun test", "", "bun test --reporter=junit --reporter-outfile=/out/report.xml",
         "/out/report.xml", "junit"),
        ("cd x && go test -race ./...", "", "cd x && go test -json -race ./... > /out/report.json",
         "/out/report.json", "go-json"),
        ("go test -json ./...", "", "go test -json -json ./... > /out/report.json",
         "/out/report.json", "go-json"),
        ("cargo test --workspace -- --nocapture", "",
         "cargo test --no-fail-fast --workspace -- --nocapture", None, "cargo"),
        ("cargo nextest run --profile ci", "", "cargo nextest run --no-fail-fast --profile ci",
         "target/nextest/*/**/*.xml", "junit"),
        ("cd a && mvn -B test", "", "cd a && mvn -B test --fail-at-end",
         "a/**/target/*-reports/TEST-*.xml", "junit"),
        ("./gradlew test", "", "./gradlew test --continue", "**/build/test-results/**/*.xml",
         "junit"),
        ("bats test", "", "bats test --report-formatter junit --output /out", "/out/report.xml",
         "junit"),
        ("cmake --build b && ctest --test-dir b", "",
         "cmake --build b && ctest --test-dir b --output-junit /out/report.xml",
         "/out/report.xml", "junit"),
        ("python -m unittest discover", "", "python /out.py -m unittest discover",
         "/out/report.xml", "junit"),
        ("python manage.py test", "", "python /out.py manage.py test", "/out/report.xml", "junit"),
    ],
)  # fmt: skip
def test_a_runner_is_asked_for_its_results(
    command: str, runner: str, expected: str, report: str | None, name: str
) -> None:
    folder = "a" if command.startswith("cd a ") else ""
    given = check(command, runner or runner_of(command), folder=folder)
    result = instrument(given, OUT)
    assert (result.command, result.report, result.report_format) == (expected, report, name)


@pytest.mark.parametrize(
    ("command", "runner"),
    [
        ("make test", ""), ("npm test", ""), ("npm test | tee log", ""), ("jest; echo", ""),
        ("pytest && jest", ""), ("if true; then jest; fi", ""), ("cargo test && cargo test", ""),
        ("go test ./a && go test ./b", ""), ("./run.sh", ""), ("bundle exec rspec", ""),
        ("jest # all", ""), ("pytest --junitxml=out.xml", ""), ("jest --json", ""),
        ("jest \\\n--ci", ""), ("$(echo jest)", ""), ("echo 'jest", ""),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_left_as_it_is(command: str, runner: str) -> None:
    result = instrument(check(command, runner or runner_of(command)), OUT)
    assert (result.command, result.environment) == (command, {})
    assert (result.report, result.report_format) == (None, None)


@pytest.mark.parametrize(
    "command", ["pytest -q", "uv run --frozen coverage run -m pytest tests", "A=1 py.test"]
)
def test_pytest_is_asked_by_a_variable_whatever_starts_it(command: str) -> None:
    assert runner_of(command) == "pytest"
    given = check(command, "pytest", environment={"PYTEST_ADDOPTS": "-n 2", "A": "1"})
    result = instrument(given, OUT)
    assert result.command == command
    assert result.environment == {"PYTEST_ADDOPTS": f"-n 2 {ADDOPTS}", "A": "1"}


def test_the_runner_of_node_is_asked_by_a_variable() -> None:
    result = instrument(check("npm test", "node"), OUT)
    assert (result.command, result.environment["NODE_OPTIONS"]) == ("npm test", NODE)


def test_a_declared_report_is_kept() -> None:
    given = check("make test", report="out/*.xml", report_format="junit")
    assert instrument(given, OUT) == given


@pytest.mark.parametrize(
    ("command", "expected", "folder"),
    [
        ("pytest -q", "pytest", ""), ("cd web && npm test", "jest", "web"), ("npm test", None, ""),
        ("cd web && npm run all", None, "web"), ("make test", None, ""), ("./run.sh", None, ""),
        ("npm test && cd web", None, ""),
    ],
)  # fmt: skip
def test_the_runner_of_a_declared_check_is_looked_up(
    command: str, expected: str, folder: str
) -> None:
    scripts = '{"scripts": {"test": "jest", "all": "jest && mocha"}}'
    result = complete_check(check(command), tree_of({"web/package.json": scripts}))
    assert (result.runner, result.folder) == (expected, folder)


@given(
    st.lists(
        st.sampled_from(
            ["pytest", "npm test", "jest", "go test", "cargo test", " ", "&&", "|", ";", "cd a",
             "--", "#", "'", '"', "$(", "\n", "mvn test", "bats x", ">", "make test", "tox", "é",
             "{", "("]
        ),
        max_size=12,
    ).map(" ".join)
)  # fmt: skip
def test_any_command_is_instrumented_or_left(command: str) -> None:
    result = instrument(check(command or "x", runner_of(command)), OUT)
    assert result.command == (command or "x") or result.report_format
