"""Which earlier run a comment continues, from runs in memory."""

import json
from pathlib import Path

import pytest

from resolver.events.log import dump_line
from resolver.events.observations import AgentStateChanged
from resolver.models.run import Command, RunState
from resolver.runs.conversation.commands import find_run_to_continue
from resolver.storage.run_store import BUNDLE, CHANGE, EVENTS, OUTCOME, MemoryRunStore
from tests.github import reports
from tests.trace import sample

ISSUE, PULL = 12, 90
ON_ISSUE = reports.trigger(number=ISSUE, command=Command.CONTINUE)
ON_PULL = reports.trigger(number=PULL, is_pull_request=True, issue=ISSUE, command=Command.CONTINUE)
NEW = "20260102-030405-ffffff"


class Runs:
    """Runs of a repository that have ended, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, MemoryRunStore()

    def add(
        self,
        number: int,
        run: str,
        command: Command = Command.FIX,
        *,
        has_change: bool = False,
        branch: str | None = None,
    ) -> None:
        folder = self.folder / run
        folder.mkdir()
        task = reports.task(reports.trigger(number=number, command=command))
        opening = sample.started().model_copy(update={"run": run, "task": task})
        events = sample.numbered([opening, AgentStateChanged(state=RunState.FINISHED)])
        (folder / EVENTS).write_text("".join(f"{dump_line(event)}\n" for event in events))
        (folder / OUTCOME).write_text(json.dumps({"branch": branch}))
        for name in (CHANGE, BUNDLE) if has_change else ():
            (folder / name).write_bytes(b"x")
        self.store.add(number, run, folder)


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


def test_on_a_pull_request_of_ours_the_run_on_its_issue_is_continued(runs: Runs) -> None:
    runs.add(ISSUE, "20260101-000001-aaaaaa")
    trigger, earlier = find_run_to_continue(ON_PULL, NEW, runs.store)
    assert earlier is not None and earlier.run == "20260101-000001-aaaaaa"
    assert trigger == ON_PULL and trigger.subject == ISSUE


def test_of_issue_and_pull_request_the_last_run_counts(runs: Runs) -> None:
    runs.add(ISSUE, "20260101-000001-aaaaaa")
    runs.add(PULL, "20260101-000002-bbbbbb")
    trigger, earlier = find_run_to_continue(ON_PULL, NEW, runs.store)
    assert earlier is not None and earlier.run == "20260101-000002-bbbbbb"
    assert trigger.subject == PULL, "work on the pull request itself goes on there"
    runs.add(ISSUE, "20260101-000003-cccccc")
    trigger, earlier = find_run_to_continue(ON_PULL, NEW, runs.store)
    assert earlier is not None and earlier.run == "20260101-000003-cccccc"
    assert trigger.subject == ISSUE


@pytest.mark.parametrize("command", [Command.REVIEW, Command.QUESTION])
def test_a_review_of_our_pull_request_is_not_what_continues(runs: Runs, command: Command) -> None:
    runs.add(ISSUE, "20260101-000001-aaaaaa")
    runs.add(PULL, "20260101-000002-bbbbbb", command)
    _, earlier = find_run_to_continue(ON_PULL, NEW, runs.store)
    assert earlier is not None and earlier.run == "20260101-000001-aaaaaa"


def test_what_waits_to_be_published_is_found_behind_a_question(runs: Runs) -> None:
    publish = ON_ISSUE.model_copy(update={"command": Command.PUBLISH})
    assert find_run_to_continue(publish, NEW, runs.store) == (publish, None)
    runs.add(ISSUE, "20260101-000001-aaaaaa", has_change=True)
    runs.add(ISSUE, "20260101-000002-bbbbbb", Command.QUESTION)
    _, earlier = find_run_to_continue(publish, NEW, runs.store)
    assert earlier is not None and earlier.run == "20260101-000001-aaaaaa"
    runs.add(ISSUE, "20260101-000003-cccccc", branch="agent/12-x")
    assert find_run_to_continue(publish, NEW, runs.store)[1] is None, "it is published"
