"""Tests of which earlier run a command continues, from the runs that a store holds."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from resolver.events.log import dump_line
from resolver.events.observations import AgentStateChanged
from resolver.models.run import Command, RunState, Trigger
from resolver.runs.conversation.commands import find_run_to_continue
from resolver.storage.earlier_runs import BUNDLE, CHANGE, EVENTS, OUTCOME, EarlierRun
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
        for name in (CHANGE, BUNDLE) if has_change else ():
            (folder / name).write_bytes(b"x")
        self._runs.setdefault(number, []).append(EarlierRun(run, folder / EVENTS, folder / OUTCOME))

    def found(self, command: Command) -> tuple[int | None, str]:
        """Return the conversation and the run that a comment on the pull request continues."""
        trigger, earlier = find_run_to_continue(on_pull(command), "run-9", self)
        return trigger.subject, earlier.run if earlier else ""


def on_pull(command: Command) -> Trigger:
    return reports.trigger(number=PULL, issue=ISSUE, is_pull_request=True, command=command)


@pytest.fixture
def conversations(tmp_path: Path) -> Conversations:
    return Conversations(tmp_path)


def test_on_a_pull_request_the_newest_work_of_both_conversations_is_continued(
    conversations: Conversations,
) -> None:
    conversations.add(ISSUE, "run-1")
    assert conversations.found(Command.CONTINUE) == (ISSUE, "run-1")
    trigger, _ = find_run_to_continue(on_pull(Command.CONTINUE), "run-9", conversations)
    assert trigger == on_pull(Command.CONTINUE)
    conversations.add(PULL, "run-2")
    assert conversations.found(Command.CONTINUE) == (PULL, "run-2")
    conversations.add(ISSUE, "run-3")
    assert conversations.found(Command.CONTINUE) == (ISSUE, "run-3")


def test_the_newest_work_is_that_which_ended_last_whatever_its_id(
    conversations: Conversations,
) -> None:
    """A server starts requests in an order of its own, and ids have the time of the request."""
    conversations.add(ISSUE, "run-3")
    conversations.add(PULL, "run-1")
    assert conversations.found(Command.CONTINUE) == (PULL, "run-1")
    conversations.add(ISSUE, "run-2")
    assert conversations.found(Command.CONTINUE) == (ISSUE, "run-2")


def test_on_the_issue_only_its_own_work_is_continued(conversations: Conversations) -> None:
    conversations.add(ISSUE, "run-1")
    conversations.add(PULL, "run-2")
    trigger = reports.trigger(number=ISSUE, command=Command.CONTINUE)
    found, earlier = find_run_to_continue(trigger, "run-9", conversations)
    assert found == trigger and earlier is not None and earlier.run == "run-1"


@pytest.mark.parametrize("answer", [Command.REVIEW, Command.QUESTION])
def test_a_review_of_the_pull_request_is_no_work_to_continue(
    conversations: Conversations, answer: Command
) -> None:
    conversations.add(ISSUE, "run-1")
    conversations.add(PULL, "run-2", answer)
    assert conversations.found(Command.CONTINUE) == (ISSUE, "run-1")


def test_a_review_is_continued_where_it_was_asked_for(conversations: Conversations) -> None:
    conversations.add(PULL, "run-1", Command.REVIEW)
    trigger = reports.trigger(number=PULL, is_pull_request=True, command=Command.CONTINUE)
    found, earlier = find_run_to_continue(trigger, "run-9", conversations)
    assert found == trigger and earlier is not None and earlier.run == "run-1"


def test_on_the_issue_a_kept_change_is_published_after_a_question_and_once(
    conversations: Conversations,
) -> None:
    publish = reports.trigger(number=ISSUE, command=Command.PUBLISH)
    assert find_run_to_continue(publish, "run-9", conversations) == (publish, None)
    conversations.add(ISSUE, "run-1", has_change=True)
    conversations.add(ISSUE, "run-2", Command.QUESTION)
    _, earlier = find_run_to_continue(publish, "run-9", conversations)
    assert earlier is not None and earlier.run == "run-1"
    conversations.add(ISSUE, "run-3", branch="agent/12-x")
    assert find_run_to_continue(publish, "run-9", conversations)[1] is None, "it is published"


def test_a_kept_change_of_the_pull_request_is_published_after_a_question_on_the_issue(
    conversations: Conversations,
) -> None:
    conversations.add(PULL, "run-1", has_change=True)
    conversations.add(ISSUE, "run-2", Command.QUESTION)
    assert conversations.found(Command.PUBLISH) == (PULL, "run-1")


def test_a_kept_change_is_not_published_past_later_work_of_the_other_conversation(
    conversations: Conversations,
) -> None:
    conversations.add(PULL, "run-1", has_change=True)
    conversations.add(ISSUE, "run-2", branch="agent/issue-12-it-breaks")
    assert conversations.found(Command.PUBLISH)[1] == ""


def test_where_nothing_was_done_there_is_nothing_to_continue(conversations: Conversations) -> None:
    assert conversations.found(Command.CONTINUE)[1] == ""
