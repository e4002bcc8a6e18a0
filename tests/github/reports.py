"""Builds reports like those of the pipeline, for the tests of the github package."""

from datetime import UTC, datetime
from typing import Any

from resolver.github.comments.report import Report
from resolver.models.run import (
    Actor,
    CheckedCommand,
    FileChange,
    Outcome,
    Patch,
    RunState,
    Task,
    Tokens,
    Trigger,
    TriggerKind,
)
from resolver.models.verification import (
    CaseResult,
    CheckComparison,
    CheckExecution,
    Verification,
)

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def trigger(**changes: Any) -> Trigger:
    values: dict[str, Any] = {
        "key": "issue_comment:77",
        "kind": TriggerKind.ISSUE_COMMENT,
        "repository": "octo/demo",
        "number": 12,
        "actor": Actor(login="alice", id=5),
        "instruction": "fix it",
        "at": WHEN,
        "comment_id": 77,
    }
    return Trigger(**{**values, **changes})


def task(request: Trigger, **changes: Any) -> Task:
    values: dict[str, Any] = {
        "trigger": request,
        "title": "It breaks",
        "body": "Please help",
        "base_branch": "main",
        "source": "https://github.com/octo/demo.git",
    }
    return Task(**{**values, **changes})


def outcome(message: str = "Fixed the parser. It was broken.", **changes: Any) -> Outcome:
    """An outcome whose title is the message's first line."""
    values: dict[str, Any] = {
        "state": RunState.FINISHED,
        "title": message.partition("\n")[0],
        "message": message,
        "task_completed": True,
        "iterations": 14,
        "tokens": Tokens(input=1000, output=50),
        "cost": 0.42,
        "seconds": 192.0,
    }
    return Outcome(**{**values, **changes})


def patch(*paths: str) -> Patch:
    files = tuple(
        FileChange(
            path=path,
            status="modified",
            old_mode="100644",
            new_mode="100644",
            additions=3,
            deletions=1,
        )
        for path in paths or ("a.py",)
    )
    return Patch(base="a" * 40, tree="b" * 40, commit="c" * 40, files=files)


def commands(*outputs: str) -> tuple[CheckedCommand, ...]:
    return tuple(
        CheckedCommand(command="pytest -q", exit_code=0, event_id=i, output_tail=output)
        for i, output in enumerate(outputs or ("1 passed",))
    )


def verification(**changes: Any) -> Verification:
    """A verified change with one check."""
    passed = (CaseResult(id="test_a.py::test_old", status="passed"),)
    fixed = CaseResult(id="test_a.py::test_new", status="passed")
    check = CheckComparison(
        name="pytest",
        command="pytest",
        scope="full",
        base=CheckExecution(exit_code=0, seconds=1.0, cases=passed),
        head=CheckExecution(exit_code=0, seconds=1.5, cases=(*passed, fixed)),
        reproduction=(fixed.id,),
        added=(fixed.id,),
    )
    lists = {name: changes.pop(name) for name in tuple(changes) if name in _OF_A_CHECK}
    check = check.model_copy(update=lists)
    known = Verification(verdict="verified", checks=(check,))
    return known.model_copy(update=changes)


_OF_A_CHECK = frozenset(CheckComparison.model_fields) - {"name", "command"}


def report(**changes: Any) -> Report:
    request = changes.pop("trigger", None) or trigger()
    values: dict[str, Any] = {
        "trigger": request,
        "run": "run-1",
        "model": "test/model",
        "task": task(request),
        "outcome": outcome(),
        "patch": patch(),
        "commands": commands(),
        "branch": "agent/12-it-breaks",
    }
    return Report(**{**values, **changes})
