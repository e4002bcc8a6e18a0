"""Tests of the quota ledgers of a server's repositories, and of the totals of what runs cost."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import URL, text
from sqlalchemy.engine import create_engine

from resolver.github.events.quota_decision import QuotaBound, QuotaLimits
from resolver.github.events.quota_ledger import MAX_RESERVATION, LedgerRun, QuotaLedger
from resolver.storage.database import DatabaseError, parse_database_url
from resolver.storage.quota_table import QuotaTable
from tests.github.events.ledgers import NOW, a_run, ended, key
from tests.parts.clock import PassingTime
from tests.quotas.booking import reservation

REPOSITORY = "octo/calc"


@pytest.fixture
def table(database_url: URL) -> Iterator[QuotaTable]:
    made = QuotaTable(database_url)
    yield made
    made.close()


def put(table: QuotaTable, *runs: LedgerRun, repository: str = REPOSITORY) -> None:
    for run in runs:
        table.change(repository, NOW, lambda ledger, run=run: (ledger.with_run(run), None))


def reserve(table: QuotaTable, number: int, limits: QuotaLimits) -> float | None:
    return table.change(REPOSITORY, NOW, reservation(number, limits, max_cost=2.0))


def test_what_is_written_is_read_by_others(database_url: URL, table: QuotaTable) -> None:
    runs = (ended(1, unpriced=2), a_run(2, thread=13, user="ci[bot]", bot=True))
    put(table, *runs)
    other = QuotaTable(database_url)
    assert other.read("Octo/Calc", NOW) == QuotaLedger(runs=runs)
    assert other.read("octo/other", NOW) == QuotaLedger()
    other.close()


def test_old_runs_are_in_the_totals_alone(table: QuotaTable) -> None:
    old = NOW - MAX_RESERVATION - timedelta(days=1)
    put(table, ended(1, at=old), ended(2))
    assert [run.key for run in table.read(REPOSITORY, NOW).runs] == [key(2)]
    assert sum(total.runs for total in table.totals(NOW)) == 2


def test_totals_are_by_month_and_repository_without_regard_to_case(table: QuotaTable) -> None:
    october = NOW - timedelta(days=30)
    put(table, ended(1, cost=1.0), repository="Octo/Calc")
    put(table, ended(2, cost=2.0, unpriced=1), ended(4, cost=8.0, at=october), a_run(5))
    put(table, ended(3, cost=4.0), repository="octo/other")
    listed = [(t.month, t.repository, t.runs, t.cost) for t in table.totals(NOW)]
    assert listed == [
        ("2026-11", "octo/calc", 3, 3.0),
        ("2026-11", "octo/other", 1, 4.0),
        ("2026-10", "octo/calc", 1, 8.0),
    ]
    [newest, oldest] = table.totals(NOW, repository="OCTO/calc")
    assert (newest.unpriced, newest.reserved, newest.active_runs) == (1, 5.0, 1)
    assert (oldest.reserved, oldest.active_runs) == (0.0, 0)
    assert [t.cost for t in table.totals(NOW, month="2026-10")] == [8.0]
    later = NOW + timedelta(hours=3)
    assert table.totals(later, REPOSITORY)[0].active_runs == 0, "its reservation is over"


def test_runs_that_start_at_once_dont_exceed_a_quota_together(
    database_url: URL, table: QuotaTable
) -> None:
    limits = QuotaLimits(repository=QuotaBound(cost=9.0))
    start = threading.Barrier(8)
    reserved: list[float | None] = []

    def begin(number: int) -> None:
        own = QuotaTable(database_url)
        start.wait()
        reserved.append(reserve(own, number, limits))
        own.close()

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(amount for amount in reserved if amount) == [1.0, 2.0, 2.0, 2.0, 2.0]
    assert reserved.count(None) == 3


def test_costs_are_stored_again_until_the_database_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = parse_database_url(f"sqlite:///{tmp_path}/resolver.db")
    engine = create_engine(url)

    def rename(old: str, new: str) -> None:
        with engine.begin() as connection:
            connection.execute(text(f"ALTER TABLE {old} RENAME TO {new}"))

    def come_back(_: float) -> None:
        waits.append(1)
        if len(waits) == 3:
            rename("away", "resolver_costs")

    waits: list[int] = []
    passing = PassingTime()
    table = QuotaTable(url, replace(passing.retries(), sleep=come_back))
    rename("resolver_costs", "away")
    assert reserve(table, 1, QuotaLimits()) == 2.0
    assert len(waits) == 3 and caplog.text.count("trying again") == 3
    table.close()

    table = QuotaTable(url, passing.retries(seconds=30))
    rename("resolver_costs", "away")
    with pytest.raises(DatabaseError) as raised:
        put(table, ended(1))
    assert str(tmp_path) not in raised.value.what + raised.value.next_step
    assert 0 < passing.now <= 30
    table.close()
    engine.dispose()
