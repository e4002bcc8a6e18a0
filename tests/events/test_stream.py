"""The stream: numbering, order, redaction, and subscribers that fail."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from resolver.events.actions import CmdRun, McpCall, Think
from resolver.events.lifecycle import Warned
from resolver.events.log import Event, storable
from resolver.events.observations import CmdOutput
from resolver.events.store import JsonlStore, MemoryStore, read_log
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


def test_an_event_is_stored_before_anybody_is_told() -> None:
    stream, store = make()
    seen: list[int] = []
    stream.subscribe("watch", lambda event: seen.append(len(store)))
    stream.add(Think(content="x"))
    assert seen == [1]


def test_all_subscribers_see_all_events_in_order_when_one_adds_while_told() -> None:
    stream, _ = make()
    seen: dict[str, list[int]] = {"first": [], "second": []}

    def answer(event: Event) -> None:
        seen["first"].append(event.id)
        if isinstance(event, CmdRun):
            stream.add(CmdOutput(cause=event.id))

    stream.subscribe("runtime", answer, essential=True)
    stream.subscribe("watch", lambda event: seen["second"].append(event.id))
    stream.add(CmdRun(command="true"))
    stream.add(CmdRun(command="true"))
    assert seen == {"first": [0, 1, 2, 3], "second": [0, 1, 2, 3]}


def test_a_failing_subscriber_is_reported_and_told_no_more() -> None:
    stream, store = make()

    def fail(event: Event) -> None:
        raise ValueError("no screen")

    stream.subscribe("page", fail)
    stream.add(Think(content="x"))
    stream.add(Think(content="y"))
    warnings = [e for e in store if isinstance(e, Warned)]
    assert len(warnings) == 1
    assert "page failed" in warnings[0].message


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
def test_what_json_can_not_carry_is_replaced_and_the_run_goes_on(event, tmp_path: Path) -> None:
    store = JsonlStore(tmp_path / "events.jsonl")
    stream = EventStream(store)
    stored = stream.add(event)
    stream.add(Think(content="next"))
    store.close()
    assert next(read_log(tmp_path / "events.jsonl")) == stored
    assert stored.kind == event.kind


def test_a_whole_pair_stays() -> None:
    assert storable(Think(content="\ud83d\ude00 \ud800")).content == "\U0001f600 \ufffd"
