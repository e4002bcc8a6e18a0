"""Tests of recognizing images by their first bytes."""

import struct
import zlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.github.context.failed_checks import cut_log
from resolver.github.context.pictures import image_head
from resolver.models.run import Comment
from resolver.models.truncate import shorten_thread


def png(width: int, height: int) -> bytes:
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))
    return b"\x89PNG\r\n\x1a\n" + data


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(3)


@pytest.mark.parametrize(("data", "kind"), [(png(3, 2), "png"), (gif(3, 2), "gif")])
def test_kind_and_size_are_read(data: bytes, kind: str) -> None:
    head = image_head(data)
    assert head is not None
    assert (head.kind, head.width, head.height) == (kind, 3, 2)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"%PDF-1.7",
        b"\x89PNG\r\n\x1a\n",
        png(0, 5),
        b"\xff\xd8\xff",
        b"\xff\xd8" + b"\xff\xe0\x00\x00" * 10,
        b"RIFF" + bytes(4) + b"WAVEfmt " + bytes(30),
        b"GIF89a",
    ],
)
def test_other_bytes_are_not_a_picture(data: bytes) -> None:
    assert image_head(data) is None


STAMP = "2026-01-02T03:04:05.1234567Z "


def log(*lines: str) -> str:
    return "\ufeff" + "\r\n".join(STAMP + line for line in lines) + "\r\n"


def test_timestamps_colours_and_overwritten_progress_are_removed() -> None:
    text = log("\x1b[31mred\x1b[0m", "10%\r50%\r100% done", "a\u200bb", "\x1b]0;title\x07x")
    assert cut_log(text, 1000) == "red\n100% done\nab\nx"


PIECES = ["\n", "\r", "error: x", "##[error]", "\x1b[1m", "line", STAMP, "E   ", "\u202e", "\ud800"]


def test_a_secret_is_redacted_before_a_line_is_truncated() -> None:
    secret = "s" * 10 + "e" * 600

    def hide(text: str) -> str:
        return text.replace(secret, "[redacted]")

    for line in (f"error: {secret}", f"error: sss\x1b[1m{secret[3:]}", f"{secret} error:"):
        cut = cut_log(line, 200, hide)
        assert "[redacted]" in cut
        assert "ee" not in cut


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=60), st.integers(0, 500))
def test_the_excerpt_of_any_log_fits_and_is_clean(pieces: list[str], room: int) -> None:
    cut = cut_log("".join(pieces), room)
    assert len(cut) <= room
    assert not set(cut) & {"\x1b", "\r", "\u202e", "\x00"}


NOW = datetime(2026, 1, 2, tzinfo=UTC)


def thread(*sizes: int) -> tuple[Comment, ...]:
    return tuple(
        Comment(id=n, author="a", created_at=NOW, body="x" * size) for n, size in enumerate(sizes)
    )


def test_the_first_of_the_newest_comments_counts_the_missing_ones() -> None:
    result = shorten_thread(thread(*[10] * 20), 80)
    assert [(c.id, c.skipped) for c in result] == [
        (0, 0), (1, 0), (14, 12), (15, 0), (16, 0), (17, 0), (18, 0), (19, 0),
    ]  # fmt: skip


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(0, 400), st.integers(0, 400))
def test_any_conversation_fits_and_all_comments_are_counted(
    sizes: list[int], room: int, less: int
) -> None:
    result = shorten_thread(thread(*sizes), room)
    assert sum(len(c.body) for c in result) <= room or len(result) == len(sizes)
    if result and result[-1].id == len(sizes) - 1:
        assert len(result) + sum(c.skipped for c in result) == len(sizes)
        again = shorten_thread(result, min(room, less))
        if again and again[-1].id == len(sizes) - 1:
            assert len(again) + sum(c.skipped for c in again) == len(sizes)
