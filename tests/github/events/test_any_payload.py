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
from tests.github.events.events import BOT, Payload, parsed
from tests.parts.published import webhook_examples

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
    assert asks_for_sweep(name, payload) in {True, False}
    assert needs_own_login(name, payload) in {True, False}
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


def test_every_published_example_is_understood() -> None:
    for name, payloads in webhook_examples().items():
        for payload in payloads:
            found = answered(name, payload)
            why = "" if isinstance(found, Trigger) else found.reason
            assert ("start no work" in why) == (name not in READ)
            assert "payload is invalid" not in why


FIELDS = [
    "action", "sender", "repository", "id", "inputs", "client_payload", "comment", "review",
    "issue", "pull_request", "label", "assignee", "requested_reviewer", "workflow_run",
    "check_suite", "state", "sha", "branches", "context", "updated_at",
]  # fmt: skip


@given(st.data())
@pytest.mark.parametrize("name", READ)
def test_an_example_with_any_value_anywhere_gets_an_answer(name: str, data: st.DataObject) -> None:
    changed: Payload = copy.deepcopy(data.draw(st.sampled_from(webhook_examples()[name])))
    ways = [path for path in places(changed) if path[0] in FIELDS and len(path) <= 4]
    *parents, last = data.draw(st.sampled_from(ways))
    where: Any = changed
    for parent in parents:
        where = where[parent]
    where[last] = data.draw(VALUES)
    answered(name, changed)
