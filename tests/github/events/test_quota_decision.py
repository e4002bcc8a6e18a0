"""Tests of the quota decision: daily quotas and chains of bots."""

from datetime import timedelta
from typing import Any

import pytest

from resolver.github.events.quota_decision import (
    QuotaBound,
    QuotaExceeded,
    QuotaGranted,
    QuotaLimits,
    QuotaRequest,
    QuotaUse,
    daily_quotas,
    decide_quota,
    measure_quota_use,
)
from resolver.github.events.quota_ledger import LedgerRun, QuotaLedger
from tests.github.events.ledgers import NOW, a_run, ended, key, ledger, run_id

YESTERDAY = NOW - timedelta(days=1)


def quota_request(number: int = 99, **more: Any) -> QuotaRequest:
    given = {"thread": 12, "user": "ada", "bot": False, "max_cost": 5.0, **more}
    return QuotaRequest(key=key(number), **given)


def refused(known: QuotaLedger, ceilings: QuotaLimits, **more: Any) -> QuotaExceeded:
    decision = decide_quota(known, quota_request(**more), ceilings, NOW)
    assert isinstance(decision, QuotaExceeded)
    return decision


def admitted(
    known: QuotaLedger, ceilings: QuotaLimits, number: int = 99, **more: Any
) -> QuotaGranted:
    decision = decide_quota(known, quota_request(number, **more), ceilings, NOW)
    assert isinstance(decision, QuotaGranted)
    return decision


def test_without_quotas_every_run_is_granted() -> None:
    many = ledger(*(ended(n, cost=100.0) for n in range(50)))
    assert admitted(many, QuotaLimits()) == QuotaGranted(reserve=5.0, remaining=float("inf"))


@pytest.mark.parametrize(
    ("ceilings", "other"),
    [
        (QuotaLimits(thread=QuotaBound(runs=2)), {"thread": 13}),
        (QuotaLimits(user=QuotaBound(runs=2)), {"user": "zoe"}),
    ],
)
def test_runs_are_counted_by_conversation_and_by_account(
    ceilings: QuotaLimits, other: dict[str, Any]
) -> None:
    known = ledger(ended(1), a_run(2))
    assert "has had 2 runs today, and the limit is 2" in refused(known, ceilings).what
    assert admitted(known, ceilings, **other)


def test_runs_are_counted_by_repository() -> None:
    known = ledger(ended(1, thread=1, user="a"), ended(2, thread=2, user="b"))
    found = refused(known, QuotaLimits(repository=QuotaBound(runs=2)))
    assert found.ceiling == "repository"


def test_a_refusal_says_when_to_ask_again() -> None:
    found = refused(ledger(ended(1)), QuotaLimits(thread=QuotaBound(runs=1)))
    assert "Ask again on or after 2026-11-22 (00:00 UTC)" in found.next_step
    assert found.until == NOW.replace(day=22, hour=0, minute=0)


def test_another_day_counts_for_itself() -> None:
    assert admitted(ledger(ended(1, at=YESTERDAY)), QuotaLimits(thread=QuotaBound(runs=1)))


def test_an_active_run_of_yesterday_counts() -> None:
    known = ledger(a_run(1, at=YESTERDAY, until=NOW + timedelta(minutes=1)))
    assert refused(known, QuotaLimits(thread=QuotaBound(runs=1)))


def test_a_restarted_request_is_counted_once() -> None:
    assert admitted(ledger(ended(99)), QuotaLimits(thread=QuotaBound(runs=1)))


def test_the_earlier_cost_of_a_restarted_request_counts() -> None:
    known = ledger(ended(99, cost=1.0))
    assert admitted(known, QuotaLimits(thread=QuotaBound(cost=1.5))).reserve == pytest.approx(0.5)
    assert refused(known, QuotaLimits(thread=QuotaBound(cost=1.0))).ceiling == "thread"


def test_a_resumed_run_counts_its_own_cost_by_itself() -> None:
    known = ledger(ended(99, cost=1.0))
    ceilings = QuotaLimits(thread=QuotaBound(cost=1.5))
    assert admitted(known, ceilings, resumed_run=run_id(99)).remaining == pytest.approx(1.5)
    assert admitted(known, ceilings, resumed_run=run_id(98)).remaining == pytest.approx(0.5)


def test_the_use_of_a_quota_is_what_today_has_used() -> None:
    known = ledger(ended(1), a_run(2, cost=0.25), ended(3, thread=13), ended(4, at=YESTERDAY))
    limits = QuotaLimits(thread=QuotaBound(3, 10.0), user=QuotaBound(cost=20.0))
    quotas = daily_quotas(limits, [12], ["ada", ""])
    assert measure_quota_use(known, quotas, NOW) == (
        QuotaUse("#12", 2, 3, 5.75, 10.0),
        QuotaUse("ada", 3, 0, 6.25, 20.0),
        QuotaUse("this repository", 3, 0, 6.25, 0.0),
    )


