"""Prepares outcomes for people: the texts of the tables in the terminal, dashboard and page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from resolver.models.outcome import PullRequestOutcome
from resolver.models.rate import Rate
from resolver.outcomes.summary import OutcomeGroup, OutcomeSummary, summarize_outcomes
from resolver.trace.plain import duration, money, one_line

OUTCOME_TEXTS = {
    "merged": "merged unchanged",
    "merged_with_edits": "merged with edits",
    "closed": "closed",
    "superseded": "superseded",
    "ignored": "ignored",
    "open": "open",
}
_DURABILITY_TEXTS = {
    "pending": "",
    "held": "held",
    "changed": "changed again",
    "reverted": "reverted",
}
_VERDICT_TEXTS = {"not_verified": "not verified"}
_MAX_GROUPS = 10
_MAX_TITLE = 80


@dataclass(frozen=True)
class OutcomeGroupRow:
    """A row of a table of groups. All values are texts, "" without a signal.

    accepted: such as "6 of 8". acceptance: such as "75%". interval: such as "41–93%".
    """

    name: str
    total: str
    accepted: str
    acceptance: str
    interval: str
    held: str
    reverted: str
    cost: str
    cost_per_merged: str
    survived: str
    rounds: str
    time_to_merge: str


@dataclass(frozen=True)
class OutcomePullRow:
    """A row of the list of pull requests."""

    number: int
    url: str
    title: str
    outcome: str
    survived: str
    durability: str
    rounds: str
    time_to_merge: str
    verdict: str
    model: str
    agent: str
    cost: str
    superseded_by: str


@dataclass(frozen=True)
class OutcomeReport:
    """Everything that people are shown of the outcomes of a repository.

    counts: pairs of an outcome and its number. groupings: the groups with the name of the property.
    has_signal: False if no pull request was merged or closed yet.
    """

    repository: str
    since: str
    has_signal: bool
    total: OutcomeGroupRow
    counts: tuple[tuple[str, int], ...]
    groupings: tuple[tuple[str, tuple[OutcomeGroupRow, ...]], ...]
    pulls: tuple[OutcomePullRow, ...]


def _unchanged(text: str) -> str:
    return text


def outcome_report(
    outcomes: Sequence[PullRequestOutcome],
    repository: str = "",
    since: datetime | None = None,
    escape: Callable[[str], str] = _unchanged,
) -> OutcomeReport:
    """Return the report. escape: makes names and titles from outside safe for where it is shown."""
    summary = summarize_outcomes(outcomes)
    return OutcomeReport(
        repository=repository,
        since=f"{since:%Y-%m-%d}" if since else "",
        has_signal=bool(summary.total.accepted.total),
        total=_group_row(summary.total, escape),
        counts=tuple(
            (OUTCOME_TEXTS[kind], count) for kind, count in summary.total.counts.items() if count
        ),
        groupings=_groupings(summary, escape),
        pulls=tuple(_pull_row(outcome, escape) for outcome in outcomes),
    )


def _groupings(
    summary: OutcomeSummary, escape: Callable[[str], str]
) -> tuple[tuple[str, tuple[OutcomeGroupRow, ...]], ...]:
    return tuple(
        (name, tuple(_group_row(group, escape) for group in groups[:_MAX_GROUPS]))
        for name, groups in summary.groupings
        if groups
    )


def _group_row(group: OutcomeGroup, escape: Callable[[str], str]) -> OutcomeGroupRow:
    return OutcomeGroupRow(
        name=escape(one_line(_VERDICT_TEXTS.get(group.name, group.name), 60)),
        total=f"{group.total:,}",
        accepted=_counts(group.accepted),
        acceptance=percent(group.accepted.share),
        interval=_interval(group.accepted),
        held=_counts(group.held),
        reverted=f"{group.reverted:,}" if group.held.total else "",
        cost=_dollars(group.cost),
        cost_per_merged=_dollars(group.cost_per_merged)
        if group.cost_per_merged is not None
        else "",
        survived=percent(group.survived),
        rounds="" if group.median_rounds is None else f"{group.median_rounds:g}",
        time_to_merge=_span(group.median_seconds_to_merge),
    )


def _pull_row(outcome: PullRequestOutcome, escape: Callable[[str], str]) -> OutcomePullRow:
    return OutcomePullRow(
        number=outcome.number,
        url=outcome.url,
        title=escape(one_line(outcome.title, _MAX_TITLE)),
        outcome=OUTCOME_TEXTS[outcome.outcome],
        survived=percent(outcome.survived) if outcome.outcome == "merged_with_edits" else "",
        durability=_DURABILITY_TEXTS.get(outcome.durability, ""),
        rounds=f"{outcome.rounds:,}",
        time_to_merge=_span(outcome.seconds_to_merge),
        verdict=_VERDICT_TEXTS.get(outcome.verdict, outcome.verdict),
        model=escape(one_line(outcome.model)),
        agent=escape(one_line(outcome.agent)),
        cost=_dollars(outcome.cost),
        superseded_by=f"#{outcome.superseded_by}" if outcome.superseded_by else "",
    )


def percent(share: float | None) -> str:
    """Return a share as percent, "" for None."""
    return "" if share is None else f"{share:.0%}"


def _interval(rate: Rate) -> str:
    low, high = rate.interval
    return f"{low:.0%}–{high:.0%}" if rate.total else ""


def _counts(rate: Rate) -> str:
    return f"{rate.count:,} of {rate.total:,}" if rate.total else ""


def _dollars(cost: float | None) -> str:
    """Return the cost, in cents if it is large enough for them; "" for None."""
    if cost is None:
        return ""
    return f"${cost:,.2f}" if cost >= 0.1 else money(cost)


def _span(seconds: float | None) -> str:
    """Return a duration in days if it is longer than two days."""
    if seconds is None:
        return ""
    return f"{seconds / 86_400:.0f} days" if seconds > 2 * 86_400 else duration(seconds)
