"""What of the agent's commands counts as a check."""

import pytest

from resolver.model import CheckedCommand
from resolver.verify.claims import claimed_evidence


def ran(*commands: str) -> list[CheckedCommand]:
    return [CheckedCommand(command=c, exit_code=0, event_id=i) for i, c in enumerate(commands)]


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q",
        "python3 -m unittest",
        "cd web && npm run test:unit",
        "go test ./...",
        "make check",
        "cargo nextest run",
        "./gradlew test",
        "npx tsc --noEmit",
    ],
)
def test_a_test_run_counts(command: str) -> None:
    assert [c.command for c in claimed_evidence(ran(command)).commands] == [command]


@pytest.mark.parametrize("command", ["ls", "cat tests/test_a.py", "git diff", "sed -n 1,9p go.mod"])
def test_looking_around_does_not(command: str) -> None:
    assert not claimed_evidence(ran(command)).commands


def test_the_last_run_of_a_command_is_the_one_shown() -> None:
    runs = [
        CheckedCommand(command="pytest", exit_code=1, event_id=3),
        CheckedCommand(command="pytest", exit_code=0, event_id=9),
    ]
    assert [c.exit_code for c in claimed_evidence(runs).commands] == [0]


def test_what_the_agent_ran_is_never_called_independent() -> None:
    assert claimed_evidence(ran("pytest")).independent is False


@pytest.mark.parametrize(
    ("command", "exit_code", "masked"),
    [
        ("pytest -q 2>&1 | tail -5", 0, True),
        ("pytest -q || true", 0, True),
        ("pytest -q | tail", 1, False),
        ("pytest -q", 0, False),
    ],
)
def test_an_exit_code_that_is_not_the_checks_own_is_noted(
    command: str, exit_code: int, masked: bool
) -> None:
    run = CheckedCommand(command=command, exit_code=exit_code, event_id=1)
    assert [c.masked for c in claimed_evidence([run]).commands] == [masked]


@pytest.mark.parametrize("command", ["grep add calc.py && echo pytest", "pip install pytest"])
def test_a_word_that_names_a_runner_is_no_check(command: str) -> None:
    assert not claimed_evidence(ran(command)).commands
