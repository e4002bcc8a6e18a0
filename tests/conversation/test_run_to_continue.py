"""Tests of which earlier run a command continues, from the runs that a store holds."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from resolver.events.log import dump_line
from resolver.events.observations import AgentStateChanged
from resolver.models.run import Command, RunState
from resolver.runs.conversation.commands import find_run_to_continue
from resolver.storage import earlier_runs
from resolver.storage.earlier_runs import BUNDLE, EVENTS, OUTCOME, EarlierRun
from tests.github import reports
from tests.trace import sample

ISSUE, PULL = 12, 40


class Conversations:
    """A store with the runs of an issue and of Resolver's pull request for it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs: dict[int, list[EarlierRun]] = {}
        self._ended_at = sample.START

    def runs_before(self, issue: int, run: str) -> Iterator[EarlierRun]:
        """Implement `EarlierRuns.runs_before` for a run that is not stored."""
        yield from reversed(self._runs.get(issue, []))

    def add(
        self,
        number: int,
        run: str,
        command: Command = Command.FIX,
        *,
        has_change: bool = False,
        branch: str = "",
    ) -> None:
        """Add a finished run. has_change: its change is not public. branch: where it is public."""
        folder = self._folder / run
        folder.mkdir()
        opening = sample.started()
        trigger = opening.task.trigger.model_copy(update={"command": command})
        task = opening.task.model_copy(update={"trigger": trigger})
        ended = AgentStateChanged(state=RunState.FINISHED)
        self._ended_at += timedelta(minutes=1)
        events = [
            event.model_copy(update={"timestamp": self._ended_at})
            for event in sample.numbered([opening.model_copy(update={"task": task}), ended])
        ]
        (folder / EVENTS).write_text("".join(f"{dump_line(event)}\n" for event in events))
        (folder / OUTCOME).write_text(json.dumps({"branch": branch or None}))
        for name in (earlier_runs.CHANGE, BUNDLE) if has_change else ():
            (folder / name).write_bytes(b"x")
        self._runs.setdefault(number, []).append(EarlierRun(run, folder / EVENTS, folder / OUTCOME))


CHANGE = {"has_change": True}
ANSWER, REVIEW = {"command": Command.QUESTION}, {"command": Command.REVIEW}
PUBLIC = {"branch": "agent/issue-12-it-breaks"}
Kept = tuple[int, str, dict[str, Any]]
ON_ISSUE: dict[str, Any] = {"number": ISSUE}
ON_PULL = {"number": PULL, "issue": ISSUE, "is_pull_request": True}


@pytest.mark.parametrize(
    ("asked", "command", "kept", "number", "run"),
    [
        (ON_PULL, Command.CONTINUE, [], ISSUE, None),
        (ON_PULL, Command.CONTINUE, [(ISSUE, "1", {})], ISSUE, "1"),
        (ON_PULL, Command.CONTINUE, [(ISSUE, "1", {}), (PULL, "2", {}), (ISSUE, "3", {})],
         ISSUE, "3"),
        # Ids have the time of the request, and a server starts requests in an order of its own.
        (ON_PULL, Command.CONTINUE, [(ISSUE, "3", {}), (PULL, "1", {})], PULL, "1"),
        # A review of the pull request, or an answer on it, is no work to continue.
        (ON_PULL, Command.CONTINUE, [(ISSUE, "1", {}), (PULL, "2", ANSWER)], ISSUE, "1"),
        (ON_PULL, Command.CONTINUE, [(ISSUE, "1", {}), (PULL, "2", REVIEW)], ISSUE, "1"),
        (ON_PULL, Command.PUBLISH, [(PULL, "1", CHANGE), (ISSUE, "2", ANSWER)], PULL, "1"),
        # A later run of either conversation has published.
        (ON_PULL, Command.PUBLISH, [(PULL, "1", CHANGE), (ISSUE, "2", PUBLIC)], ISSUE, None),
        # On the issue, only its own work is continued.
        (ON_ISSUE, Command.CONTINUE, [(ISSUE, "1", {}), (PULL, "2", {})], ISSUE, "1"),
        (ON_ISSUE, Command.PUBLISH, [], ISSUE, None),
        (ON_ISSUE, Command.PUBLISH, [(ISSUE, "1", CHANGE), (ISSUE, "2", ANSWER)], ISSUE, "1"),
        (ON_ISSUE, Command.PUBLISH, [(ISSUE, "1", CHANGE), (ISSUE, "2", PUBLIC)], ISSUE, None),
    ],
)  # fmt: skip
def test_the_newest_work_of_the_conversations_that_a_command_is_about_is_continued(
    tmp_path: Path,
    asked: dict[str, Any],
    command: Command,
    kept: list[Kept],
    number: int,
    run: str | None,
) -> None:
    conversations = Conversations(tmp_path)
    for conversation, earlier, changes in kept:
        conversations.add(conversation, earlier, **changes)
    request = reports.trigger(command=command, **asked)
    trigger, found = find_run_to_continue(request, "run-9", conversations)
    assert (trigger.subject, found.run if found else None) == (number, run)


def test_a_review_is_continued_where_it_was_asked_for(tmp_path: Path) -> None:
    conversations = Conversations(tmp_path)
    conversations.add(PULL, "1", Command.REVIEW)
    asked = reports.trigger(number=PULL, is_pull_request=True, command=Command.CONTINUE)
    trigger, found = find_run_to_continue(asked, "run-9", conversations)
    assert trigger == asked and found is not None and found.run == "1"
