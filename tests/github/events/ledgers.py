"""Builds quota ledgers with runs and refusals for tests."""

from datetime import UTC, datetime, timedelta
from typing import Any

from resolver.github.events.quota_ledger import LedgerRun, QuotaLedger

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
ENDED: dict[str, Any] = {"ending": "no_change", "reserved": 0.0}


def key(number: int) -> str:
    return f"{number:040x}"


def run_id(number: int) -> str:
    return f"20261121-120000-{number:06x}"


def a_run(number: int, thread: int = 12, at: datetime = NOW, **more: Any) -> LedgerRun:
    """Return an active run that has reserved five dollars."""
    given = {"user": "ada", "until": at + timedelta(hours=2), "reserved": 5.0, **more}
    return LedgerRun(key=key(number), run=run_id(number), thread=thread, at=at, **given)


def ended(number: int, thread: int = 12, cost: float = 0.5, **more: Any) -> LedgerRun:
    return a_run(number, thread, **{**ENDED, "cost": cost, **more})


def ledger(*runs: LedgerRun) -> QuotaLedger:
    return QuotaLedger(runs=runs)