def test_money_is_reserved_for_active_runs() -> None:
    ceilings = QuotaLimits(user=QuotaBound(cost=8.0))
    assert admitted(ledger(a_run(1)), ceilings) == QuotaGranted(reserve=3.0, remaining=3.0)
    found = refused(ledger(a_run(1), a_run(2)), ceilings)
    assert "cost $10.00 today ($10.00 of it is reserved for runs in progress)" in found.what
    assert "or when the runs in progress have ended" in found.next_step


def test_a_lost_run_counts_with_its_reservation_until_it_expires() -> None:
    ceilings = QuotaLimits(thread=QuotaBound(cost=5.0))
    lost = a_run(1, at=NOW - timedelta(hours=3), until=NOW + timedelta(minutes=1))
    assert refused(ledger(lost), ceilings)
    over = lost.model_copy(update={"until": NOW})
    assert admitted(ledger(over), ceilings).remaining == 5.0


def test_the_smallest_remaining_quota_applies() -> None:
    ceilings = QuotaLimits(QuotaBound(cost=10.0), QuotaBound(cost=4.0), QuotaBound(cost=50.0))
    assert admitted(ledger(ended(1, cost=1.0)), ceilings) == QuotaGranted(
        reserve=3.0, remaining=3.0
    )


def test_of_several_ceilings_the_narrowest_that_is_reached_is_named() -> None:
    known = ledger(ended(1), ended(2))
    one_run = QuotaBound(runs=1)
    limits = QuotaLimits(thread=one_run, user=one_run, repository=one_run)
    assert "this thread has had" in refused(known, limits).what
    assert "ada has had" in refused(known, limits, thread=13).what
    assert "this repository has had" in refused(known, limits, thread=13, user="zoe").what


def test_a_command_line_user_has_no_personal_quota() -> None:
    known = ledger(ended(1, user=""), ended(2, user=""))
    assert admitted(known, QuotaLimits(user=QuotaBound(runs=1)), user="")
    assert refused(known, QuotaLimits(thread=QuotaBound(runs=1)), user="")


def by_bots(*numbers: int, at: int = 0) -> tuple[LedgerRun, ...]:
    return tuple(
        ended(n, user="ci[bot]", bot=True, at=NOW - timedelta(minutes=60 - at - n)) for n in numbers
    )


BOT: dict[str, Any] = {"user": "ci[bot]", "bot": True}


def test_bots_that_answer_each_other_are_stopped() -> None:
    assert admitted(ledger(*by_bots(1, 2)), QuotaLimits(), **BOT)
    found = refused(ledger(*by_bots(1, 2, 3)), QuotaLimits(), **BOT)
    assert found.ceiling == "chain"
    assert "bots and Resolver have answered each other 3 times here" in found.what
    assert "comment by a person here lifts this" in found.next_step


def test_resolvers_comments_count_if_the_ledger_knows_nothing() -> None:
    assert refused(QuotaLedger(), QuotaLimits(), **BOT, exchanges=3).ceiling == "chain"


def test_a_comment_of_a_person_ends_the_chain() -> None:
    known = ledger(*by_bots(1, 2, 3))
    assert admitted(known, QuotaLimits(), **BOT, person_commented_at=NOW)
    assert refused(known, QuotaLimits(), **BOT, person_commented_at=YESTERDAY)
    assert refused(known, QuotaLimits(), **BOT, person_commented_at=known.runs[0].at), (
        "what it started"
    )


def test_a_run_that_a_person_started_ends_the_chain() -> None:
    person = ended(4, at=NOW - timedelta(minutes=10))
    assert admitted(ledger(*by_bots(1, 2, 3), person), QuotaLimits(), **BOT)


def test_a_chain_of_another_conversation_is_separate() -> None:
    assert admitted(ledger(*by_bots(1, 2, 3)), QuotaLimits(), **BOT, thread=13)


def test_runs_of_people_are_not_part_of_a_chain() -> None:
    assert admitted(ledger(*by_bots(1, 2, 3)), QuotaLimits(), exchanges=9)


def test_without_a_readable_ledger_people_may_start_runs_and_bots_may_not() -> None:
    unknown = QuotaLedger(readable=False)
    assert admitted(unknown, QuotaLimits())
    found = refused(unknown, QuotaLimits(), **BOT)
    assert found.ceiling == "unreadable"
    assert "can't be read" in found.what
