"""Tests of recognizing check commands and the lines that say how they ended."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.memory.facts import checks_in, command_outcome


@pytest.mark.parametrize(
    ("command", "checks"),
    [
        ("cd x && CI=1 pytest -q tests | tail -5", ("pytest -q tests",)),
        ("python3 -m pytest -q 2>&1", ("pytest -q",)),
        ("timeout 60 python -m unittest -v", ("unittest -v",)),
        ("poetry run pytest", ("pytest",)),
        ("npm run test:unit", ("npm run test:unit",)),
        ("cargo test --all", ("cargo test --all",)),
        ("go test ./...", ("go test ./...",)),
        ("./gradlew :app:test", ("./gradlew :app:test",)),
        ("mvn -q verify", ("mvn -q verify",)),
        ("make -j4 check", ("make -j4 check",)),
        ("python manage.py test app", ("python manage.py test app",)),
        ("./run_tests.sh a", ("./run_tests.sh a",)),
        ("python tests/test_x.py", ("python tests/test_x.py",)),
        ("ruff check . && mypy", ("ruff check .", "mypy")),
        ("pip install pytest", ()),
        ("grep pytest setup.cfg", ()),
        ("echo 'pytest'; cat pytest.ini", ()),
        ("git commit -m 'x; pytest'", ()),
        ("make", ()),
        ("cat <<EOF\npytest\nEOF", ()),
    ],
)
def test_commands_that_test_build_or_lint_are_recognized(
    command: str, checks: tuple[str, ...]
) -> None:
    assert checks_in(command) == checks


def test_the_outcome_has_the_failures_and_the_last_line() -> None:
    output = (
        ".F.\nE   assert 1 == 2\nnoise\nFAILED t.py::x - assert\n\n1 failed, 2 passed in 0.1s\n"
    )
    assert command_outcome(output).split("\n") == [
        "E   assert 1 == 2", "FAILED t.py::x - assert", "1 failed, 2 passed in 0.1s",
    ]  # fmt: skip


def test_many_failures_are_counted() -> None:
    output = "\n".join(f"FAILED t.py::x{n}" for n in range(40)) + "\n40 failed"
    told = command_outcome(output)
    assert "t.py::x5" in told and "t.py::x6\n" not in told
    assert "(and 34 more such lines)" in told and told.endswith("40 failed")


@given(st.text(max_size=300))
def test_any_output_is_parsed(text: str) -> None:
    checks_in(text)
    assert len(command_outcome(text)) <= 600


@pytest.mark.deep
@pytest.mark.parametrize(
    "word", ["<<A\n", "<<A x", "test/", "a.-", "> a ", "sudo ", "make a:", "'", '\\"', "open('"]
)
def test_a_hostile_command_is_parsed_in_bounded_time(word: str) -> None:
    begin = time.perf_counter()
    checks_in("python " + word * 20_000)
    assert time.perf_counter() - begin < 2
