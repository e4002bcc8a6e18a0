"""Tests of the commands in comments that a server executes, without a run."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from resolver.config.settings import Settings, load_settings
from resolver.controller.control import Control, Request
from resolver.entrypoints.webhook.commands import CommentCommands
from resolver.entrypoints.webhook.request_queue import RequestState
from resolver.models.run import Command, Trigger, TriggerKind
from resolver.runs.common import open_host, trigger_for_target
from resolver.runs.wiring.sandbox import RunHost
from resolver.storage.database import parse_database_url
from resolver.storage.run_index import RunIndex
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Comment, Issue
from tests.webhook.serving import Forge


class Scenario:
    """An issue with a request of mona's, and what executes the commands in later comments.

    Stands in for the `RequestRunner`. applies: whether the last run left something for a command.
    """

    def __init__(self, github: GitHubServer, folder: Path) -> None:
        self.forge, self.applies = Forge(github), False
        self.issue = self.forge.issue(self.forge.repository("octo/calc"), "none")
        self.environment = {
            "HOME": str(folder),
            "GITHUB_TOKEN": self.forge.token,
            **github.addresses,
            "RESOLVER_PACE": '{"write_interval": 0}',
        }
        self.index = RunIndex(parse_database_url(f"sqlite:///{folder}/resolver.db"))
        self.unfinished: list[Any] = []
        self.left: list[Trigger] = []
        queue: Any = SimpleNamespace(
            unfinished_runs=self.unfinished_runs,
            leave_command=lambda runs, command: self.left.extend([command] * len(runs)),
        )
        runs: Any = self
        self.commands = CommentCommands(runs, queue)
        self.request = self.trigger_of(self.comment("@agent please fix this"))

    def settings(self, repository: str = "") -> Settings:
        return load_settings({}, self.environment)

    def host(self) -> RunHost:
        return open_host(self.environment)

    def applies_to_run(self, trigger: Trigger) -> bool:
        return self.applies

    def comment(self, text: str, author: str = "mona", on: Issue | None = None) -> Comment:
        self.forge.github.advance(2)
        return self.forge.github.add_comment(on or self.issue, text, author)

    def trigger_of(self, comment: Comment) -> Trigger:
        payload = self.forge.github.event_issue_comment(comment)
        found = trigger_for_target(Settings(), "issue_comment", payload)
        assert isinstance(found, Trigger)
        return found

    def execute(self, comment: Comment) -> Trigger | None:
        return self.commands.execute(self.trigger_of(comment))

    def unfinished_runs(self, repository: str, subject: int | None) -> list[Any]:
        return [run for run in self.unfinished if run.trigger.subject == subject]

    def add(self, trigger: Trigger, state: RequestState = RequestState.WORKING) -> None:
        """Let the run of a request wait or be in progress."""
        run = SimpleNamespace(trigger=trigger, state=state, run=f"run of {trigger.key}")
        self.unfinished.append(run)

    def answers(self) -> list[str]:
        return [comment.body for comment in self.forge.own_comments(self.issue)]


@pytest.fixture
def scenario(github: GitHubServer, tmp_path: Path) -> Scenario:
    return Scenario(github, tmp_path)


def reactions(comment: Comment) -> list[str]:
    return [reaction.content for reaction in comment.reactions]


def taken(control: Control) -> list[Request]:
    """Return the requests that have reached the run."""
    found = []
    while (request := control.take()) is not None:
        found.append(request)
    return found


@pytest.mark.parametrize("word", ["stop", "pause", "resume", "continue, and use pytest -x"])
def test_a_command_is_left_for_the_run_in_progress_and_starts_none(
    scenario: Scenario, word: str
) -> None:
    scenario.add(scenario.request)
    comment = scenario.comment(f"@agent {word}")
    for _ in range(2):  # a second delivery finds the reaction to the first
        assert scenario.execute(comment) is None
    assert scenario.left == [scenario.trigger_of(comment)]
    assert reactions(comment) == ["+1"] and not scenario.answers()


def test_a_command_reaches_the_run_of_a_failed_check(scenario: Scenario) -> None:
    """The request of a failed check was stored before its conversation was known."""
    update = {"kind": TriggerKind.CHECK_FAILED, "key": "check", "number": None}
    scenario.add(scenario.request.model_copy(update=update))
    scenario.index.put("run of check", scenario.request, {})
    stop = scenario.comment("@agent stop")
    assert scenario.execute(stop) is None
    assert scenario.left == [scenario.trigger_of(stop)]
    elsewhere = scenario.forge.issue(scenario.issue.repository, "none")
    assert scenario.execute(scenario.comment("@agent stop", on=elsewhere)) is None
    assert len(scenario.left) == 1


def test_a_stranger_reaches_no_run_and_a_request_of_her_own_changes_nothing(
    scenario: Scenario,
) -> None:
    scenario.forge.github.add_user("eve")
    own = scenario.trigger_of(scenario.comment("@agent and this", author="eve"))
    scenario.add(scenario.request)
    scenario.add(own, RequestState.WAITING)
    for text in ("@agent stop", "@agent approve"):
        comment = scenario.comment(text, author="eve")
        assert scenario.execute(comment) is None
        assert not reactions(comment)
    assert not scenario.left
    assert all("write access" in answer for answer in scenario.answers()) and scenario.answers()


def test_a_run_that_waits_is_stopped_before_it_starts(scenario: Scenario) -> None:
    scenario.add(scenario.request, RequestState.WAITING)
    stop = scenario.comment("@agent stop")
    assert scenario.execute(stop) is None
    assert reactions(stop) == ["+1"] and not scenario.answers()
    assert scenario.left == [scenario.trigger_of(stop)]


def test_continue_without_a_run_starts_one(scenario: Scenario) -> None:
    started = scenario.execute(scenario.comment("@agent continue, and use pytest -x"))
    assert started is not None and started.command is Command.CONTINUE
    assert "use pytest -x" in started.instruction


def test_a_pull_request_counts_as_the_conversation_of_its_issue(scenario: Scenario) -> None:
    github = scenario.forge.github
    github.commit("octo/calc", "agent/1-x", {"calc.py": "x = 1\n"})
    pull = github.create_pull("octo/calc", "agent/1-x", "Add x", "")
    scenario.index.put("run-1", scenario.request, {"pull_number": pull.number})
    asked = scenario.execute(scenario.comment("@agent continue: there is more", on=pull))
    assert asked is not None and (asked.number, asked.issue) == (pull.number, scenario.issue.number)
    scenario.add(asked)
    assert scenario.execute(scenario.comment("@agent stop")) is None, "asked on the issue"
    assert scenario.execute(scenario.comment("@agent stop", on=pull)) is None
    assert [command.command for command in scenario.left] == [Command.STOP] * 2
