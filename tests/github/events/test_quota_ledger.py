"""Tests of the quota ledger's format: entries, totals and invalid lines."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.github.events.quota_decision import (
    QuotaBound,
    QuotaExceeded,
    QuotaLimits,
    QuotaRequest,
    decide_quota,
)
from resolver.github.events.quota_ledger import (
    MAX_LEDGER_BYTES,
    MAX_RUNS,
    RETENTION_DAYS,
    CostTotal,
    QuotaLedger,
    normalize_login,
    read_ledger,
    serialize_ledger,
)
from tests.github.events.ledgers import NOW, a_run, ended, key, ledger

LINE = json.loads(serialize_ledger(ledger(a_run(1)), NOW))


def line(**changes: Any) -> bytes:
    return json.dumps({**LINE, **changes}).encode() + b"\n"


def test_a_serialized_ledger_is_read_back() -> None:
    whole = ledger(ended(1), a_run(2, unpriced=3))
    assert read_ledger(serialize_ledger(whole, NOW), NOW) == whole


def test_of_two_runs_with_one_key_the_later_line_is_used() -> None:
    found = read_ledger(b"\n" + line(cost=1, colour="of a newer version") + line(cost=2), NOW)
    assert ([run.cost for run in found.runs], found.is_damaged) == ([2], False)


@pytest.mark.parametrize(
    "damaged",
    [
        b"not json\n",
        b"\xff\xfe\n",
        b"[" * 1000 + b"\n",
        line(cost=-1),
        line(reserved="NaN"),
        b'{"cost":NaN}\n',
        line(key="short"),
        line(run="../../etc/passwd"),
        line(user="a](https://evil.example)"),
        line(ending="<img src=x>"),
        line(at="2026-13-41T00:00:00Z"),
        line(at="2026-11-21T12:30:00"),
        line(at=(NOW + timedelta(days=2)).isoformat(), until=(NOW + timedelta(days=3)).isoformat()),
        line(at="0001-01-01T00:00:00+14:00"),
        line(until=(NOW + timedelta(days=400)).isoformat()),
        line(user="a" * 3000),
    ],
)
def test_an_invalid_line_is_kept_aside_and_the_others_count(damaged: bytes) -> None:
    found = read_ledger(damaged + line(key=key(7)), NOW)
    assert [run.key for run in found.runs] == [key(7)]
    assert found.is_damaged and found.readable


def test_a_ledger_of_garbage_is_unreadable() -> None:
    assert not read_ledger(b"garbage\n", NOW).readable
    assert not read_ledger(b"x" * (MAX_LEDGER_BYTES + 1), NOW).readable


@given(st.binary(max_size=400))
def test_no_bytes_make_reading_fail(data: bytes) -> None:
    found = read_ledger(data, NOW)
    assert not read_ledger(serialize_ledger(found, NOW), NOW).is_damaged


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(sorted(LINE)), JSON, max_size=3))
def test_no_field_of_a_line_raises_a_quota(changes: dict[str, Any]) -> None:
    """Whatever a line says, it neither fails nor takes away what another run has used."""
    data = line(**changes) + line(key=key(8), thread=12, user="zoe")
    ceilings = QuotaLimits(thread=QuotaBound(runs=1))
    request = QuotaRequest(key=key(9), thread=12, user="eve", bot=False, max_cost=5.0)
    found = read_ledger(data, NOW)
    assert isinstance(decide_quota(found, request, ceilings, NOW), QuotaExceeded)
    assert serialize_ledger(found, NOW)


def test_the_totals_of_a_month_are_those_of_its_runs() -> None:
    october = NOW - timedelta(days=30)
    whole = ledger(ended(1, at=october), ended(2, at=october, unpriced=1), ended(3), a_run(4))
    assert whole.totals("o/r", NOW) == (
        CostTotal("2026-11", "o/r", 2, 0.5, 0, reserved=5.0, active_runs=1),
        CostTotal("2026-10", "o/r", 2, 1.0, 1),
    )


def test_old_runs_are_removed() -> None:
    old = NOW - timedelta(days=RETENTION_DAYS + 1)
    found = read_ledger(serialize_ledger(ledger(ended(1, at=old), ended(2)), NOW), NOW)
    assert [run.key for run in found.runs] == [key(2)]


def test_its_size_is_bounded() -> None:
    runs = tuple(
        a_run(number, at=NOW - timedelta(seconds=MAX_RUNS + 10 - number), user="a" * 39)
        for number in range(MAX_RUNS + 10)
    )
    data = serialize_ledger(QuotaLedger(runs=runs), NOW)
    assert len(data) < MAX_LEDGER_BYTES
    assert [run.key for run in read_ledger(data, NOW).runs] == [run.key for run in runs[10:]]


def test_a_login_is_written_in_lower_case_and_never_more_than_a_login() -> None:
    assert normalize_login("Mona") == "mona"
    assert normalize_login("dependabot[bot]") == "dependabot[bot]"
    assert normalize_login("") == ""


@given(st.text(max_size=80))
def test_any_login_can_be_recorded(login: str) -> None:
    booked = replace(ledger(ended(1, user=normalize_login(login))))
    assert read_ledger(serialize_ledger(booked, NOW), NOW) == booked
