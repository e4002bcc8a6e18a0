"""Quotas and chains of bots, through the Action's entry point on the test GitHub.

Whole runs, because the ledger is written before and after the work of each, and read by the next.
"""

from datetime import UTC, datetime
from typing import Any

import pytest

from resolver.github.events.quota_ledger import QuotaLedger, read_ledger
from resolver.storage.ledger_ref import FILE, REF
from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import Answer, ModelEndpoint
from tests.parts.runs import CommandLine, Ended, finish
from tests.runs.scenario import FIX, SUMMARY, Scenario


class GuardedScenario(Scenario):
    """A scenario whose ledger can be looked at."""

    def __init__(self, github: GitHubServer, line: CommandLine, endpoint: ModelEndpoint) -> None:
        super().__init__(github, line, endpoint)
        line.environment |= {
            "RESOLVER_BOT_LOGIN": "resolver-bot",
            "RESOLVER_PACE": '{"command_interval": 1, "write_interval": 0}',
        }

    def ledger(self) -> QuotaLedger:
        git = self.repository.git
        if not git.text("for-each-ref", REF).strip():
            return QuotaLedger()
        return read_ledger(
            git.text("cat-file", "blob", f"{REF}:{FILE}").encode(), datetime.now(UTC)
        )

    def ask(self, author: str = "mona", **environment: str) -> Ended:
        return self.action(self.github.event_issue_comment(self.mention(author)), **environment)


SCENARIO = GuardedScenario


def test_a_run_is_reserved_before_its_work_and_recorded_after_it(scenario: GuardedScenario) -> None:
    """A whole run: the story of the ledger. What is left of the money bounds the run."""
    seen: list[QuotaLedger] = []
    answers = iter([FIX, finish(SUMMARY)])

    def answer(_: Any) -> Answer:
        seen.append(scenario.ledger())
        return next(answers)

    scenario.endpoint.answer_with(answer)
    done = scenario.ask(RESOLVER_DAILY_BUDGET="0.5")
    assert done.exit_code == 0, done.stdout + done.stderr
    [at_work] = seen[0].runs
    assert (at_work.ending, at_work.reserved, at_work.user) == ("", 0.5, "mona")
    assert "reduced to \\$0.50" in scenario.bot_comments()[-1]
    [run] = scenario.ledger().runs
    assert run.run == done.outcome["run"]
    assert (run.ending, run.reserved) == ("pull_request", 0.0)
    assert run.cost == pytest.approx(done.outcome["cost"])
    assert f"| mona | 1 of 50 | ${run.cost:.2f} of $100.00 |" in scenario.summary()
    assert run.thread == scenario.issue.number
    text = scenario.repository.git.text("cat-file", "blob", f"{REF}:{FILE}")
    for words in ("add add", "Make", "fix this", "canary", "octo"):
        assert words not in text, "the ledger holds no words of anybody"
