"""Comments that steer runs, over one running server: real deliveries, git, sandbox and model.

Whole runs, because a comment has to reach a run in another process.
"""

import json
from typing import Any

from tests.parts.github_server.state import Comment, Issue
from tests.parts.runs import bash, finish
from tests.parts.stored_runs import log_in, runs_in
from tests.parts.waiting import until
from tests.webhook.serving import FIX, SUMMARY, Forge, Plans, Server

SLEEP = bash("echo begun; sleep 301.5", timeout=400)

SETTINGS = {
    "RESOLVER_MODEL_OPTIONS": "{input_cost_per_token: 0.000001, output_cost_per_token: 0.000001}",
    "RESOLVER_MAX_ITERATIONS": "4",
}


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
    """Whole runs, because a comment has to end a command in the sandbox of another process."""
    plans.add("stopped", SLEEP, FIX, finish(SUMMARY))
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
