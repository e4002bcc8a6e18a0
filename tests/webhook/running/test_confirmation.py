"""Actions that wait for a person, over one running server.

Whole runs, because the approval has to reach a run that waits in another process.
"""

import signal
from typing import Any

import pytest

from tests.parts.runs import bash, finish
from tests.parts.waiting import until
from tests.webhook.running.test_commands import Thread
from tests.webhook.serving import SUMMARY, Forge, Plans, Server

SETTINGS = {"RESOLVER_CONFIRMATION": "risky"}
RISKY = bash("sed -i 's/a - b/a + b/' calc.py", security_risk="HIGH")


def asks(thread: Thread) -> bool:
    return any(
        "Resolver is **waiting for approval**" in result for result in thread.final_comments()
    )


def answers(thread: Thread) -> list[dict[str, Any]]:
    return [e for e in thread.events() if e["kind"] == "confirmation_answered"]


def begun(forge: Forge, server: Server, plans: Plans, plan: str) -> Thread:
    plans.add(plan, RISKY, finish(SUMMARY))
    thread = Thread(forge, server, plan)
    thread.say("@agent please fix this")
    until(lambda: asks(thread))
    forge.github.advance(2)
    return thread


# By day, resuming at the question: tests/runs; a killed server: test_crashes.py.
@pytest.mark.nightly
def test_a_run_that_was_killed_while_it_waited_asks_on_and_is_approved_once(
    forge: Forge, server: Server, plans: Plans
) -> None:
    thread = begun(forge, server, plans, "killed")
    server.end(signal.SIGKILL)
    server.start()
    until(lambda: sum(e["kind"] == "confirmation_asked" for e in thread.events()) == 2)
    forge.github.advance(2)
    thread.say("@agent approve")
    until(thread.pulls)
    assert len(answers(thread)) == 1
    until(lambda: not asks(thread))
    until(thread.final_comments)
    assert len(thread.final_comments()) == 1
