"""Tests of the costs of runs by repository and month, and of the budgets that limit them."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import URL, make_url, text
from sqlalchemy.engine import create_engine

from resolver.config.run_settings import CostQuotas
from resolver.errors import OverBudget, ResolverError
from resolver.storage.costs import SpendingLedger
from resolver.storage.database import DatabaseError, parse_database_url
from tests.parts.clock import PassingTime
from tests.parts.postgres import PASSWORD, Postgres

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
UNBOUND = CostQuotas()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[URL]:
    if request.param == "sqlite":
        yield parse_database_url(f"sqlite:///{tmp_path}/resolver.db")
        return
    server: Postgres = request.getfixturevalue("postgres")
    yield make_url(server.url)
    engine = create_engine(make_url(server.url).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM resolver_spending"))
    engine.dispose()


@pytest.fixture
def ledger(url: URL) -> Iterator[SpendingLedger]:
    made = SpendingLedger(url)
    yield made
    made.close()


def reserve(
    ledger: SpendingLedger,
    run: str,
    repository: str = "octo/calc",
    amount: float = 2.0,
    bounds: CostQuotas = UNBOUND,
    now: datetime = NOON,
) -> float:
    return ledger.reserve(run, repository, amount, bounds, now, hours=2)


def test_a_run_has_one_row_however_often_it_is_settled(ledger: SpendingLedger) -> None:
    for cost in (0.5, 0.75, 0.75):
        reserve(ledger, "a")
        ledger.record_cost("a", "octo/calc", cost, 1, NOON)
    (total,) = ledger.totals(NOON)
    assert (total.runs, total.cost, total.unpriced, total.reserved) == (1, 0.75, 1, 0.0)


def test_totals_are_by_month_and_repository_without_regard_to_case(ledger: SpendingLedger) -> None:
    october = NOON - timedelta(days=30)
    ledger.record_cost("a", "Octo/Calc", 1.0, 0, NOON)
    ledger.record_cost("b", "octo/calc", 2.0, 0, NOON)
    ledger.record_cost("c", "octo/other", 4.0, 0, NOON)
    ledger.record_cost("d", "octo/calc", 8.0, 0, october)
    listed = [(t.month, t.repository, t.runs, t.cost) for t in ledger.totals(NOON)]
    assert listed == [
        ("2026-11", "octo/calc", 2, 3.0),
        ("2026-11", "octo/other", 1, 4.0),
        ("2026-10", "octo/calc", 1, 8.0),
    ]
    assert [t.cost for t in ledger.totals(NOON, repository="OCTO/calc")] == [3.0, 8.0]
    assert [t.cost for t in ledger.totals(NOON, month="2026-10")] == [8.0]


def test_what_is_left_of_the_month_is_the_repositorys_own(ledger: SpendingLedger) -> None:
    bounds = CostQuotas(repository_month=5.0)
    ledger.record_cost("a", "octo/calc", 4.0, 0, NOON)
    assert reserve(ledger, "b", bounds=bounds) == 1.0
    assert reserve(ledger, "c", "octo/other", bounds=bounds) == 5.0


def test_what_is_left_of_the_day_is_of_all_repositories(ledger: SpendingLedger) -> None:
    bounds = CostQuotas(server_day=5.0)
    ledger.record_cost("a", "octo/calc", 4.0, 0, NOON)
    assert reserve(ledger, "b", "octo/other", bounds=bounds) == 1.0
    assert reserve(ledger, "c", "octo/other", bounds=bounds, now=NOON + timedelta(days=1)) == 5.0


def test_what_is_left_of_an_owners_month_is_of_all_its_repositories(
    ledger: SpendingLedger,
) -> None:
    bounds = CostQuotas(repository_month=4.5, owner_month=5.0, server_day=20.0)
    ledger.record_cost("a", "Octo/Calc", 4.0, 0, NOON)
    assert reserve(ledger, "b", "octo/other", amount=0.5, bounds=bounds) == 1.0
    assert reserve(ledger, "c", bounds=bounds) == 0.5, "the repository's own limit holds too"
    for stranger in ("octo-labs/calc", "oct/calc", "o_to/calc"):
        assert reserve(ledger, stranger, stranger, bounds=bounds) == 4.5
    with pytest.raises(OverBudget) as raised:
        reserve(ledger, "d", "octo/third", bounds=bounds)
    assert raised.value.what == (
        "the runs of all repositories of octo in 2026-11 have cost $4.00 ($1.00 more is reserved "
        "for runs in progress) of the $5.00 that a month may cost"
    )
    assert "2026-12-01" in raised.value.next_step
    assert "`cost_quotas: {owner_month: ...}`" in raised.value.next_step
    assert reserve(ledger, "e", "octo/third", bounds=bounds, now=NOON + timedelta(days=10)) == 4.5


def test_an_underscore_in_a_login_stands_for_itself(ledger: SpendingLedger) -> None:
    bounds = CostQuotas(owner_month=5.0)
    ledger.record_cost("a", "octoxcorp/calc", 4.0, 0, NOON)
    assert reserve(ledger, "b", "octo_corp/calc", bounds=bounds) == 5.0


def test_runs_that_start_together_do_not_exceed_an_owners_month(ledger: SpendingLedger) -> None:
    bounds = CostQuotas(owner_month=5.0)
    granted: list[float] = []

    def ask(number: int) -> None:
        try:
            reserve(ledger, str(number), f"octo/r{number}", amount=1.0, bounds=bounds)
        except OverBudget:
            return
        granted.append(1.0)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 5


def test_a_run_past_the_month_is_refused_with_the_total_and_the_day_it_is_free(
    ledger: SpendingLedger,
) -> None:
    ledger.record_cost("a", "octo/calc", 5.0, 2, NOON)
    with pytest.raises(OverBudget) as raised:
        reserve(ledger, "b", bounds=CostQuotas(repository_month=5.0))
    assert raised.value.what == (
        "the runs of octo/calc in 2026-11 have cost $5.00 of the $5.00 that a month may cost; "
        "2 replies of unknown price are not included"
    )
    assert "on or after 2026-12-01" in raised.value.next_step
    assert len(ledger.totals(NOON)) == 1, "a run that was refused is not counted"


def test_a_run_past_the_day_is_refused_until_tomorrow(ledger: SpendingLedger) -> None:
    reserve(ledger, "a", amount=5.0)
    last = datetime(2026, 12, 31, 23, tzinfo=UTC)
    reserve(ledger, "b", amount=5.0, now=last)
    with pytest.raises(OverBudget) as raised:
        reserve(ledger, "c", bounds=CostQuotas(server_day=5.0), now=last)
    assert "($5.00 more is reserved for runs in progress) of the $5.00" in raised.value.what
    assert (
        "on or after 2027-01-01 (00:00 UTC), or when the runs in progress" in raised.value.next_step
    )


def test_money_that_is_set_aside_is_not_given_to_another(ledger: SpendingLedger) -> None:
    bounds = CostQuotas(repository_month=3.0)
    assert reserve(ledger, "a", bounds=bounds) == 3.0
    assert reserve(ledger, "b", bounds=bounds) == 1.0
    with pytest.raises(OverBudget):
        reserve(ledger, "c", bounds=bounds)
    ledger.record_cost("a", "octo/calc", 0.5, 0, NOON)
    assert reserve(ledger, "c", bounds=bounds) == 1.5


def test_a_run_that_is_started_again_finds_its_own_money(ledger: SpendingLedger) -> None:
    bounds = CostQuotas(repository_month=3.0)
    reserve(ledger, "a", amount=3.0, bounds=bounds)
    assert reserve(ledger, "a", amount=3.0, bounds=bounds) == 3.0
    ledger.record_cost("a", "octo/calc", 1.0, 0, NOON)
    assert reserve(ledger, "a", bounds=bounds) == 3.0, "what it cost counts against itself"


def test_what_was_set_aside_for_a_killed_run_comes_back(ledger: SpendingLedger) -> None:
    bounds = CostQuotas(repository_month=2.0)
    reserve(ledger, "killed", bounds=bounds)
    with pytest.raises(OverBudget):
        reserve(ledger, "next", bounds=bounds, now=NOON + timedelta(hours=1))
    assert reserve(ledger, "next", bounds=bounds, now=NOON + timedelta(hours=3)) == 2.0


def test_runs_that_begin_at_once_dont_pass_the_bound_together(
    url: URL, ledger: SpendingLedger
) -> None:
    bounds = CostQuotas(server_day=10.0)
    start = threading.Barrier(12)
    granted: list[float] = []
    refused: list[str] = []

    def begin(number: int) -> None:
        own = SpendingLedger(url)
        start.wait()
        try:
            left = reserve(own, f"run-{number}", f"octo/{number}", 2.0, bounds)
            granted.append(min(2.0, left))
        except OverBudget as error:
            refused.append(error.what)
        finally:
            own.close()

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(granted) == 10.0
    assert len(refused) == 7


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
            rename("away", "resolver_spending")

    waits: list[int] = []
    passing = PassingTime()
    ledger = SpendingLedger(url, replace(passing.retries(), sleep=come_back))
    rename("resolver_spending", "away")
    assert reserve(ledger, "a") == float("inf")
    assert len(waits) == 3 and caplog.text.count("costs can't be stored for now") == 3
    ledger.close()

    ledger = SpendingLedger(url, passing.retries(seconds=30))
    rename("resolver_spending", "away")
    with pytest.raises(DatabaseError) as raised:
        ledger.record_cost("a", "octo/calc", 1.0, 0, NOON)
    assert str(tmp_path) not in raised.value.what + raised.value.next_step
    assert 0 < passing.now <= 30
    ledger.close()
    engine.dispose()


def test_a_database_that_is_gone_is_an_error_without_its_password(tmp_path: Path) -> None:
    url = make_url(f"postgresql://resolver:{PASSWORD}@/none?host={tmp_path}")
    with pytest.raises(ResolverError) as raised:
        SpendingLedger(url)
    assert PASSWORD not in raised.value.what + raised.value.next_step
    assert "RESOLVER_DATABASE_URL" in raised.value.next_step
