"""Actions that wait for approval, in jobs of the Action: asked for, approved and denied.

Whole runs, because the approval comes in another job than the question.
"""

import re
import threading
from typing import Any

import pytest

from tests.parts.runs import Ended, bash, finish
from tests.runs.test_continue import Continuing, events_of, scenario
from tests.runs.test_github import SUMMARY

__all__ = ["scenario"]

RISKY = "printenv NO_SUCH_TOKEN; sed -i 's/a - b/a + b/' calc.py"
WAITS = {
    "RESOLVER_CONFIRMATION": "high",
    "RESOLVER_CONFIRMATION_OPTIONS": "{on_high: wait, wait_seconds: 0.5}",
}


def kinds(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["kind"] == kind]


def waiting(scenario: Continuing, **more: str) -> Ended:
    """A job that nobody answered in time."""
    scenario.endpoint.script(bash(RISKY))
    done = scenario.ask("@agent please fix this", **{**WAITS, **more})
    assert done.exit_code == 4, done.stdout + done.stderr
    return done


def test_a_later_approval_continues_from_the_log_and_executes_only_the_approved_action(
    scenario: Continuing,
) -> None:
    """Whole runs, because the approved action is that of the earlier run's log."""
    waiting(scenario)
    [named] = re.findall(r"`(@agent approve [0-9]{6})`", scenario.last_comment())
    scenario.github.add_user("eve")
    assert scenario.ask(named, author="eve", **WAITS).exit_code == 5, "a stranger approves nothing"
    other = "@agent approve 000000" if not named.endswith("000000") else "@agent approve 000001"
    done = scenario.ask(other, **WAITS)
    assert done.exit_code == 4, done.stdout + done.stderr
    assert not kinds(events_of(done), "confirmation_answered")
    assert len(kinds(events_of(done), "confirmation_asked")) == 2, "it asks again"
    assert len(scenario.endpoint.requests) == 1
    [named] = re.findall(r"`(@agent approve [0-9]{6})`", scenario.last_comment())
    scenario.endpoint.script(finish(SUMMARY))
    done = scenario.ask(f"{named} and thanks", **WAITS)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert len(scenario.endpoint.requests) == 2, "a reply of the log was asked for again"
    events = events_of(done)
    [answer] = kinds(events, "confirmation_answered")
    assert (answer["approved"], answer["by"]) == (True, "mona")
    assert len(kinds(events, "cmd_run")) == len(kinds(events, "cmd_output")) == 1
    [pull] = scenario.pulls()
    assert "a + b" in scenario.git("show", f"refs/heads/{pull.pull.head}:calc.py")
    again = scenario.ask("@agent approve", **WAITS)
    assert again.exit_code == 0
    assert "No action is waiting" in scenario.last_comment()
    assert len(scenario.endpoint.requests) == 2


@pytest.mark.nightly
def test_an_approval_where_nothing_waits_starts_nothing(scenario: Continuing) -> None:
    done = scenario.ask("@agent approve")
    assert done.exit_code == 0
    assert "No action is waiting for approval here" in scenario.last_comment()
    assert not scenario.endpoint.requests


@pytest.mark.parametrize("word", ["approve", pytest.param("deny", marks=pytest.mark.nightly)])
def test_a_decision_reaches_the_run_that_waits(scenario: Continuing, word: str) -> None:
    """A whole run, because the comment has to reach it in another thread while it waits."""
    scenario.endpoint.script(bash(RISKY), finish(SUMMARY))

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
    options = {"RESOLVER_CONFIRMATION_OPTIONS": "{on_high: wait, wait_seconds: 30}"}
    done = scenario.ask("@agent please fix this", **{**WAITS, **options})
    ended.set()
    watching.join()
    assert done.exit_code == (0 if word == "approve" else 3), done.stdout + done.stderr
    [answer] = kinds(events_of(done), "confirmation_answered")
    assert answer["approved"] is (word == "approve")
    assert len(scenario.bot_comments()) == 1
    [comment] = [c for c in scenario.issue.comments if c.body.startswith(f"@agent {word}")]
    assert [r.content for r in comment.reactions] == ["+1"]
