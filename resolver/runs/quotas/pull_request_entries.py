"""Records in the quota ledger how Resolver's pull requests were made and what became of them.

The entry of a pull request has what GitHub does not know: the agent, the model, the verdict, the
cost, and the last commit that Resolver pushed. An Action and a server read the same ledger.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from resolver.git.remote import OBJECT_ID
from resolver.github.events.quota_ledger import (
    MAX_DOLLARS,
    MAX_LABELS_KEPT,
    LedgerPullRequest,
    LedgerRun,
    QuotaLedger,
    normalize_label,
)
from resolver.models.outcome import PullRequestOutcome, RecordedWork
from resolver.runs.reporting import displayed_model
from resolver.runs.stages import StageValues

_OPENING = frozenset({"new", "added", "separate"})
"""Ways to publish a change that end in a pull request of Resolver's own."""

_CHANGING = _OPENING | {"pushed", "updated"}

_UNDECIDED = frozenset({"open", "ignored"})


@dataclass(frozen=True)
class PublishedWork:
    """The change that a run has pushed to a pull request.

    is_own: True if Resolver has opened the pull request. head: the pushed commit.
    """

    number: int
    issue: int
    is_own: bool
    head: str
    agent: str
    model: str
    verdict: str


def published_work(values: StageValues) -> PublishedWork | None:
    """Return the change that the run has pushed to a pull request of the repository, or None."""
    publication = values.publication
    pull = publication.pull_request
    if pull is None or not pull.number or publication.repeated or publication.repository:
        return None
    if publication.how not in _CHANGING or publication.commit is None:
        return None
    trigger = values.current_request.trigger
    opening = values.log.opening if values.log else None
    return PublishedWork(
        number=pull.number,
        issue=0 if trigger.is_pull_request else trigger.subject or 0,
        is_own=publication.how in _OPENING,
        head=publication.commit,
        agent=opening.agent if opening else "",
        model=displayed_model(values),
        verdict=values.verification.verdict if values.verification else "not_verified",
    )


def add_work_to_ledger(
    ledger: QuotaLedger, attempt: LedgerRun, work: PublishedWork | None
) -> QuotaLedger:
    """Return the ledger with the work of a run added to the entry of its pull request.

    attempt: the run, with the cost of this attempt alone. A run that pushed nothing, such as an
    answer, counts for the pull request that it worked on, or for the undecided one of its issue.
    """
    entry = ledger.pull_request(work.number) if work else _entry_worked_on(ledger, attempt)
    if entry is None:
        if work is None or not work.is_own:
            return ledger
        return ledger.with_pull_request(_new_entry(ledger, attempt, work))
    changes: dict[str, object] = {
        "cost": min(entry.cost + attempt.cost, MAX_DOLLARS),
        "is_priced": entry.is_priced and not attempt.unpriced,
    }
    if work is not None:
        changes |= {"head": _commit_id(work.head), "verdict": work.verdict}
    return ledger.with_pull_request(entry.model_copy(update=changes))


def _entry_worked_on(ledger: QuotaLedger, attempt: LedgerRun) -> LedgerPullRequest | None:
    if attempt.pull_request:
        return ledger.pull_request(attempt.number)
    entries = (
        pull
        for pull in reversed(ledger.pull_requests)
        if pull.issue == attempt.thread and pull.outcome in _UNDECIDED
    )
    return next(entries, None) if attempt.thread else None


def _new_entry(ledger: QuotaLedger, attempt: LedgerRun, work: PublishedWork) -> LedgerPullRequest:
    """Return the entry of a new pull request. Its cost includes earlier runs on the issue that
    opened none."""
    runs = [
        run
        for run in ledger.runs
        if run.key == attempt.key
        or (attempt.thread and run.thread == attempt.thread and not run.opened)
    ]
    return LedgerPullRequest(
        number=work.number,
        issue=work.issue,
        at=attempt.at,
        agent=_name(work.agent, r"[A-Za-z0-9_.-]{1,60}"),
        model=_name(work.model, r"[A-Za-z0-9_.:/@+-]{1,120}"),
        verdict=work.verdict if work.verdict in {"verified", "checked"} else "not_verified",
        cost=min(sum(run.cost for run in runs), MAX_DOLLARS),
        is_priced=not any(run.unpriced for run in runs),
        head=_commit_id(work.head),
    )


def _name(text: str, form: str) -> str:
    return text if re.fullmatch(form, text) else ""


def _commit_id(text: str) -> str:
    return text if OBJECT_ID.fullmatch(text) else ""


def recorded_work(entry: LedgerPullRequest) -> RecordedWork:
    """Return how a pull request was made, as the ledger records it."""
    return RecordedWork(
        agent=entry.agent,
        model=entry.model,
        verdict=entry.verdict,
        cost=entry.cost if entry.is_priced else None,
        head=entry.head,
    )


def add_outcomes_to_ledger(
    ledger: QuotaLedger, outcomes: Iterable[PullRequestOutcome]
) -> QuotaLedger:
    """Return the ledger with the outcomes in the entries of their pull requests."""
    for outcome in outcomes:
        labels = dict.fromkeys(filter(None, map(normalize_label, outcome.labels)))
        entry = ledger.pull_request(outcome.number) or LedgerPullRequest(
            number=outcome.number, at=outcome.created_at
        )
        changes = {
            "issue": outcome.issue or entry.issue,
            "labels": tuple(labels)[:MAX_LABELS_KEPT],
            "outcome": outcome.outcome,
            "ended": outcome.ended_at,
            "survived": outcome.survived,
            "rounds": min(outcome.rounds, 10**6),
            "durability": outcome.durability,
            "changed_lines": outcome.changed_lines,
            "superseded_by": outcome.superseded_by or 0,
            "superseded_by_own": outcome.superseded_by_own,
        }
        ledger = ledger.with_pull_request(entry.model_copy(update=changes))
    return ledger


def recorded_outcome(
    entry: LedgerPullRequest, title: str = "", url: str = ""
) -> PullRequestOutcome:
    """Return the outcome as the ledger records it. title, url: as GitHub shows them."""
    work = recorded_work(entry)
    return PullRequestOutcome(
        number=entry.number,
        title=title,
        url=url,
        issue=entry.issue or None,
        outcome=entry.outcome,
        created_at=entry.at,
        ended_at=entry.ended,
        survived=entry.survived,
        rounds=entry.rounds,
        durability=entry.durability,
        changed_lines=entry.changed_lines,
        superseded_by=entry.superseded_by or None,
        superseded_by_own=entry.superseded_by_own,
        agent=work.agent,
        model=work.model,
        verdict=work.verdict,
        cost=work.cost,
        labels=entry.labels,
    )
