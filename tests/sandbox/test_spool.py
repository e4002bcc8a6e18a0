"""Tests of output of any size: excerpt, counts and file."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.sandbox.spool import EDGE_BYTES, MAX_FILE_BYTES, Spool
from resolver.sandbox.wire import MAX_TEXT


def _filled(path: Path, data: bytes, step: int = 60_000) -> Spool:
    spool = Spool(str(path))
    for at in range(0, len(data), step):
        spool.add(data[at : at + step])
    return spool


def test_a_short_output_is_shown_completely_without_a_file(tmp_path: Path) -> None:
    excerpt = _filled(tmp_path / "o", b"one\ntwo").excerpt()
    assert (excerpt.text, excerpt.omitted, excerpt.path) == ("one\ntwo", 0, None)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "size", [MAX_TEXT, MAX_TEXT + 1, EDGE_BYTES, EDGE_BYTES + 1, 3 * EDGE_BYTES, 20 * EDGE_BYTES]
)
def test_every_byte_is_shown_or_counted(tmp_path: Path, size: int) -> None:
    data = b"".join(b"%09d\n" % n for n in range(size // 10 + 1))[:size]
    excerpt = _filled(tmp_path / "o", data).excerpt()
    head, _, tail = excerpt.text.partition("\n[...")
    if size <= MAX_TEXT:
        assert excerpt.text.encode() == data and not excerpt.omitted
        return
    tail = tail.partition("...]\n")[2]
    assert data.startswith(head.encode()) and data.endswith(tail.encode())
    assert len(head.encode()) + len(tail.encode()) + excerpt.omitted == size
    assert MAX_TEXT - 100 <= len(head) + len(tail) <= MAX_TEXT
    assert str(excerpt.omitted) in excerpt.text and str(excerpt.path) in excerpt.text
    assert Path(str(excerpt.path)).read_bytes() == data


@given(st.binary(max_size=300))
def test_invalid_text_is_shown_with_replacements(data: bytes) -> None:
    text = _filled(Path("/nonexistent/o"), data).excerpt().text
    assert text == data.decode("utf-8", "replace").replace("\0", "\ufffd")


def test_in_an_unwritable_folder_the_file_is_missing_and_reported() -> None:
    excerpt = _filled(Path("/proc/none/o"), b"x" * 10 * EDGE_BYTES).excerpt()
    assert excerpt.path is None and "was not kept" in excerpt.text
    assert excerpt.omitted == 10 * EDGE_BYTES - MAX_TEXT


def test_old_outputs_are_removed(tmp_path: Path) -> None:
    for number in range(30):
        _filled(tmp_path / f"{number:06d}.txt", b"x" * 2 * EDGE_BYTES).excerpt()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == 8 and names[-1] == "000029.txt"


def test_an_endless_output_stops_growing_on_disk(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "o"))
    for _ in range(120):
        spool.add(b"x" * (1 << 20))
    excerpt = spool.excerpt()
    assert (tmp_path / "o").stat().st_size == MAX_FILE_BYTES
    assert f"its first {MAX_FILE_BYTES} bytes" in excerpt.text
    assert excerpt.omitted == 120 * (1 << 20) - MAX_TEXT
