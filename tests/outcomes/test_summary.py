"""Rates, costs and groups of outcomes."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.config.templates import render
from resolver.entrypoints.webhook.outcome_pages import render_outcome_page
from resolver.models.outcome import PullRequestOutcome
from resolver.outcomes.report import outcome_report
from resolver.outcomes.summary import KINDS, outcomes_as_json, summarize_outcomes

NOW = datetime(2026, 11, 23, tzinfo=UTC)


def outcome(number: int, kind: Any, **more: Any) -> PullRequestOutcome:
    return PullRequestOutcome(number=number, outcome=kind, created_at=NOW, **more)


SAMPLE = (
    outcome(1, "merged", verdict="verified", cost=1.0, durability="held", labels=("bug", "api")),
    outcome(2, "merged_with_edits", verdict="verified", durability="reverted", survived=0.5),
    outcome(3, "closed", verdict="not_verified", cost=2.0, labels=("bug",)),
    outcome(4, "superseded", superseded_by=9),
    outcome(5, "superseded", superseded_by=1, superseded_by_own=True),
    outcome(6, "ignored"),
    outcome(7, "open"),
)


def test_the_acceptance_rate_is_of_merged_and_closed_ones() -> None:
    total = summarize_outcomes(SAMPLE).total
    assert (total.accepted.count, total.accepted.total) == (2, 4)
    assert (total.held.count, total.held.total, total.reverted) == (1, 2, 1)
    assert (total.cost, total.priced, total.cost_per_merged) == (3.0, 2, 3.0)
    assert total.survived == 0.5


def test_there_is_no_rate_without_a_signal() -> None:
    summary = summarize_outcomes([outcome(1, "open"), outcome(2, "ignored")])
    assert summary.total.accepted.share is None
    data = json.loads(json.dumps(outcomes_as_json("o/r", [], summary)))
    assert data["summary"]["acceptance"] == {
        "count": 0, "total": 0, "share": None, "interval": None,
    }  # fmt: skip
    report = outcome_report([outcome(1, "open")], "o/r", NOW)
    text = render("run/outcomes.txt.j2", report=report, days=14, page="")
    assert not report.has_signal and "%" not in text


def test_groups_are_by_verdict_and_label() -> None:
    summary = summarize_outcomes(SAMPLE)
    verdicts = {group.name: group.accepted.share for group in summary.by_verdict}
    assert verdicts == {"verified": 1.0, "not_verified": 0.0, "unknown": 0.0}
    assert [(group.name, group.total) for group in summary.by_label] == [("bug", 2), ("api", 1)]


@given(st.permutations(SAMPLE))
def test_the_order_of_outcomes_does_not_matter(shuffled: list[PullRequestOutcome]) -> None:
    assert summarize_outcomes(shuffled) == summarize_outcomes(SAMPLE)


@given(st.lists(st.sampled_from(KINDS), max_size=20))
def test_counts_add_up(kinds: list[Any]) -> None:
    total = summarize_outcomes(outcome(n, kind) for n, kind in enumerate(kinds)).total
    assert total.total == len(kinds)
    assert 0 <= total.accepted.count <= total.accepted.total <= len(kinds)


@pytest.mark.attack
def test_names_from_outside_are_escaped_in_a_page() -> None:
    """A title, a label or a link contains HTML: the page of the outcomes shows it as text."""
    hostile = "<script>alert(1)</script>\u202e\x1b[2J"
    page = render_outcome_page(
        "o/r",
        (outcome(1, "closed", title=hostile, labels=(hostile,), url="javascript:alert(1)"),),
    )
    assert "<script" not in page and "javascript:" not in page
    assert "\x1b" not in page and "\u202e" not in page and "&lt;script&gt;" in page
