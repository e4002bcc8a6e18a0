"""Requests that reserve a quota, also in processes of their own."""

from dataclasses import dataclass

from resolver.git.git import Credential
from resolver.github.events.quota_decision import (
    QuotaBound,
    QuotaExceeded,
    QuotaLimits,
    QuotaRequest,
    decide_quota,
)
from resolver.github.events.quota_ledger import Change, LedgerRun, QuotaLedger
from resolver.storage.ledger_ref import LedgerRef
from tests.github.events.ledgers import NOW, a_run, key


@dataclass(frozen=True)
class Place:
    """A repository, and whose token is shown."""

    server: str
    repository: str
    token: str

    def ledger(self) -> LedgerRef:
        return LedgerRef(
            f"{self.server}/{self.repository}.git",
            lambda: Credential(self.server, self.token),
            lambda: NOW,
        )


def entry(number: int) -> LedgerRun:
    return a_run(number, user=f"user-{number}")


def reservation(number: int, limits: QuotaLimits, max_cost: float = 5.0) -> Change[float | None]:
    """Return the change that reserves the cost of a run on issue 12; its answer is None if it was
    refused."""
    asked = QuotaRequest(key(number), 12, f"user-{number}", bot=False, max_cost=max_cost)

    def change(ledger: QuotaLedger) -> tuple[QuotaLedger | None, float | None]:
        decision = decide_quota(ledger, asked, limits, NOW)
        if isinstance(decision, QuotaExceeded):
            return None, None
        reserved = min(decision, max_cost)
        return ledger.with_run(a_run(number, user=f"user-{number}", reserved=reserved)), reserved

    return change


def book(place: Place, number: int) -> float | None:
    """Reserve for one of five runs in the repository."""
    limits = QuotaLimits(thread=QuotaBound(runs=5))
    return place.ledger().change(reservation(number, limits))[0]
