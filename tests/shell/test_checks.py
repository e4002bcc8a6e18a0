"""Tests of which commands of a line are checks, and what its exit code says about them."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.security.shell.checks import MAX_READ_CHARACTERS, read_checks

PASSES = [
    "pytest -q",
    "CI=1 PYTHONPATH=src pytest -q tests",
    "python3 -m unittest -q 2>&1",
    "python -W error -m pytest tests/test_a.py::test_b",
    "python3.11 -m pytest",
    "venv/bin/python -m pytest",
    '"$VENV/bin/pytest" -q',
    "python manage.py test app",
    "./manage.py test",
    "python3 test_calc.py",
    "python tests/smoke.py",
    "python -m tests.run",
    "node --test",
    "node test/index.js",
    "npx jest --ci",
    "npm test",
    "npm t",
    "npm run lint",
    "npm --prefix web run test:unit",
    "pnpm exec vitest run",
    "yarn jest",
    "yarn workspace web test",
    "cargo +nightly test --all",
    "go test ./...",
    "mvn -q test",
    "./mvnw -B verify",
    "./gradlew :app:testDebugUnitTest",
    "make check",
    "make -C sub -j4 test",
    "bundle exec rspec",
    "bash scripts/run_tests.sh",
    "./run_tests.sh -v",
    "./test.sh",
    "tox -e py311",
    "ruff format --check .",
    "coverage run -m pytest",
    "hatch run test",
    "dotnet test --no-build",
    "env A=1 timeout 60 poetry run pytest",
    "uv run --with x pytest",
    "sudo -u nobody pytest",
    "xvfb-run -a pytest",
    "time pytest",
    "cd web && npm test",
    "cd web && npm test && echo done",
    "cd a || exit 1; pytest",
    "yes | pytest",
    "pytest > out.txt 2>&1",
    "pytest || exit 1",
    "pytest || { echo bad; exit 2; }",
    "set -o pipefail; pytest | tail -5",
    "set -euo pipefail\npytest | tee out.txt",
    "set -e\npytest\nruff check .",
    "ruff check . &&\n  pytest",
    "(cd a && pytest)",
    "{ pytest; }",
    "bash -c 'cd a && pytest'",
    'timeout 60 bash -lc "cd a && pytest"',
    "sleep 100 & pytest",
    "cat <<'E' > a.py\nx = 1\nE\npytest",
    "pytest # || true",
    "python3 -m unittest -q 2>&1 | tail -5",
    "pytest |& tee out.txt",
    "pytest; true",
    "pytest; echo $?",
    "pytest\nls",
    "pytest; ruff check .",
    "(set -o pipefail); pytest | tail",
]
"""With `set -eo pipefail`, an exit code of 0 says that what they check has passed."""

HIDDEN = [
    "pytest || true",
    "pytest || echo failed",
    "pytest &",
    "pytest & wait",
    "! pytest",
    "! pytest | tail",
    "if pytest; then echo yes; fi",
    "if ! pytest; then echo no; fi",
    "while pytest; do sleep 1; done",
    "for f in *; do pytest $f; done",
    "case a in a) pytest;; esac",
    "bash -c 'pytest | tail'",
    "bash -c 'set -o pipefail; pytest | tail'",
    "bash -c 'pytest; true'",
    "(pytest; true)",
    "{ pytest || :; }",
    "set -o pipefail; set +o pipefail; pytest | tail",
    "{ set -e; pytest; echo; } && ls",
    "exit 0; pytest",
    "true || pytest",
    "trap 'exit 0' EXIT; pytest",
    "set -n; pytest",
    "setsid pytest",
    "coproc pytest",
    "[[ -n a && pytest ]]",
]
"""They run one, and say nothing of how it ended."""

NO_CHECKS = [
    "ls",
    "cat tox.ini",
    "pip install pytest",
    "uv add --dev pytest",
    "grep -rn add calc.py && echo pytest >/dev/null",
    "echo 'pytest'; cat pytest.ini",
    "git commit -m 'x; pytest'",
    "cat <<EOF\npytest\nEOF",
    "true pytest -q",
    "command -v pytest",
    "which pytest",
    "pytest --version",
    "pytest --collect-only -q",
    "ruff check --exit-zero .",
    "make -n test",
    "make -C tests install",
    "mvn -q -DskipTests package",
    "npm install jest",
    "npm run start",
    "go mod tidy",
    "test -f x",
    "[ -f test ]",
    "/usr/bin/test -f x",
    "sed -n 1,9p tests/test_a.py",
    "python -c 'import pytest'",
    "python latest.py",
    "x=$(pytest)",
    "pytest() { true; }; pytest() { :; }",
    "pytest() { true; }; pytest",
    "make",
    "",
    "x" * 300_000 + "; pytest",
]


@pytest.mark.parametrize("command", PASSES)
def test_the_exit_code_is_that_of_the_check(command: str) -> None:
    read = read_checks(command)
    assert read.checks and read.is_conclusive


@pytest.mark.parametrize("command", HIDDEN)
def test_the_exit_code_is_not_that_of_the_check(command: str) -> None:
    read = read_checks(command)
    assert read.checks and not read.is_conclusive


@pytest.mark.parametrize("command", NO_CHECKS)
def test_a_mention_of_a_checker_is_not_a_check(command: str) -> None:
    assert not read_checks(command).checks


PIECES = (
    "pytest", "python -m ", "npx ", "bash -c '", '"', "'", "$(", "`", "{ ", "}", "(", ")", "|",
    "||", "&&", "&", ";", ";;", "\n", "! ", "if ", "then ", "fi", "case a in ", "esac", "for i in ",
    "do ", "done", "f() ", "<<E\n", "E\n", "> x", "\\", "#", "set -e;", "exit 0", "-",
    "tests/", "_test", "a=", "sudo ", "timeout 5 ", "coverage run ", "yarn ", "make ",
    "[[ ", "\0", "\ud800", " ",
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=60).map("".join))
def test_any_text_is_parsed(text: str) -> None:
    read = read_checks(text)
    assert bool(read.checks) or not read.is_conclusive


@pytest.mark.deep
@pytest.mark.parametrize("piece", PIECES)
def test_twice_the_text_takes_about_twice_the_time(piece: str) -> None:
    def seconds(size: int) -> float:
        read_checks.cache_clear()
        text = "pytest " + piece * (size // len(piece))
        began = time.process_time()
        read_checks(text)
        return time.process_time() - began

    seconds(1_000)
    small = max(min(seconds(8_000) for _ in range(2)), 0.005)
    assert seconds(64_000) < small * 8 * 4


@pytest.mark.deep
def test_a_long_chain_is_read_in_linear_time() -> None:
    text = "pytest&&" * (MAX_READ_CHARACTERS // 8 - 1) + "ls"
    began = time.process_time()
    assert read_checks(text).is_conclusive
    assert time.process_time() - began < 2.5
