"""The conformance suite of all event stores, and failures of the file and the database."""

import contextlib
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from obstore.store import MemoryStore as ObjectsInMemory

from resolver.errors import LeaseLost, LogError, UnstorableEvent
from resolver.events.actions import FileWrite, McpCall, Think
from resolver.events.log import MAX_LINE_BYTES, Event, read_log, stored_line
from resolver.events.stores import EventStore, JsonlStore, MemoryStore
from resolver.events.stream import EventStream
from resolver.storage.run_store import RunStore
from tests.events.strategies import logs

Opened = Callable[[str], EventStore]
"""Opens the store of a run, again or for the first time."""

KINDS = ["memory", "jsonl", "stored"]


def thought(id: int, content: str = "") -> Think:
    return Think(id=id, content=content or f"thought {id}")


@pytest.fixture(params=KINDS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Open each kind of store in turn, and close them at the end."""
    made: list[EventStore] = []
    memory: dict[str, EventStore] = {}
    runs, ids = RunStore(ObjectsInMemory()), {}
    folders = itertools.count()

    def opening(run: str) -> EventStore:
        match request.param:
            case "memory":
                store = memory.setdefault(run, MemoryStore())
            case "jsonl":
                store = JsonlStore(tmp_path / run / "events.jsonl")
            case _:
                id = ids.setdefault(run, f"20260101-000000-{len(ids):06x}")
                writer = runs.open_writer(id, folder := tmp_path / f"{next(folders)}")
                store = JsonlStore(folder / "events.jsonl", copy=writer)
        made.append(store)
        return store

    yield opening
    for closed in made:
        closed.close()


def test_events_come_back_in_order(opened: Opened) -> None:
    store = opened("run")
    for id in range(520):
        store.append(thought(id))
    assert [e.id for e in store] == list(range(520))
    assert [e.id for e in store] == list(range(520))
    assert len(store) == 520


def test_a_reopened_store_continues_where_it_ended(opened: Opened) -> None:
    first = opened("run")
    first.append(thought(0))
    if not isinstance(first, MemoryStore):
        first.close()
    second = opened("run")
    assert len(second) == 1
    second.append(thought(1))
    assert [e.content for e in second] == ["thought 0", "thought 1"]


@pytest.mark.parametrize("id", [0, 2, -1])
def test_only_the_next_event_is_accepted(opened: Opened, id: int) -> None:
    store = opened("run")
    store.append(thought(0))
    with pytest.raises(LogError, match="can't be appended to a log of 1"):
        store.append(thought(id))
    store.append(thought(1))
    assert [e.id for e in store] == [0, 1]


UNSTORABLE = [
    Think(content="half a \ud800 pair"),
    McpCall(server="s", name="n", arguments={"a\udfff": ["\ud83d"]}),
    FileWrite(path="a", content="x" * MAX_LINE_BYTES),
]


@pytest.mark.parametrize("event", UNSTORABLE, ids=["text", "key", "size"])
def test_an_unstorable_event_is_refused_and_the_log_continues(opened: Opened, event) -> None:
    store = opened("run")
    with pytest.raises(UnstorableEvent):
        store.append(event.model_copy(update={"id": 0}))
    assert len(store) == 0
    store.append(thought(0))
    assert list(store) == [thought(0)]


@given(events=logs(min_size=1, max_size=6))
@settings(max_examples=20, suppress_health_check=list(HealthCheck))
def test_every_event_survives_the_round_trip(opened: Opened, runs, events) -> None:
    store = opened(f"run {next(runs)}")
    for event in events:
        store.append(event)
    assert list(store) == events


@pytest.fixture
def runs() -> Iterator[int]:
    """Yield keys of runs, a different one for each example."""
    return itertools.count()


@pytest.mark.parametrize("opened", ["jsonl", "stored"], indirect=True)
def test_two_writers_of_one_run_can_not_append_the_same_id(opened: Opened) -> None:
    first = opened("run")
    first.append(thought(0))
    with pytest.raises((LogError, LeaseLost), match="another process"):
        opened("run").append(thought(1, "by the second"))
        first.append(thought(1, "by the first"))
    assert len(list(first)) <= 2


def test_an_event_is_on_disk_before_any_subscriber_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.jsonl"
    synced: list[bytes] = []
    told: list[tuple[Event, bytes]] = []

    def sync(descriptor: int, to_disk: Callable[[int], None] = os.fdatasync) -> None:
        to_disk(descriptor)
        synced.append(path.read_bytes())

    monkeypatch.setattr(os, "fdatasync", sync)
    with contextlib.closing(JsonlStore(path)) as store:
        stream = EventStream(store)
        stream.subscribe("reader", lambda event: told.append((event, synced[-1])), essential=True)
        stream.add(thought(0))
        stream.add(thought(1))
    lines = [stored_line(event).encode() + b"\n" for event, _ in told]
    assert [on_disk for _, on_disk in told] == [lines[0], lines[0] + lines[1]]


def test_an_incomplete_last_line_is_removed_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "events.jsonl"
    store = JsonlStore(path)
    store.append(thought(0))
    store.close()
    torn = b'{"id":1,"kind":"think","content":"' + b"x" * 200_000
    for times in (1, 2):
        with open(path, "ab") as file:
            file.write(torn)
        assert [e.id for e in read_log(path)] == list(range(times))
        again = JsonlStore(path)
        assert len(again) == times
        again.append(thought(times))
        again.close()
    assert [e.id for e in read_log(path)] == [0, 1, 2]
    (warning, _) = caplog.messages
    assert f"removed an incomplete last line of {len(torn)} bytes" in warning


@pytest.mark.parametrize("torn", [b"", b"{", b'{"id":0,"kind":"null"}', b"x" * 70_000])
def test_a_log_killed_at_its_first_event_starts_over(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(torn)
    store = JsonlStore(path)
    assert list(store) == []
    store.append(thought(0))
    store.close()
    assert list(read_log(path)) == [thought(0)]


def test_a_broken_log_is_not_opened_for_writing_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"id":0,"kind":"null"}\ngarbage\n{"id":2,"kind":"null"}\n')
    before = path.read_bytes()
    with pytest.raises(LogError, match="line 2: not a line of JSON"):
        JsonlStore(path)
    assert path.read_bytes() == before


SCRIPT = """
import resource, signal, sys
from pathlib import Path
from resolver.errors import LeaseLost, LogError, RunStopped
from resolver.events.actions import Think
from resolver.events.stores import JsonlStore
from resolver.events.stream import EventStream
path = Path(sys.argv[1])
"""
FULL = (
    SCRIPT
    + """
stream = EventStream(JsonlStore(path))
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
for i in range(100):
    try:
        stream.add(Think(content="x" * 997))
    except LogError as error:
        print(error.what)
        break
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
stream.add(Think(content="the last"))
"""
)
SIGNALLED = (
    SCRIPT
    + """
def stop(*_):
    raise RunStopped("a signal")
signal.signal(signal.SIGALRM, stop)
stream = EventStream(JsonlStore(path))
told = []
stream.subscribe("state", lambda event: told.append(event.id), essential=True)
stream.add(Think(content="the first, which builds the model"))
for _ in range(400):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0007)
        for _ in range(50):
            stream.add(Think(content="x" * 500))
        signal.setitimer(signal.ITIMER_REAL, 0)  # no signal comes after the block
    except RunStopped:
        pass
last = stream.add(Think(content="the last"))
print(last.id, told[-1], told == sorted(set(told)))
"""
)


def test_a_full_disk_is_an_error_and_a_partial_write_is_undone(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    done = run_script(FULL, path)
    assert f"the event log {path} can't be written: File too large" in done
    events = list(read_log(path))
    assert events[-1].content == "the last"
    assert path.stat().st_size > 9_000
    assert path.read_bytes().endswith(b"\n")


def test_signals_during_an_append_leave_the_log_intact(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    last, result, in_order = run_script(SIGNALLED, path).split()
    assert (result, in_order) == (last, "True")
    assert [e.id for e in read_log(path)] == list(range(int(last) + 1))


def run_script(script: str, path: Path) -> str:
    command = [sys.executable, "-c", script, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
