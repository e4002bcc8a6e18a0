"""The quota ledger, which is written before and after the work of a run."""

from datetime import UTC, datetime
from typing import Any

import pytest

from resolver.github.events.quota_ledger import QuotaLedger, read_ledger
from resolver.storage.ledger_ref import FILE, REF
from tests.parts.model_endpoint import Answer
from tests.parts.runs import finish
from tests.runs.scenario import FIX, SELDOM, SUMMARY, Scenario


def ledger_of(scenario: Scenario) -> QuotaLedger:
    text = scenario.repository.git.text("cat-file", "blob", f"{REF}:{FILE}")
    return read_ledger(text.encode(), datetime.now(UTC))


def test_a_run_is_reserved_before_its_work_and_recorded_after_it(scenario: Scenario) -> None:
    """A whole run: the story of the ledger. What is left of the money bounds the run."""
    seen: list[QuotaLedger] = []
    answers = iter([FIX, finish(SUMMARY)])

    def answer(_: Any) -> Answer:
        seen.append(ledger_of(scenario))
        return next(answers)

    scenario.endpoint.answer_with(answer)
    event = scenario.github.event_issue_comment(scenario.mention())
    done = scenario.action(event, RESOLVER_DAILY_BUDGET="0.5", **SELDOM)
    assert done.exit_code == 0, done.stdout + done.stderr
    [at_work] = seen[0].runs
    assert (at_work.ending, at_work.reserved, at_work.user) == ("", 0.5, "mona")
    assert "reduced to \\$0.50" in scenario.bot_comments()[-1]
    [run] = ledger_of(scenario).runs
    assert run.run == done.outcome["run"]
    assert (run.ending, run.reserved) == ("pull_request", 0.0)
    assert run.cost == pytest.approx(done.outcome["cost"])
    assert f"| mona | 1 of 50 | ${run.cost:.2f} of $100.00 |" in scenario.summary()
    assert run.thread == scenario.issue.number
    text = scenario.repository.git.text("cat-file", "blob", f"{REF}:{FILE}")
    for words in ("add add", "Make", "fix this", "canary", "octo"):
        assert words not in text, "the ledger holds no words of anybody"
