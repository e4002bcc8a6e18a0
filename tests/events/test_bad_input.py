"""Tests of damaged logs: a clear error with the line."""

import os
from pathlib import Path

import pytest

from resolver.errors import LogError
from resolver.events.log import MAX_LINE_BYTES, read_log
from resolver.storage.log_location import open_log

NULL = b'{"id":%d,"kind":"null"}\n'


BAD = {
    "empty": (b"", "has no event in it"),
    "only a torn line": (b'{"id":0,"kind"', "has no event in it"),
    "cut in the middle": (NULL % 0 + b'{"id":1,"ki\n' + NULL % 2, "line 2: not a line of JSON"),
    "duplicate": (NULL % 0 + NULL % 0, "line 2: the event's id is 0, not 1"),
    "gap": (NULL % 0 + NULL % 2, "line 2: the event's id is 2, not 1"),
    "no start": (NULL % 1, "line 1: the event's id is 1, not 0"),
    "other": (b'{"name": "package"}\n', "line 1: an event has no kind"),
    "older": (
        b'{"id":0,"kind":"run_started","schema_version":0,"version":"0.0.9"}\n',
        "line 1: Resolver 0.0.9 wrote it in version 0 of the log's format, and this Resolver reads",
    ),
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
        list(open_log(str(path), {}))
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


def test_a_file_whose_disk_fails_is_an_error_that_names_the_line() -> None:
    unreadable = Path("/proc/self/mem")  # nothing is mapped where it begins
    if not os.access(unreadable, os.R_OK):
        pytest.skip("only root can read the memory of a process with a local sandbox")
    with pytest.raises(LogError, match="line 1 can't be read: Input/output error"):
        list(read_log(unreadable))


def test_a_huge_line_is_refused_before_it_is_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with open(path, "wb") as file:
        file.write(NULL % 0)
        file.truncate(64 * MAX_LINE_BYTES)  # 4 GiB of zeros that take no room
    with pytest.raises(LogError, match="line 2: longer than 67,108,864 bytes"):
        list(read_log(path))
