"""Actions that wait for a person, in jobs of the Action: told in the thread, approved, denied."""

import re
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, Ended, bash, finish, make_checkout
from tests.runs.test_continue import Continuing, events_of, scene
from tests.runs.test_github import SUMMARY

__all__ = ["scene"]

RISKY = "printenv NO_SUCH_TOKEN; sed -i 's/a - b/a + b/' calc.py"
WAITS = {
    "RESOLVER_CONFIRMATION": "high",
    "RESOLVER_CONFIRMATION_OPTIONS": "{on_high: wait, wait_seconds: 0.5}",
}


def kinds(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["kind"] == kind]


def waiting(scene: Continuing, **more: str) -> Ended:
    """A job that nobody answered in time."""
    scene.endpoint.script(bash(RISKY))
    done = scene.ask("@agent please fix this", **{**WAITS, **more})
    assert done.exit_code == 4, done.stdout + done.stderr
    return done


def test_a_run_that_nobody_answers_ends_with_what_waits_in_its_one_comment(
    scene: Continuing,
) -> None:
    done = waiting(scene)
    assert done.outcome["state"] == "awaiting_confirmation"
    [told] = scene.bot_comments()
    assert f"```bash\n{RISKY}\n```" in told
    assert "credential: " in told
    assert re.search(r"`@agent approve [0-9]{6}`", told) and "`@agent deny <reason>`" in told
    assert "and to continue the run from here" in told
    assert not scene.pulls()
    events = events_of(done)
    assert len(kinds(events, "confirmation_asked")) == 1
    assert not kinds(events, "cmd_output")


def test_a_later_approval_goes_on_from_the_log_and_does_just_that(scene: Continuing) -> None:
    """Whole runs, because the approved action is that of the earlier run's log."""
    waiting(scene)
    [named] = re.findall(r"`(@agent approve [0-9]{6})`", scene.told())
    scene.github.add_user("eve")
    assert scene.ask(named, author="eve", **WAITS).exit_code == 5, "a stranger approves nothing"
    other = "@agent approve 000000" if not named.endswith("000000") else "@agent approve 000001"
    done = scene.ask(other, **WAITS)
    assert done.exit_code == 4, done.stdout + done.stderr
    assert not kinds(events_of(done), "confirmation_answered")
    assert len(kinds(events_of(done), "confirmation_asked")) == 2, "it asks again"
    assert len(scene.endpoint.requests) == 1
    [named] = re.findall(r"`(@agent approve [0-9]{6})`", scene.told())
    scene.endpoint.script(finish(SUMMARY))
    done = scene.ask(f"{named} and thanks", **WAITS)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert len(scene.endpoint.requests) == 2, "a reply of the log was asked for again"
    events = events_of(done)
    [answer] = kinds(events, "confirmation_answered")
    assert (answer["approved"], answer["by"]) == (True, "mona")
    assert len(kinds(events, "cmd_run")) == len(kinds(events, "cmd_output")) == 1
    [pull] = scene.pulls()
    assert "a + b" in scene.git("show", f"refs/heads/{pull.pull.head}:calc.py")
    again = scene.ask("@agent approve", **WAITS)
    assert again.exit_code == 0
    assert "No action is waiting" in scene.told()
    assert len(scene.endpoint.requests) == 2


def test_a_later_denial_gives_the_agent_the_reason(scene: Continuing) -> None:
    waiting(scene)
    scene.endpoint.script(bash("sed -i 's/a - b/a + b/' calc.py"), finish(SUMMARY))
    done = scene.ask("@agent deny: leave the environment alone", **WAITS)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "leave the environment alone" in str(scene.endpoint.requests[1].body)
    [answer] = kinds(events_of(done), "confirmation_answered")
    assert (answer["approved"], answer["reason"]) == (False, "leave the environment alone")
    assert scene.pulls()


def test_an_approval_where_nothing_waits_starts_nothing(scene: Continuing) -> None:
    done = scene.ask("@agent approve")
    assert done.exit_code == 0
    assert "No action is waiting for approval here" in scene.told()
    assert not scene.endpoint.requests


@pytest.mark.parametrize("word", ["approve", "deny"])
def test_a_decision_reaches_the_run_that_waits(scene: Continuing, word: str) -> None:
    scene.endpoint.script(bash(RISKY), finish(SUMMARY))

    def decide() -> None:
        scene.github.advance(2)
        scene.github.add_comment(scene.issue, f"@agent {word}", "mona")

    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.1):
            if "Resolver is **waiting for approval**" in scene.told():
                decide()
                return

    watching = threading.Thread(target=watch)
    watching.start()
    options = {"RESOLVER_CONFIRMATION_OPTIONS": "{on_high: wait, wait_seconds: 30}"}
    done = scene.ask("@agent please fix this", **{**WAITS, **options})
    ended.set()
    watching.join()
    assert done.exit_code == (0 if word == "approve" else 3), done.stdout + done.stderr
    [answer] = kinds(events_of(done), "confirmation_answered")
    assert answer["approved"] is (word == "approve")
    assert len(scene.bot_comments()) == 1
    [comment] = [c for c in scene.issue.comments if c.body.startswith(f"@agent {word}")]
    assert [r.content for r in comment.reactions] == ["+1"]


def test_on_a_local_checkout_nobody_is_asked_and_the_way_on_is_said(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    command_line.environment |= WAITS
    model_endpoint.script(bash(RISKY), finish(SUMMARY))
    done = command_line.call_resolve(make_checkout(tmp_path / "calc", {"calc.py": "a - b\n"}))
    assert done.exit_code == 4, done.stderr
    assert f"RESOLVER_CONFIRMATION=never resolver resolve --resume {done.output}" in done.stderr
    assert "Nobody could be asked" in done.stderr
    assert len(model_endpoint.requests) == 1
