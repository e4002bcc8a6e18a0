"""Tests of damaged logs: a clear error with the line, and the repair."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.errors import LogError, LogTooNew
from resolver.events.log import MAX_LINE_BYTES, dump_line, read_log
from resolver.events.repair import RepairedLog, repair_log
from resolver.events.state import State
from resolver.storage.event_table import open_log
from tests.events.strategies import logs

NULL = b'{"id":%d,"kind":"null"}\n'


def whole(count: int) -> list[bytes]:
    return [NULL % id for id in range(count)]


BAD = {
    "empty": (b"", "has no event in it"),
    "only a torn line": (b'{"id":0,"kind"', "has no event in it"),
    "empty line": (NULL % 0 + b"\n", "line 2: not a line of JSON"),
    "cut in the middle": (NULL % 0 + b'{"id":1,"ki\n' + NULL % 2, "line 2: not a line of JSON"),
    "duplicate": (NULL % 0 + NULL % 0, "line 2: the event's id is 0, not 1"),
    "gap": (NULL % 0 + NULL % 2, "line 2: the event's id is 2, not 1"),
    "no start": (NULL % 1, "line 1: the event's id is 1, not 0"),
    "no id": (b'{"kind":"null"}\n', "line 1: the event's id is -1, not 0"),
    "bytes": (NULL % 0 + b'{"id":1,"kind":"\xff"}\n', "line 2: not UTF-8 text, at byte 17"),
    "zip": (b"PK\x03\x04\x14\x00\n", "line 1: not a line of JSON"),
    "png": (b"\x89PNG\r\n\x1a\n\x00\n", "line 1: not UTF-8 text"),
    "page": (b"<!doctype html>\n", "line 1: not a line of JSON"),
    "mark": (b"\xef\xbb\xbf" + NULL % 0, "line 1: not a line of JSON"),
    "utf-16": ((NULL % 0).decode().encode("utf-16"), "line 1: not UTF-8 text"),
    "array": (b"[\n" + NULL % 0 + b"]\n", "line 1: not a line of JSON"),
    "zeros": (b"\0" * 5000 + b"\n", "line 1: not a line of JSON"),
    "other": (b'{"name": "package"}\n', "line 1: an event has no kind"),
    "newer": (
        b'{"id":0,"kind":"run_started","schema_version":2,"version":"9"}\n',
        "line 1: Resolver 9 wrote it in version 2",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_log_is_an_error_that_names_line_and_reason(tmp_path: Path, name: str) -> None:
    content, says = BAD[name]
    path = tmp_path / "events.jsonl"
    path.write_bytes(content)
    with pytest.raises(LogError) as caught:
        list(open_log(str(path)))
    assert caught.value.what.startswith(str(path))
    assert says in caught.value.what
    assert caught.value.next_step
    assert path.read_bytes() == content


def test_a_log_that_is_not_a_regular_file_is_refused_without_hanging(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path, says in {
        tmp_path: "is a folder",
        tmp_path / "fifo": "is not a regular file",
        Path("/dev/zero"): "is not a regular file",
        tmp_path / "none": "No such file",
        Path("a\0b"): "can't be read",
        Path("x" * 5000): "File name too long",
    }.items():
        with pytest.raises(LogError, match=says):
            list(read_log(path))
        with pytest.raises(LogError, match=says):
            repair_log(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_whose_disk_fails_is_an_error_that_names_the_line() -> None:
    unreadable = Path("/proc/self/mem")  # nothing is mapped where it begins
    with pytest.raises(LogError, match="line 1 can't be read: Input/output error"):
        list(read_log(unreadable))


def test_a_huge_line_is_refused_before_it_is_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with open(path, "wb") as file:
        file.write(NULL % 0)
        file.truncate(64 * MAX_LINE_BYTES)  # 4 GiB of zeros that take no room
    with pytest.raises(LogError, match="line 2: longer than 67,108,864 bytes"):
        list(read_log(path))


def test_a_huge_line_in_the_middle_is_left_out_by_repair(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with open(path, "wb") as file:
        file.write(NULL % 0)
        file.seek(3 * MAX_LINE_BYTES, os.SEEK_CUR)
        file.write(b"\n" + NULL % 1)
    done = repair_log(path, tmp_path / "out")
    assert [(d.line, d.what) for d in done.damages] == [
        (2, "left out: longer than 67,108,864 bytes")
    ]
    assert len(list(read_log(tmp_path / "out"))) == 2


def repair(folder: Path, *lines: bytes) -> tuple[RepairedLog, list[Any]]:
    """Repair a log of these lines, and check that the original is unchanged."""
    path, output = folder / "events.jsonl", folder / "repaired.jsonl"
    path.write_bytes(b"".join(lines))
    before = (hashlib.sha256(path.read_bytes()).digest(), path.stat().st_mtime_ns)
    done = repair_log(path, output)
    assert (hashlib.sha256(path.read_bytes()).digest(), path.stat().st_mtime_ns) == before
    events = list(read_log(output)) if output.exists() else []
    return done, events


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def test_an_intact_log_is_not_rewritten(tmp_path: Path) -> None:
    done, events = repair(tmp_path, *whole(3))
    assert (done.damages, done.kept_lines, events) == ((), 3, [])


def test_references_name_the_same_events_after_a_repair(tmp_path: Path) -> None:
    done, events = repair(
        tmp_path,
        line(id=0, kind="cmd_run", command="lost")[:-9] + b"\n",
        line(id=1, kind="cmd_run", command="kept"),
        line(id=2, kind="cmd_output", cause=1),
        line(id=3, kind="cmd_output", cause=0),
        line(id=5, kind="think", content="x", reply=2),
        line(id=6, kind="condensation", forgotten=[0, 1, 4, 5], masked=[5], new_field=None),
    )
    assert [e.id for e in events] == [0, 1, 2, 3, 4]
    assert [e.cause for e in events[:3]] == [None, 0, None]
    assert events[3].reply == 1
    assert events[4].forgotten == (0, 3)
    assert events[4].masked == (3,)
    assert events[4].model_extra == {"new_field": None}
    result = {(d.line, d.what) for d in done.damages}
    assert (4, "its cause was event 0, which is lost") in result
    assert (6, "its forgotten was event 4, which is lost") in result
    assert (5, "kept as event 3: its id was 5") in result


def test_the_log_of_a_delegate_is_renumbered_too(tmp_path: Path) -> None:
    def nested(id: int, inner: int, **more: Any) -> bytes:
        event = {"id": inner, "kind": "think", "content": "x", **more}
        return line(id=id, kind="delegate_event", delegate=1, event=event)

    _, events = repair(
        tmp_path,
        NULL % 0,
        line(id=1, kind="delegate", agent="a", task="t"),
        nested(2, 0),
        b"damaged\n",
        nested(4, 2, reply=0, cause=1),
    )
    assert [(e.delegate, e.event["id"]) for e in events[2:]] == [(1, 0), (1, 1)]
    assert (events[3].event["reply"], events[3].event["cause"]) == (0, None)


def test_the_same_event_twice_is_left_out_and_another_of_its_id_kept(tmp_path: Path) -> None:
    done, events = repair(
        tmp_path, NULL % 0, NULL % 0, line(id=0, kind="think", content="other"), NULL % 1
    )
    assert [e.kind for e in events] == ["null", "think", "null"]
    assert "is a duplicate" in done.damages[0].what


def test_zero_bytes_a_byte_order_mark_and_a_missing_line_end_lose_no_event(tmp_path: Path) -> None:
    lines = (b"\xef\xbb\xbf" + NULL % 0, b"\0" * 99 + NULL % 1, (NULL % 2).rstrip())
    done, events = repair(tmp_path, *lines)
    assert [e.id for e in events] == [0, 1, 2]
    assert len(done.damages) == 3


def test_a_repair_overwrites_nothing(tmp_path: Path) -> None:
    output = tmp_path / "repaired.jsonl"
    output.write_text("mine")
    with pytest.raises(LogError, match="already exists"):
        repair(tmp_path, b"x\n", NULL % 0)
    assert output.read_text() == "mine"


def test_nothing_is_written_if_no_event_can_be_saved(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="no line that is an event"):
        repair(tmp_path, b"x\n", b"\xff\n")
    assert [p.name for p in tmp_path.iterdir()] == ["events.jsonl"]


def test_a_log_of_a_newer_version_is_not_repaired(tmp_path: Path) -> None:
    newer = line(id=0, kind="run_started", schema_version=2, version="9")
    with pytest.raises(LogTooNew, match="line 1: Resolver 9 wrote it"):
        repair(tmp_path, newer, b"x\n", NULL % 1)


@st.composite
def damaged_logs(draw: st.DrawFn) -> tuple[list[bytes], int]:
    """Generate logs with broken, lost, duplicate or overwritten lines, and their number."""
    lines = [dump_line(e).encode() + b"\n" for e in draw(logs(min_size=2, max_size=10))]
    hit = draw(st.sets(st.integers(0, len(lines) - 1), max_size=4))
    for index in sorted(hit, reverse=True):
        match draw(st.sampled_from(["cut", "drop", "double", "noise", "insert"])):
            case "cut":
                lines[index] = lines[index][: draw(st.integers(1, 15))].rstrip(b"\n") + b"\n"
            case "drop":
                del lines[index]
            case "double":
                lines.insert(index, lines[index])
            case "noise":
                noise = draw(st.binary(min_size=1, max_size=40)).replace(b"\n", b"")
                lines[index] = b"\xff" + noise + b"\n"
            case _:
                lines.insert(index, b"{}\n")
    return lines, len(hit)


@given(damaged=damaged_logs())
def test_a_repaired_log_is_readable_and_only_damaged_lines_are_lost(
    tmp_path_factory: pytest.TempPathFactory, damaged: tuple[list[bytes], int]
) -> None:
    lines, hit = damaged
    try:
        done, events = repair(tmp_path_factory.mktemp("log"), *lines)
    except LogError as error:
        assert "no line that is an event" in error.what
        assert hit >= 1
        return
    if done.damages:
        assert len(events) == done.kept_lines >= len(set(lines)) - hit
        State.fold(events)
        earlier = [e.id for e in events]
        assert earlier == list(range(len(events)))
        assert all(e.cause is None or 0 <= e.cause < e.id for e in events)


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_any_file_is_repaired_or_refused_with_a_reason(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
) -> None:
    try:
        repair(tmp_path_factory.mktemp("log"), b"\n".join([*parts, *whole(1)]))
    except LogError as error:
        assert error.what
