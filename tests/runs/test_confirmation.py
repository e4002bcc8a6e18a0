"""Actions that wait for approval, in jobs of the Action: approved and denied."""

import threading
from typing import Any

import pytest

from tests.parts.runs import bash, finish
from tests.runs.test_continue import Continuing, events_of, scenario
from tests.runs.test_github import SUMMARY

__all__ = ["scenario"]

RISKY = "sed -i 's/a - b/a + b/' calc.py"


def kinds(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["kind"] == kind]


@pytest.mark.parametrize("word", ["approve"])
def test_a_decision_reaches_the_run_that_waits(scenario: Continuing, word: str) -> None:
    """A whole run, because the comment has to reach it in another thread while it waits."""
    scenario.endpoint.script(bash(RISKY, security_risk="HIGH"), finish(SUMMARY))

    def decide() -> None:
        scenario.github.advance(2)
        scenario.github.add_comment(scenario.issue, f"@agent {word}", "mona")

    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.1):
            if "Resolver is **waiting for approval**" in scenario.last_comment():
                decide()
                return

    watching = threading.Thread(target=watch)
    watching.start()
    options = {"RESOLVER_CONFIRMATION": "risky"}
    done = scenario.ask("@agent please fix this", **options)
    ended.set()
    watching.join()
    assert done.exit_code == (0 if word == "approve" else 3), done.stdout + done.stderr
    [answer] = kinds(events_of(done), "confirmation_answered")
    assert answer["approved"] is (word == "approve")
    assert len(scenario.bot_comments()) == 1
    [comment] = [c for c in scenario.issue.comments if c.body.startswith(f"@agent {word}")]
    assert [r.content for r in comment.reactions] == ["+1"]
