"""Tests of the event stream: numbering, order, redaction, and failing subscribers."""

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from resolver.events.actions import CmdRun, McpCall, Think
from resolver.events.lifecycle import Warned
from resolver.events.log import (
    MAX_NESTING_DEPTH,
    Event,
    make_storable,
    read_log,
)
from resolver.events.observations import CmdOutput
from resolver.events.stores import JsonlStore, MemoryStore
from resolver.events.stream import EventStream

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def make() -> tuple[EventStream, MemoryStore]:
    store = MemoryStore()
    return EventStream(store, now=lambda: NOW), store


def test_events_are_numbered_without_gap_and_stamped() -> None:
    stream, store = make()
    added = [stream.add(Think(content=str(i))) for i in range(3)]
    assert [e.id for e in added] == [0, 1, 2]
    assert all(e.timestamp == NOW for e in store)


def test_all_subscribers_see_all_events_in_order_if_one_adds_events() -> None:
    stream, _ = make()
    seen: dict[str, list[int]] = {"first": [], "second": []}

    def answer(event: Event) -> None:
        seen["first"].append(event.id)
        if isinstance(event, CmdRun):
            stream.add(CmdOutput(cause=event.id))

    stream.subscribe("runtime", answer, essential=True)
    stream.subscribe("live_page", lambda event: seen["second"].append(event.id))
    stream.add(CmdRun(command="true"))
    stream.add(CmdRun(command="true"))
    assert seen == {"first": [0, 1, 2, 3], "second": [0, 1, 2, 3]}


def test_a_failing_subscriber_is_reported_and_not_called_again() -> None:
    stream, store = make()

    def fail(event: Event) -> None:
        raise ValueError("no screen")

    other: list[Event] = []
    stream.subscribe("live_page", fail)
    stream.subscribe("progress", other.append)
    stream.add(Think(content="x"))
    stream.add(Think(content="y"))
    warnings = [e for e in store if isinstance(e, Warned)]
    assert len(warnings) == 1
    assert "live_page failed" in warnings[0].message
    assert [e.id for e in other] == [0, 1, 2]


def test_an_essential_subscribers_error_reaches_the_caller_and_the_log_stays() -> None:
    stream, store = make()

    def fail(event: Event) -> None:
        raise ValueError("sandbox lost")

    stream.subscribe("runtime", fail, essential=True)
    with pytest.raises(ValueError, match="sandbox lost"):
        stream.add(Think(content="x"))
    assert len(store) == 1


def test_a_secret_is_replaced_before_it_is_stored() -> None:
    store = MemoryStore()

    def redact(event: Event) -> Event:
        return event.model_copy(update={"content": "[redacted]"})

    stream = EventStream(store, redact=redact)
    assert stream.add(Think(content="s3cret")).content == "[redacted]"
    assert "s3cret" not in next(iter(store)).model_dump_json()


def nested(depth: int) -> dict:
    data: dict = {}
    for _ in range(depth):
        data = {"x": data}
    return data


@pytest.mark.parametrize(
    "event",
    [
        Think(content="half a \ud800 pair"),
        McpCall(server="s", name="n", arguments={"a\udfff": ["\ud83d"]}),
        McpCall(server="s", name="n", arguments=nested(600)),
    ],
    ids=["text", "key", "depth"],
)
def test_values_that_json_can_not_hold_are_replaced(event, tmp_path: Path) -> None:
    store = JsonlStore(tmp_path / "events.jsonl")
    stream = EventStream(store)
    stored = stream.add(event)
    stream.add(Think(content="next"))
    store.close()
    assert next(read_log(tmp_path / "events.jsonl")) == stored
    assert stored.kind == event.kind


@pytest.mark.parametrize("wrap", [lambda inner: {"x": inner}, lambda inner: [inner]])
def test_what_is_nested_deeper_than_can_be_written_is_cut(wrap) -> None:
    def stored(depth: int) -> str:
        data: object = "innermost"
        for _ in range(depth):
            data = wrap(data)
        return make_storable(McpCall(server="s", name="n", arguments={"x": data})).model_dump_json()

    kept = next(depth for depth in range(MAX_NESTING_DEPTH, 0, -1) if "innermost" in stored(depth))
    assert MAX_NESTING_DEPTH - kept <= 2, "the event and its arguments are levels too"
    assert "nested too deeply" in stored(kept + 1) and "nested too deeply" not in stored(kept)


def test_events_added_by_threads_have_no_gaps_and_reach_all_in_order() -> None:
    stream, store = make()
    result: list[int] = []
    stream.subscribe("state", lambda event: result.append(event.id), essential=True)

    def add() -> None:
        for _ in range(200):
            stream.add(Think(content="x"))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert result == [e.id for e in store] == list(range(800))
