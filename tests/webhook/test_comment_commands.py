"""Tests of the commands in comments that a server executes, without a run: it is a control here."""

from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from resolver.config.settings import Settings, load_settings
from resolver.controller.control import (
    Control,
    Extend,
    MessageToAgent,
    Pause,
    Request,
    Resume,
    Stop,
)
from resolver.entrypoints.webhook.active_runs import ActiveRuns
from resolver.entrypoints.webhook.commands import CommentCommands
from resolver.entrypoints.webhook.request_queue import RequestState
from resolver.models.run import Command, Extension, Trigger
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
        self.active_runs = ActiveRuns()
        self.waiting: list[Any] = []
        self.left: list[Trigger] = []
        queue: Any = SimpleNamespace(
            unfinished_runs=lambda *_: self.waiting,
            leave_command=lambda runs, command: self.left.extend([command] * len(runs)),
        )
        runs: Any = self
        self.commands = CommentCommands(runs, queue, "here")
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

    def execute(self, comment: Comment, waiting: Collection[Trigger] = ()) -> Trigger | None:
        """Execute the command in the comment, while these runs wait in the queue."""
        self.waiting = [SimpleNamespace(trigger=trigger, state="waiting") for trigger in waiting]
        return self.commands.execute(self.trigger_of(comment))

    def start(self, trigger: Trigger | None = None) -> Control:
        """Let the run of a request, that of the issue by default, be in progress."""
        control = Control()
        self.active_runs.register(trigger or self.request, control)
        return control

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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@agent stop. This is the wrong file", [Stop("mona", "This is the wrong file")]),
        ("@agent pause", [Pause("mona")]),
        ("@agent resume", [Resume("mona")]),
        (
            "@agent +4 iterations, and use pytest -x",
            [
                Extend(Extension(iterations=4), "mona"),
                MessageToAgent("use pytest -x", "mona"),
                Resume("mona"),
            ],
        ),
    ],
)
def test_a_command_reaches_the_run_in_progress_and_starts_none(
    scenario: Scenario, text: str, expected: list[Request]
) -> None:
    control, comment = scenario.start(), scenario.comment(text)
    for _ in range(2):  # a second delivery finds the reaction to the first
        assert scenario.execute(comment) is None
    assert taken(control) == expected
    assert reactions(comment) == ["+1"] and not scenario.answers()


def test_a_stranger_reaches_no_run_and_a_request_of_her_own_changes_nothing(
    scenario: Scenario,
) -> None:
    scenario.forge.github.add_user("eve")
    own = scenario.trigger_of(scenario.comment("@agent and this", author="eve"))
    control = scenario.start()
    for text in ("@agent stop", "@agent approve"):
        comment = scenario.comment(text, author="eve")
        assert scenario.execute(comment, [scenario.request, own]) is None
        assert not reactions(comment)
    assert not taken(control)
    assert not scenario.left
    assert all("write access" in answer for answer in scenario.answers()) and scenario.answers()


def test_a_run_that_waits_is_stopped_before_it_starts(scenario: Scenario) -> None:
    stop = scenario.comment("@agent stop")
    assert scenario.execute(stop, [scenario.request]) is None
    assert reactions(stop) == ["+1"] and not scenario.answers()
    assert scenario.left == [scenario.trigger_of(stop)]


@pytest.mark.parametrize("executor", ["here", "there"])
def test_a_command_for_the_run_of_another_process_is_left_for_it(
    scenario: Scenario, executor: str
) -> None:
    working: dict[str, Any] = {"state": RequestState.WORKING, "executor": executor}
    scenario.waiting = [SimpleNamespace(trigger=scenario.request, **working)]
    comment = scenario.comment("@agent pause")
    pause = scenario.trigger_of(comment)
    scenario.commands.execute(pause)
    is_elsewhere = executor == "there"
    assert scenario.left == ([pause] if is_elsewhere else [])
    assert reactions(comment) == ["+1" if is_elsewhere else "eyes"]


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
    control = scenario.start(asked)
    assert scenario.execute(scenario.comment("@agent stop")) is None, "asked on the issue"
    assert scenario.execute(scenario.comment("@agent stop", on=pull)) is None
    assert taken(control) == [Stop("mona")] * 2
