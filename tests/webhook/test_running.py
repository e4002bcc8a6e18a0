"""One running server, with all parts real: from a signed delivery to a pull request, and comments
that steer its run.

Whole runs, because nothing may be lost or done twice between the delivery and the pull request, and
because a comment has to reach a run in another process.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.parts.github import github_server
from tests.parts.github_server.state import Comment, Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import bash, finish
from tests.parts.stored_runs import log_in, outcomes_in, runs_in
from tests.parts.waiting import until
from tests.webhook.serving import FIX, SUMMARY, Forge, Plans, Server, plan_of_a_fix

SLEEP = bash("echo begun; sleep 301.5", timeout=400)


@pytest.fixture(scope="module")
def forge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forge]:
    with github_server(tmp_path_factory.mktemp("github")) as running:
        yield Forge(running)
        running.validate_everything()


@pytest.fixture(scope="module")
def plans() -> Iterator[Plans]:
    """The model's answers by the title of the issue."""
    with ModelEndpoint() as endpoint:
        made = Plans(endpoint)
        made.add("fix", *plan_of_a_fix())
        made.add("slow", *plan_of_a_fix(delay=0.7))
        made.add("stopped", SLEEP, FIX, finish(SUMMARY))
        yield made


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, forge: Forge, plans: Plans
) -> Iterator[Server]:
    started = Server(tmp_path_factory.mktemp("serve"), forge, plans.endpoint)
    started.start("--metrics-port", "0")
    yield started
    started.close()
    started.check()


def nothing_runs(server: Server) -> bool:
    ends = len(re.findall(r" run \S+ for \S+: | was handled before", server.log))
    return server.log.count(" starts for ") == ends


def test_a_mention_becomes_a_pull_request_and_one_comment(forge: Forge, server: Server) -> None:
    issue = forge.issue(forge.repository("one/main"), "fix")
    payload = forge.mention(issue)
    assert server.deliver(payload) == (202, "stored")
    asking = issue.comments[0]
    until(lambda: asking.reactions)
    assert [r.content for r in asking.reactions] == ["eyes"]
    until(lambda: forge.done_once(issue))
    [pull] = forge.pulls(issue.repository)
    assert pull.title == "Make add add"
    until(lambda: outcomes_in(server.runs))
    [run] = runs_in(server.runs)
    assert log_in(server.runs, run)
    counted = until(lambda: server.metrics().get("runs_total finished", 0) and server.metrics())
    assert counted["deliveries_total stored"] == 1 and counted["queue_requests waiting"] == 0
    assert counted["pull_request_seconds_count"] == 1


def test_nothing_is_done_twice(forge: Forge, server: Server, plans: Plans) -> None:
    """The same delivery again and again, and the same event under other ids, all at once."""
    issue = forge.issue(forge.repository("one/twice"), "slow")
    payload = forge.mention(issue)
    for delivery in ("first", "first", "second", "first", "third"):
        assert server.deliver(payload, delivery=delivery) == (202, "stored")
    until(lambda: forge.done_once(issue))
    assert server.deliver(payload, delivery="first") == (202, "stored")
    until(lambda: server.log.count("starts for one/twice#1") == 3 and nothing_runs(server))
    assert forge.done_once(issue)
    assert len(plans.times("slow")) == 2
    assert len(issue.comments[0].reactions) == 1
    [run] = [run for run in runs_in(server.runs) if b"one/twice" in log_in(server.runs, run)]
    assert log_in(server.runs, run).count(b'"run_started"') == 1


class Thread:
    """One issue, and what people write on it."""

    def __init__(self, forge: Forge, server: Server, plan: str) -> None:
        self.forge, self.server = forge, server
        self.issue = forge.issue(forge.repository(f"octo/{plan}"), plan)

    def say(self, text: str) -> Comment:
        comment = self.forge.github.add_comment(self.issue, text, "mona")
        payload = self.forge.github.event_issue_comment(comment)
        assert self.server.deliver(payload) == (202, "stored")
        return comment

    def again(self, comment: Comment) -> None:
        """The same comment, delivered under another id."""
        payload = self.forge.github.event_issue_comment(comment)
        assert self.server.deliver(payload) == (202, "stored")

    def final_comments(self) -> list[str]:
        return [c.body for c in self.forge.final_comments(self.issue)]

    def events(self) -> list[dict[str, Any]]:
        """Of the thread's runs, in order."""
        found: list[dict[str, Any]] = []
        for id in runs_in(self.server.runs):
            events = [json.loads(line) for line in log_in(self.server.runs, id).splitlines()]
            if events and events[0]["task"]["trigger"]["repository"] == self.repository:
                found += events
        return found

    @property
    def repository(self) -> str:
        return self.issue.repository.full_name

    def begun(self, word: str) -> None:
        """Wait until a command with this word is at work."""
        until(lambda: any(e["kind"] == "cmd_run" and word in e["command"] for e in self.events()))

    def pulls(self) -> list[Issue]:
        return self.forge.pulls(self.issue.repository)


def reactions(comment: Comment) -> list[str]:
    return [r.content for r in comment.reactions]


def test_a_stop_ends_a_long_command_and_says_who_stopped_it_and_how_to_continue(
    forge: Forge, server: Server, plans: Plans
) -> None:
    thread = Thread(forge, server, "stopped")
    thread.say("@agent please fix this")
    thread.begun("301.5")
    stop = thread.say("@agent stop. This is the wrong file")
    [result] = until(thread.final_comments, 20)
    assert "mona" in result and "stopped" in result
    assert "`@agent continue`" in result
    until(lambda: reactions(stop) == ["+1"])
    assert not thread.pulls()
    assert len(plans.times("stopped")) == 1

    going_on = thread.say("@agent continue, and use pytest -x")
    until(lambda: len(thread.final_comments()) == 2)
    assert len(plans.times("stopped")) == 3, "a reply of the log was asked for again"
    [pull] = thread.pulls()
    request_body = json.dumps(plans.endpoint.requests[-1].body)
    assert "use pytest -x" in request_body and "301.5" in request_body
    # it has its own run, whether or not the one before was still leaving
    assert "eyes" in reactions(going_on)
    assert f"#{thread.issue.number}" in pull.body

    thread.again(going_on)
    thread.again(stop)
    until(lambda: server.log.count("was handled before") >= 2)
    assert len(thread.final_comments()) == 2
    assert len(plans.times("stopped")) == 3
