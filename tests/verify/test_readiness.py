"""When a pull request is no draft: by what is on record."""

from datetime import UTC, datetime
from typing import Any

import pytest

from resolver.events.actions import FileEdit, FileWrite
from resolver.events.base import Source
from resolver.model import CheckedCommand, Evidence, Outcome, RunState
from resolver.verify.readiness import unverified

DONE = Outcome(state=RunState.FINISHED, task_completed=True)


def checks(*exit_codes: int | None) -> Evidence:
    commands = (
        CheckedCommand(command=f"pytest {n}", exit_code=code, event_id=10 * (n + 1))
        for n, code in enumerate(exit_codes)
    )
    return Evidence(commands=tuple(commands))


def event(action: Any, id: int) -> Any:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    return action.model_copy(update={"id": id, "timestamp": at, "source": Source.AGENT})


def test_work_that_is_done_and_whose_newest_check_passed_is_ready() -> None:
    assert unverified(DONE, checks(0), ()) == ""
    assert unverified(DONE, checks(1, 0), ()) == ""


@pytest.mark.parametrize(
    ("evidence", "missing"),
    [
        (None, "unchecked"),
        (Evidence(), "unchecked"),
        (checks(1), "failed"),
        (checks(0, 1), "failed"),
        (checks(None), "failed"),
        (checks(0, None), "failed"),
    ],
)
def test_without_a_check_that_passed_last_it_is_not(
    evidence: Evidence | None, missing: str
) -> None:
    assert unverified(DONE, evidence, ()) == missing


def test_a_check_whose_exit_code_was_hidden_did_not_pass() -> None:
    seen, hidden = checks(0, 0).commands
    evidence = Evidence(commands=(seen, hidden.model_copy(update={"masked": True})))
    assert unverified(DONE, evidence, ()) == "hidden"


@pytest.mark.parametrize(
    "outcome",
    [
        None,
        Outcome(state=RunState.FINISHED),
        Outcome(state=RunState.LIMIT, task_completed=True),
        Outcome(state=RunState.REJECTED),
    ],
)
def test_work_that_is_not_done_is_not(outcome: Outcome | None) -> None:
    assert unverified(outcome, checks(0), ())


def test_code_that_was_edited_after_the_check_was_not_checked() -> None:
    edit = FileEdit(command="str_replace", path="/workspace/a.py", old_str="a", new_str="b")
    assert unverified(DONE, checks(0), [event(edit, 9)]) == ""
    assert unverified(DONE, checks(0), [event(edit, 11)])
    assert unverified(DONE, checks(0), [event(FileWrite(path="b", content=""), 11)])


def test_prose_may_be_edited_after_the_check() -> None:
    written = [event(FileWrite(path=path, content=""), 11) for path in ("CHANGES.md", "a.RST")]
    assert unverified(DONE, checks(0), written) == ""
