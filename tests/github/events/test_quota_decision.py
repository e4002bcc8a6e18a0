"""Tests of the quota decision: daily quotas and chains of bots."""

from datetime import timedelta
from typing import Any

import pytest

from resolver.github.events.quota_decision import (
    QuotaBound,
    QuotaExceeded,
    QuotaLimits,
    QuotaRequest,
    QuotaUse,
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


def admitted(known: QuotaLedger, ceilings: QuotaLimits, number: int = 99, **more: Any) -> float:
    decision = decide_quota(known, quota_request(number, **more), ceilings, NOW)
    assert isinstance(decision, float)
    return decision


def test_without_quotas_every_run_is_granted() -> None:
    many = ledger(*(ended(n, cost=100.0) for n in range(50)))
    assert admitted(many, QuotaLimits()) == float("inf")


def runs(thread: int = 0, user: int = 0, repository: int = 0) -> QuotaLimits:
    return QuotaLimits(QuotaBound(thread), QuotaBound(user), QuotaBound(repository))


def cost(thread: float = 0, user: float = 0, repository: float = 0) -> QuotaLimits:
    return QuotaLimits(QuotaBound(cost=thread), QuotaBound(cost=user), QuotaBound(cost=repository))


SOON = NOW + timedelta(minutes=1)
LOST = a_run(1, at=NOW - timedelta(hours=3), until=SOON)


@pytest.mark.parametrize(
    ("known", "limits", "request_of", "ceiling"),
    [
        ([ended(1), a_run(2)], runs(thread=2), {}, "thread"),
        ([ended(1), a_run(2)], runs(user=2), {"thread": 13}, "user"),
        ([ended(1, 1, user="a"), ended(2, 2, user="b")], runs(repository=2), {}, "repository"),
        ([ended(1), ended(2)], runs(1, 1, 1), {}, "thread"),
        ([ended(1), ended(2)], runs(1, 1, 1), {"thread": 13}, "user"),
        ([ended(1), ended(2)], runs(1, 1, 1), {"thread": 13, "user": "zoe"}, "repository"),
        ([a_run(1, at=YESTERDAY, until=SOON)], runs(thread=1), {}, "thread"),
        ([ended(1, user="")], runs(thread=1), {"user": ""}, "thread"),
        ([ended(99, cost=1.0)], cost(thread=1.0), {}, "thread"),
        ([a_run(1), a_run(2)], cost(user=8.0), {}, "user"),
        ([LOST], cost(thread=5.0), {}, "thread"),
    ],
)
def test_a_quota_that_is_used_up_refuses(
    known: list[LedgerRun], limits: QuotaLimits, request_of: dict[str, Any], ceiling: str
) -> None:
    assert refused(ledger(*known), limits, **request_of).ceiling == ceiling


@pytest.mark.parametrize(
    ("known", "limits", "request_of", "remaining"),
    [
        ([ended(1), a_run(2)], runs(thread=2), {"thread": 13}, None),
        ([ended(1), a_run(2)], runs(user=2), {"user": "zoe"}, None),
        ([ended(1, at=YESTERDAY)], runs(thread=1), {}, None),
        # An earlier attempt of the same request is no other run; its cost counts, unless the run
        # that is resumed counts it by itself.
        ([ended(99)], runs(thread=1), {}, None),
        ([ended(99, cost=1.0)], cost(thread=1.5), {}, 0.5),
        ([ended(99, cost=1.0)], cost(thread=1.5), {"resumed_run": run_id(98)}, 0.5),
        ([ended(99, cost=1.0)], cost(thread=1.5), {"resumed_run": run_id(99)}, 1.5),
        ([ended(1, user=""), ended(2, user="")], runs(user=1), {"user": ""}, None),
        ([a_run(1)], cost(user=8.0), {}, 3.0),
        ([LOST.model_copy(update={"until": NOW})], cost(thread=5.0), {}, 5.0),
        ([ended(1, cost=1.0)], cost(10.0, 4.0, 50.0), {}, 3.0),
    ],
)
def test_a_quota_that_is_not_used_up_leaves_the_least_of_what_remains(
    known: list[LedgerRun],
    limits: QuotaLimits,
    request_of: dict[str, Any],
    remaining: float | None,
) -> None:
    granted = admitted(ledger(*known), limits, **request_of)
    if remaining is not None:
        assert granted == remaining


def test_a_refusal_says_what_was_used_and_when_to_ask_again() -> None:
    found = refused(ledger(ended(1)), runs(thread=1))
    assert "has had 1 run today, and the limit is 1" in found.what
    assert "Ask again on or after 2026-11-22 (00:00 UTC)" in found.next_step
    assert found.until == NOW.replace(day=22, hour=0, minute=0)
    found = refused(ledger(a_run(1), a_run(2)), cost(user=8.0))
    assert "cost $10.00 today ($10.00 of it is reserved for runs in progress)" in found.what
    assert "or when the runs in progress have ended" in found.next_step


def test_the_use_of_a_quota_is_what_today_has_used() -> None:
    known = ledger(ended(1), a_run(2, cost=0.25), ended(3, thread=13), ended(4, at=YESTERDAY))
    limits = QuotaLimits(thread=QuotaBound(3, 10.0), user=QuotaBound(cost=20.0))
    assert measure_quota_use(known.runs, limits, [12], ["ada", ""], NOW) == (
        QuotaUse("thread", "#12", 2, 3, 5.75, 10.0, 5.0),
        QuotaUse("user", "ada", 3, 0, 6.25, 20.0, 5.0),
        QuotaUse("repository", "this repository", 3, 0, 6.25, 0.0, 5.0),
    )


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


PERSON = ended(4, at=NOW - timedelta(minutes=10))


@pytest.mark.parametrize(
    ("known", "request_of"),
    [
        ((), {"exchanges": 3}),
        (by_bots(1, 2, 3), {"person_commented_at": YESTERDAY}),
        # the comment that the first of them was started by
        (by_bots(1, 2, 3), {"person_commented_at": by_bots(1)[0].at}),
    ],
)
def test_a_chain_goes_on_without_a_person(
    known: tuple[LedgerRun, ...], request_of: dict[str, Any]
) -> None:
    assert refused(ledger(*known), QuotaLimits(), **BOT, **request_of).ceiling == "chain"


@pytest.mark.parametrize(
    ("known", "request_of"),
    [
        (by_bots(1, 2, 3), {**BOT, "person_commented_at": NOW}),
        ((*by_bots(1, 2, 3), PERSON), BOT),
        (by_bots(1, 2, 3), {**BOT, "thread": 13}),
        (by_bots(1, 2, 3), {"exchanges": 9}),
    ],
)
def test_a_person_or_another_conversation_ends_the_chain(
    known: tuple[LedgerRun, ...], request_of: dict[str, Any]
) -> None:
    assert admitted(ledger(*known), QuotaLimits(), **request_of)


def test_without_a_readable_ledger_people_may_start_runs_and_bots_may_not() -> None:
    unknown = QuotaLedger(readable=False)
    assert admitted(unknown, QuotaLimits())
    found = refused(unknown, QuotaLimits(), **BOT)
    assert found.ceiling == "unreadable"
    assert "can't be read" in found.what
