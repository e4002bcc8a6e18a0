"""Sums up the outcomes of a repository's pull requests: acceptance, durability, cost."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from resolver.models.outcome import OutcomeKind, PullRequestOutcome
from resolver.models.rate import Rate

KINDS: tuple[OutcomeKind, ...] = (
    "merged",
    "merged_with_edits",
    "closed",
    "superseded",
    "ignored",
    "open",
)

UNKNOWN = "unknown"
"""Name of the group whose value was not recorded."""

_JUDGED = frozenset({"held", "changed", "reverted"})


@dataclass(frozen=True)
class OutcomeGroup:
    """The outcomes of pull requests that have something in common.

    accepted: merged ones among those that were merged or closed.
    held: those whose lines nobody reverted or changed again, among the merged ones whose window is
        over.
    reverted: reverted ones among them.
    cost: US dollars of the pull requests whose cost is known, `priced` in number; None if there is
        none. cost_per_merged: the same by merged one among them.
    """

    name: str
    counts: Mapping[OutcomeKind, int]
    accepted: Rate
    held: Rate
    reverted: int
    cost: float | None
    priced: int
    cost_per_merged: float | None
    survived: float | None
    median_rounds: float | None
    median_seconds_to_merge: float | None

    @property
    def total(self) -> int:
        """The number of pull requests."""
        return sum(self.counts.values())


@dataclass(frozen=True)
class OutcomeSummary:
    """The outcomes of a repository's pull requests, in total and by property, largest first."""

    total: OutcomeGroup
    by_verdict: tuple[OutcomeGroup, ...]
    by_model: tuple[OutcomeGroup, ...]
    by_agent: tuple[OutcomeGroup, ...]
    by_label: tuple[OutcomeGroup, ...]

    @property
    def groupings(self) -> tuple[tuple[str, tuple[OutcomeGroup, ...]], ...]:
        """The groups with the name of the property."""
        return (
            ("verdict", self.by_verdict),
            ("model", self.by_model),
            ("agent", self.by_agent),
            ("label", self.by_label),
        )


def summarize_outcomes(outcomes: Iterable[PullRequestOutcome]) -> OutcomeSummary:
    """Return the summary. The order of the outcomes does not matter."""
    known = sorted(outcomes, key=lambda outcome: outcome.number)
    return OutcomeSummary(
        total=_summarize_group("all", known),
        by_verdict=_group(known, lambda outcome: [outcome.verdict or UNKNOWN]),
        by_model=_group(known, lambda outcome: [outcome.model or UNKNOWN]),
        by_agent=_group(known, lambda outcome: [outcome.agent or UNKNOWN]),
        by_label=_group(known, lambda outcome: dict.fromkeys(outcome.labels)),
    )


def counts_as_closed(outcome: PullRequestOutcome) -> bool:
    """Return True if the pull request was closed, and its work was not accepted in another one."""
    return outcome.outcome == "closed" or (
        outcome.outcome == "superseded" and not outcome.superseded_by_own
    )


def _group(
    outcomes: Sequence[PullRequestOutcome],
    names_of: Callable[[PullRequestOutcome], Iterable[str]],
) -> tuple[OutcomeGroup, ...]:
    groups: dict[str, list[PullRequestOutcome]] = {}
    for outcome in outcomes:
        for name in names_of(outcome):
            groups.setdefault(name, []).append(outcome)
    summarized = (_summarize_group(name, members) for name, members in groups.items())
    return tuple(sorted(summarized, key=lambda group: (-group.total, group.name)))


def _summarize_group(name: str, outcomes: Sequence[PullRequestOutcome]) -> OutcomeGroup:
    merged = [outcome for outcome in outcomes if outcome.is_merged]
    closed = sum(counts_as_closed(outcome) for outcome in outcomes)
    judged = [outcome for outcome in merged if outcome.durability in _JUDGED]
    priced = [outcome for outcome in outcomes if outcome.cost is not None]
    cost = sum(outcome.cost or 0.0 for outcome in priced) if priced else None
    priced_merges = sum(outcome.is_merged for outcome in priced)
    shares = [outcome.survived for outcome in merged if outcome.survived is not None]
    times = [outcome.seconds_to_merge for outcome in merged if outcome.seconds_to_merge is not None]
    return OutcomeGroup(
        name=name,
        counts={kind: sum(outcome.outcome == kind for outcome in outcomes) for kind in KINDS},
        accepted=Rate(len(merged), len(merged) + closed),
        held=Rate(sum(outcome.durability == "held" for outcome in judged), len(judged)),
        reverted=sum(outcome.durability == "reverted" for outcome in judged),
        cost=cost,
        priced=len(priced),
        cost_per_merged=cost / priced_merges if cost is not None and priced_merges else None,
        survived=sum(shares) / len(shares) if shares else None,
        median_rounds=median(outcome.rounds for outcome in merged) if merged else None,
        median_seconds_to_merge=median(times) if times else None,
    )


def outcomes_as_json(
    repository: str, outcomes: Sequence[PullRequestOutcome], summary: OutcomeSummary
) -> dict[str, Any]:
    """Return the outcomes and their summary as JSON values."""
    return {
        "repository": repository,
        "summary": _group_as_json(summary.total),
        **{f"by_{name}": [_group_as_json(g) for g in groups] for name, groups in summary.groupings},
        "pull_requests": [
            {**outcome.model_dump(mode="json"), "seconds_to_merge": outcome.seconds_to_merge}
            for outcome in outcomes
        ],
    }


def _group_as_json(group: OutcomeGroup) -> dict[str, Any]:
    return {
        "name": group.name,
        "total": group.total,
        "counts": dict(group.counts),
        "acceptance": _rate_as_json(group.accepted),
        "held": _rate_as_json(group.held),
        "reverted": group.reverted,
        "cost": group.cost,
        "priced": group.priced,
        "cost_per_merged": group.cost_per_merged,
        "survived": group.survived,
        "median_rounds": group.median_rounds,
        "median_seconds_to_merge": group.median_seconds_to_merge,
    }


def _rate_as_json(rate: Rate) -> dict[str, Any]:
    """Return a rate; its share and interval are null while there is no case."""
    return {
        "count": rate.count,
        "total": rate.total,
        "share": rate.share,
        "interval": list(rate.interval) if rate.total else None,
    }
