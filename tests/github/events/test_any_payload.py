"""Property tests: any payload gives a Trigger or the reason why there is none."""

import copy
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.github.events.checks import CHECK_EVENTS
from resolver.github.events.dispatches import DISPATCH_EVENTS, DispatchSource, asks_for_sweep
from resolver.github.events.parse import needs_own_login
from resolver.github.events.permission import IgnoredEvent
from resolver.github.events.starting_events import starting_actions
from resolver.models.run import Trigger
from tests.github.events.events import BOT, Payload, parsed, published

ARRIVAL = DispatchSource("1", datetime(2026, 1, 1, tzinfo=UTC))
READ = sorted({*starting_actions(), *CHECK_EVENTS, *DISPATCH_EVENTS})
WORDS = st.sampled_from(
    ["@agent fix", "@agent /review x", "agent", BOT, "failure", "completed", "main", "agent/x"]
)
VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | WORDS
    | st.lists(st.none() | st.integers(), max_size=2)
    | st.dictionaries(st.text(max_size=5), st.integers(), max_size=2)
)


def answered(name: str, payload: Any) -> Trigger | IgnoredEvent:
    found = parsed(name, payload, fix_failing_checks="all", arrival=ARRIVAL)
    assert isinstance(found, Trigger | IgnoredEvent)
    if isinstance(found, Trigger):
        # what the server stores, and reads again
        assert Trigger.model_validate_json(found.model_dump_json()) == found
        assert found.key and found.repository
    else:
        assert found.reason
    return found


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all values within."""
    if path:
        yield path
    inner: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in inner:
        yield from places(item, (*path, key))


def with_value(payload: Payload, path: tuple[Any, ...], value: Any) -> Payload:
    changed = copy.deepcopy(payload)
    *parents, last = path
    where: Any = changed
    for parent in parents:
        where = where[parent]
    where[last] = value
    return changed


@pytest.mark.parametrize("name", READ)
def test_every_published_example_is_understood(name: str) -> None:
    for payload in published()[name]:
        found = answered(name, payload)
        assert isinstance(found, Trigger) or "payload is invalid" not in found.reason


def test_every_other_published_event_starts_nothing() -> None:
    for name, payloads in published().items():
        for payload in payloads if name not in READ else ():
            assert "start no work" in getattr(answered(name, payload), "reason", "")


FIELDS = [
    "action", "sender", "repository", "id", "inputs", "client_payload", "comment", "review",
    "issue", "pull_request", "label", "assignee", "requested_reviewer", "workflow_run",
    "check_suite", "state", "sha", "branches", "context", "updated_at",
]  # fmt: skip


@given(st.data())
@pytest.mark.parametrize("name", READ)
def test_an_example_with_any_value_anywhere_gets_an_answer(name: str, data: st.DataObject) -> None:
    payload = data.draw(st.sampled_from(published()[name]))
    ways = [path for path in places(payload) if path[0] in FIELDS and len(path) <= 4]
    path = data.draw(st.sampled_from(ways))
    changed = with_value(payload, path, data.draw(VALUES))
    answered(name, changed)
    assert needs_own_login(name, changed) in {True, False}
    assert asks_for_sweep(name, changed) in {True, False}


JSON = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner),
    max_leaves=10,
)


@given(st.sampled_from([*READ, "schedule", "ping"]), st.dictionaries(st.text(max_size=7), JSON))
def test_any_object_gets_an_answer(name: str, payload: Payload) -> None:
    answered(name, payload)
    assert asks_for_sweep(name, payload) in {True, False}
    assert needs_own_login(name, payload) in {True, False}
