"""An action that waits for approval, in a job of the Action."""

import threading

from tests.parts.runs import bash, finish
from tests.runs.test_continue import Continuing, events_of, scenario
from tests.runs.test_github import SUMMARY

__all__ = ["scenario"]

RISKY = "sed -i 's/a - b/a + b/' calc.py"


def test_a_decision_reaches_the_run_that_waits(scenario: Continuing) -> None:
    """A whole run, because the comment has to reach it in another thread while it waits."""
    scenario.endpoint.script(bash(RISKY, security_risk="HIGH"), finish(SUMMARY))

    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.1):
            if "Resolver is **waiting for approval**" in scenario.last_comment():
                scenario.github.advance(2)
                scenario.github.add_comment(scenario.issue, "@agent approve", "mona")
                return

    watching = threading.Thread(target=watch)
    watching.start()
    done = scenario.ask("@agent please fix this", RESOLVER_CONFIRMATION="risky")
    ended.set()
    watching.join()
    assert done.exit_code == 0, done.stdout + done.stderr
    [answer] = [e for e in events_of(done) if e["kind"] == "confirmation_answered"]
    assert answer["approved"] is True
    assert len(scenario.bot_comments()) == 1
    [comment] = [c for c in scenario.issue.comments if c.body.startswith("@agent approve")]
    assert [r.content for r in comment.reactions] == ["+1"]
