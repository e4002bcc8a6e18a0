"""Decides what became of a pull request, from facts alone."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from resolver.models.outcome import (
    Durability,
    OutcomeKind,
    PullRequestActivity,
    PullRequestFacts,
    PullRequestOutcome,
    Replacement,
)

OBSERVATION_WINDOW = timedelta(days=14)
"""Time after the merge in which reverts and further changes of the same lines count."""

IGNORED_AFTER = timedelta(days=14)
"""Time without a reaction of a person after which an open pull request counts as ignored."""


@dataclass(frozen=True)
class LineEvidence:
    """What git shows of a merged pull request.

    is_unchanged: True if the merged change is Resolver's, line by line.
    survived: share of Resolver's lines that were merged; None if unknown.
    durability: "" if nobody has looked.
    """

    is_unchanged: bool = False
    survived: float | None = None
    durability: Literal["", "held", "changed", "reverted", "unknown"] = ""
    changed_lines: int = 0


def is_window_over(facts: PullRequestFacts, now: datetime) -> bool:
    """Return True if the pull request was merged long enough ago to say if it held."""
    return (
        facts.state == "merged"
        and facts.ended_at is not None
        and now - facts.ended_at >= OBSERVATION_WINDOW
    )


def is_final(
    outcome: PullRequestOutcome, state: Literal["open", "closed", "merged"], now: datetime
) -> bool:
    """Return True if an outcome that was found out earlier needs no other look.

    state: the current one. A closed pull request may be opened again, and what replaces it may be
    merged later.
    """
    if state == "merged":
        return outcome.is_merged and outcome.durability != "pending"
    if state == "open" or outcome.ended_at is None:
        return False
    return outcome.outcome == "superseded" or (
        outcome.outcome == "closed" and now - outcome.ended_at >= OBSERVATION_WINDOW
    )


def choose_replacement(
    pull: PullRequestFacts, candidates: Iterable[Replacement]
) -> Replacement | None:
    """Return the pull request that was merged instead, None if there is none.

    One that was merged before this one was opened did not replace it. Resolver's own one is
    preferred, because then its work was accepted.
    """
    later = [
        candidate
        for candidate in candidates
        if candidate.number != pull.number and candidate.merged_at >= pull.created_at
    ]
    return max(later, key=lambda candidate: (candidate.is_own, candidate.merged_at), default=None)


def classify_outcome(
    facts: PullRequestFacts,
    now: datetime,
    lines: LineEvidence | None = None,
    replacement: Replacement | None = None,
) -> PullRequestOutcome:
    """Return the outcome. lines: evidence of a merged pull request, if git was asked.

    replacement: of a closed pull request, if there is one.
    """
    outcome = _outcome_kind(facts, now, lines, replacement)
    is_superseded = outcome == "superseded" and replacement is not None
    return PullRequestOutcome(
        number=facts.number,
        title=facts.title,
        url=facts.url,
        issue=facts.issue,
        outcome=outcome,
        created_at=facts.created_at,
        ended_at=facts.ended_at,
        survived=_survived(facts, lines),
        rounds=count_review_rounds(facts.activities),
        durability=_durability(facts, now, lines),
        changed_lines=lines.changed_lines if lines else 0,
        superseded_by=replacement.number if replacement and is_superseded else None,
        superseded_by_own=bool(replacement and is_superseded and replacement.is_own),
        agent=facts.work.agent,
        model=facts.work.model,
        verdict=facts.work.verdict,
        cost=facts.work.cost,
        labels=facts.labels,
    )


def _outcome_kind(
    facts: PullRequestFacts,
    now: datetime,
    lines: LineEvidence | None,
    replacement: Replacement | None,
) -> OutcomeKind:
    if facts.state == "merged":
        is_unchanged = not facts.has_moved or (lines is not None and lines.is_unchanged)
        return "merged" if is_unchanged else "merged_with_edits"
    if facts.state == "closed":
        return "superseded" if replacement is not None else "closed"
    reactions = (activity.at for activity in facts.activities if activity.by_person)
    newest = max((facts.created_at, *reactions))
    return "ignored" if now - newest >= IGNORED_AFTER else "open"


def _survived(facts: PullRequestFacts, lines: LineEvidence | None) -> float | None:
    if facts.state != "merged":
        return None
    return lines.survived if facts.has_moved and lines else None if facts.has_moved else 1.0


def _durability(facts: PullRequestFacts, now: datetime, lines: LineEvidence | None) -> Durability:
    if facts.state != "merged":
        return ""
    if lines is not None and lines.durability == "reverted":
        return "reverted"
    if not is_window_over(facts, now):
        return "pending"
    return (lines.durability if lines else "") or "unknown"


def count_review_rounds(activities: Iterable[PullRequestActivity]) -> int:
    """Return the number of rounds of review by people.

    Everything that people say between two commits is one round if it contains a review, or if a
    commit follows.
    """
    rounds = 0
    has_review = has_comment = False
    for activity in sorted(activities, key=lambda activity: (activity.at, activity.kind)):
        if activity.kind == "commit":
            rounds += has_review or has_comment
            has_review = has_comment = False
        elif activity.by_person:
            has_review |= activity.kind == "review"
            has_comment |= activity.kind == "comment"
    return rounds + has_review
