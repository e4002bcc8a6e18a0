"""Stores: one conformance suite, and what only the file has to survive."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from resolver.errors import LogError
from resolver.events.actions import Think
from resolver.events.store import EventStore, JsonlStore, MemoryStore, read_log


def thought(id: int) -> Think:
    return Think(id=id, content=f"thought {id}")


@pytest.fixture(params=["memory", "jsonl"])
def store(request: pytest.FixtureRequest, tmp_path: Path):
    if request.param == "memory":
        yield MemoryStore()
        return
    made = JsonlStore(tmp_path / "run" / "events.jsonl")
    yield made
    made.close()


def test_events_come_back_in_order(store: EventStore) -> None:
    for id in range(3):
        store.append(thought(id))
    assert [e.id for e in store] == [0, 1, 2]
    assert len(store) == 3


def test_a_reopened_file_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    first = JsonlStore(path)
    first.append(thought(0))
    first.close()
    second = JsonlStore(path)
    assert len(second) == 1
    second.append(thought(1))
    second.close()
    assert [e.id for e in read_log(path)] == [0, 1]


def test_a_torn_last_line_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    store = JsonlStore(path)
    store.append(thought(0))
    store.close()
    with open(path, "ab") as file:
        file.write(b'{"id":1,"kind":"thi')
    assert [e.id for e in read_log(path)] == [0]
    again = JsonlStore(path)
    assert len(again) == 1
    again.append(thought(1))
    again.close()
    assert [e.id for e in read_log(path)] == [0, 1]
    assert (tmp_path / "events.jsonl.torn").read_bytes() == b'{"id":1,"kind":"thi'


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"garbage\n", "line 2: not a line of JSON"),
        (b'{"id":5,"kind":"null"}\n', "line 2: the event's id is 5, not 1"),
        (b'{"id":0,"kind":"null"}\n', "line 2: the event's id is 0, not 1"),
    ],
)
def test_a_broken_line_is_named_by_number_and_the_file_left_alone(
    tmp_path: Path, line: bytes, says: str
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"id":0,"kind":"null"}\n' + line)
    before = path.read_bytes()
    with pytest.raises(LogError) as caught:
        list(read_log(path))
    assert says in caught.value.what
    assert path.read_bytes() == before


def test_a_missing_log_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="can't be read"):
        list(read_log(tmp_path / "none.jsonl"))


WRITER = """
import sys
from pathlib import Path
from resolver.events.actions import Think
from resolver.events.store import JsonlStore
store = JsonlStore(Path(sys.argv[1]))
for i in range(10**6):
    store.append(Think(id=i, content="x" * 2000))
    if i == 20:
        print("going", flush=True)
"""


def test_a_kill_in_the_middle_leaves_a_readable_log(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
    events = list(read_log(path))
    assert len(events) > 20
    reopened = JsonlStore(path)
    assert len(reopened) == len(events)
    reopened.close()
