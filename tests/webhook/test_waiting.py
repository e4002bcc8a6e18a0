"""Tests of an issue whose run waits for another one, on one running server.

Whole runs, because a request waits until the one before it has ended.
"""

import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import bash
from tests.parts.waiting import until
from tests.webhook.serving import Forge, Plans, Server, plan_of_a_fix


class Scenario:
    """A server and a repository; `sleeper` is an issue whose run is at work."""

    def __init__(self, folder: Path, github: GitHubServer, endpoint: ModelEndpoint) -> None:
        self.forge, self.plans = Forge(github), Plans(endpoint)
        self.name = self.forge.repository("octo/calc")
        (folder / "serve").mkdir()
        quick = {"RESOLVER_COMMENT_INTERVAL_SECONDS": "{progress: 1, writes: 0}"}
        self.server = Server(folder / "serve", self.forge, endpoint, **quick)
        self.sleeper = self.forge.issue(self.name, "long")

    def start(self) -> None:
        """The server, and the run that takes its time."""
        self.server.start()
        self.plans.add("long", bash("sleep 4713.5", timeout=6), *plan_of_a_fix())
        self.ask(self.sleeper)
        until(lambda: "Change the code: 1 of at most" in self.first(self.sleeper))

    def ask(self, issue: Issue, text: str = "@agent please fix this") -> None:
        comment = self.forge.github.add_comment(issue, text, "mona")
        payload = self.forge.github.event_issue_comment(comment)
        assert self.server.deliver(payload) == (202, "stored")

    def first(self, issue: Issue) -> str:
        return next((c.body for c in self.forge.own_comments(issue)), "")


@pytest.fixture
def scenario(
    tmp_path: Path, github: GitHubServer, model_endpoint: ModelEndpoint
) -> Iterator[Scenario]:
    made = Scenario(tmp_path, github, model_endpoint)
    try:
        made.start()
        yield made
    finally:
        made.server.close()
    made.server.check()


def reactions(issue: Issue) -> list[str]:
    return [reaction.content for comment in issue.comments for reaction in comment.reactions]


def test_a_waiting_request_gets_a_reaction_and_then_one_comment(scenario: Scenario) -> None:
    forge = scenario.forge
    waiting = forge.issue(scenario.name, "waiting")
    scenario.plans.add("waiting", *plan_of_a_fix())
    scenario.ask(waiting)
    until(lambda: reactions(waiting) == ["eyes"])
    assert not scenario.first(waiting)
    scenario.server.end(signal.SIGKILL)
    assert "working on this" in scenario.first(scenario.sleeper)
    scenario.server.start()
    for issue in (scenario.sleeper, waiting):
        until(partial(forge.final_comments, issue))
        assert len(forge.own_comments(issue)) == 1 and "Resolver opened" in scenario.first(issue)
    assert reactions(waiting) == ["eyes"]
    assert len(forge.pulls(waiting.repository)) == 2


@pytest.mark.nightly
def test_a_refused_push_is_published_by_a_comment(scenario: Scenario) -> None:
    forge = scenario.forge
    forge.github.fail_next("*", r"git-receive-pack", 403, times=1)
    until(lambda: forge.final_comments(scenario.sleeper))
    assert "`@agent publish`" in scenario.first(scenario.sleeper)
    scenario.ask(scenario.sleeper, "@agent /ask what does it say?")
    until(lambda: len(forge.final_comments(scenario.sleeper)) == 2)
    request_count = len(scenario.plans.times("long"))
    scenario.ask(scenario.sleeper, "@agent publish")
    until(lambda: len(forge.final_comments(scenario.sleeper)) == 3)
    assert "Resolver opened" in forge.final_comments(scenario.sleeper)[-1].body
    scenario.ask(scenario.sleeper, "@agent publish")
    until(lambda: len(forge.final_comments(scenario.sleeper)) == 4)
    assert "nothing to publish" in forge.final_comments(scenario.sleeper)[-1].body
    assert len(forge.pulls(scenario.sleeper.repository)) == 1
    assert len(scenario.plans.times("long")) == request_count
