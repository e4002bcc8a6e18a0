"""One request that wants to be booked, in a process of its own."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from resolver.git.git import Credential
from resolver.github.events.quota_decision import (
    QuotaBound,
    QuotaExceeded,
    QuotaLimits,
    QuotaRequest,
    decide_quota,
)
from resolver.github.events.quota_ledger import LedgerRun, QuotaLedger
from resolver.storage.ledger_ref import LedgerRef

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)


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


def entry(number: int, thread: int = 12, reserved: float = 5.0) -> LedgerRun:
    return LedgerRun(
        key=f"{number:040x}",
        run=f"20261121-123000-{number:06x}",
        thread=thread,
        user=f"user-{number}",
        at=NOW,
        until=NOW + timedelta(hours=2),
        reserved=reserved,
    )


def book(place: Place, number: int, runs: int, cost: float) -> float | None:
    """US dollars that were set aside for it; None when it was refused."""
    asked = QuotaRequest(f"{number:040x}", 12, f"user-{number}", bot=False, max_cost=5.0)
    ceilings = QuotaLimits(thread=QuotaBound(runs, cost))

    def change(ledger: QuotaLedger) -> tuple[QuotaLedger | None, float | None]:
        decision = decide_quota(ledger, asked, ceilings, NOW)
        if isinstance(decision, QuotaExceeded):
            return None, None
        reserved = min(decision, 5.0)
        return ledger.with_run(entry(number, reserved=reserved)), reserved

    return place.ledger().change(change)[0]
