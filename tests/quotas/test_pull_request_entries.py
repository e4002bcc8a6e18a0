"""Tests of the ledger's entries of pull requests, which runs and outcomes write."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.github.events.quota_ledger import (
    MAX_PULL_REQUESTS,
    LedgerPullRequest,
    QuotaLedger,
    normalize_label,
    read_ledger,
    serialize_ledger,
)
from resolver.models.outcome import PullRequestOutcome
from resolver.runs.quotas.dashboard import dashboard_body
from resolver.runs.quotas.pull_request_entries import (
    PublishedWork,
    add_outcomes_to_ledger,
    add_work_to_ledger,
    published_work,
    recorded_outcome,
)
from resolver.runs.stages import PublishedRun, StageValues
from tests.github.events.ledgers import NOW, ended
from tests.runs.plain_values import executed_values, published_values, run_request

WORK = PublishedWork(40, 12, True, "a" * 40, "CodeActAgent", "acme/large-1", "verified")


def after(
    ledger: QuotaLedger, number: int, work: PublishedWork | None, **more: object
) -> QuotaLedger:
    run = ended(number, **more)  # type: ignore[arg-type]
    opened = work.number if work else 0
    run = run.model_copy(update={"opened": opened})
    return add_work_to_ledger(ledger.with_run(run), run, work)


@pytest.fixture
def published(tmp_path: Path) -> StageValues:
    """A run on issue 12 that has opened pull request 7."""
    return published_values(executed_values(run_request(tmp_path)))


def changed(values: StageValues, **changes: object) -> StageValues:
    """Return the values with another publication."""
    publication = values.publication.model_copy(update=changes)
    return values.with_value(PublishedRun(publication))


def test_the_work_on_an_issue_is_what_was_published(published: StageValues) -> None:
    work = published_work(published)
    assert work is not None
    assert (work.number, work.issue, work.is_own, work.head) == (7, 12, True, "d" * 40)
    assert work.verdict == "not_verified"
    pushed = published_work(changed(published, how="pushed"))
    assert pushed is not None and not pushed.is_own


def test_the_work_on_a_pull_request_belongs_to_no_issue(tmp_path: Path) -> None:
    request = run_request(tmp_path)
    trigger = request.trigger.model_copy(update={"is_pull_request": True})
    on_pull = published_values(executed_values(replace(request, trigger=trigger)))
    work = published_work(changed(on_pull, how="separate"))
    assert work is not None and (work.issue, work.is_own) == (0, True)


@pytest.mark.parametrize(
    "changes",
    [
        {"pull_request": None},
        {"commit": None},
        {"how": "unchanged"},
        {"repeated": True},
        {"repository": "fork/calc"},
    ],
)
def test_what_changes_no_pull_request_here_is_no_work(
    published: StageValues, changes: dict[str, object]
) -> None:
    assert published_work(changed(published, **changes)) is None


def test_a_new_pull_request_has_the_cost_of_all_runs_on_its_issue() -> None:
    ledger = after(QuotaLedger(), 1, None, cost=2.0)
    assert ledger.pull_requests == ()
    ledger = after(ledger, 2, WORK, cost=0.5)
    (entry,) = ledger.pull_requests
    assert (entry.number, entry.issue, entry.cost, entry.is_priced) == (40, 12, 2.5, True)
    assert (entry.agent, entry.model, entry.verdict) == ("CodeActAgent", "acme/large-1", "verified")
    # a second pull request for the issue has only the runs after the first
    (_, second) = after(ledger, 3, replace(WORK, number=41), cost=0.25).pull_requests
    assert second.cost == 2.25


def test_later_runs_add_their_cost_and_the_last_push_decides_head_and_verdict() -> None:
    ledger = after(QuotaLedger(), 1, WORK, cost=1.0)
    pushed = replace(WORK, is_own=False, head="b" * 40, verdict="not_verified", model="other")
    ledger = after(ledger, 2, pushed, thread=40, cost=0.5, pull_request=True)
    ledger = after(ledger, 3, None, thread=40, cost=0.25, pull_request=True, unpriced=1)
    ledger = after(ledger, 4, None, cost=0.25)
    (entry,) = ledger.pull_requests
    assert (entry.cost, entry.is_priced) == (2.0, False)
    assert (entry.head, entry.verdict, entry.model) == ("b" * 40, "not_verified", "acme/large-1")


def test_a_push_to_a_persons_pull_request_makes_no_entry() -> None:
    assert after(QuotaLedger(), 1, replace(WORK, is_own=False)).pull_requests == ()


def test_names_of_another_form_are_left_out() -> None:
    odd = replace(WORK, agent="a b", model="<!-- x -->", head="HEAD")
    (entry,) = after(QuotaLedger(), 1, odd).pull_requests
    assert (entry.agent, entry.model, entry.head) == ("", "", "")


def test_an_outcome_is_read_as_it_was_recorded() -> None:
    outcome = PullRequestOutcome(
        number=40, issue=12, outcome="merged_with_edits", created_at=NOW, ended_at=NOW,
        survived=0.5, rounds=2, durability="changed", changed_lines=3, agent="CodeActAgent",
        model="acme/large-1", verdict="verified", cost=0.5, labels=("bug",),
    )  # fmt: skip
    ledger = add_outcomes_to_ledger(after(QuotaLedger(), 1, WORK, cost=0.5), [outcome])
    assert recorded_outcome(ledger.pull_requests[0]) == outcome
    stored = read_ledger(serialize_ledger(ledger, NOW), NOW)
    assert stored.pull_requests == ledger.pull_requests and stored.damaged == 0
    assert add_outcomes_to_ledger(stored, [outcome]) == stored


def test_the_number_of_entries_is_bounded() -> None:
    old = NOW - timedelta(days=366)
    entries = [LedgerPullRequest(number=n, at=NOW) for n in range(1, MAX_PULL_REQUESTS + 9)]
    ledger = QuotaLedger(pull_requests=(LedgerPullRequest(number=9999, at=old), *entries))
    data = serialize_ledger(ledger, NOW)
    kept = read_ledger(data, NOW).pull_requests
    assert len(kept) == MAX_PULL_REQUESTS and kept[-1].number == MAX_PULL_REQUESTS + 8


@given(st.text(max_size=80))
def test_every_label_is_brought_to_a_form_that_the_ledger_takes(label: str) -> None:
    outcome = PullRequestOutcome(number=1, outcome="open", created_at=NOW, labels=(label,) * 3)
    ledger = add_outcomes_to_ledger(QuotaLedger(), [outcome])
    stored = read_ledger(serialize_ledger(ledger, NOW), NOW)
    assert stored.damaged == 0
    assert stored.pull_requests[0].labels == tuple(filter(None, [normalize_label(label)]))


def test_the_dashboard_shows_outcomes_as_soon_as_there_is_a_signal() -> None:
    opened = after(QuotaLedger(), 1, WORK, cost=0.5)
    assert "accepted" not in dashboard_body(opened, "@agent", NOW)
    merged = PullRequestOutcome(number=40, outcome="merged", created_at=NOW, labels=("a `b`",))
    text = dashboard_body(add_outcomes_to_ledger(opened, [merged]), "@agent", NOW)
    assert "**100%** accepted: 1 of 1" in text and "| `acme/large-1` | 1 |" in text
    assert "$0.50" in text
