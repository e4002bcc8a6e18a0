"""Tests of recognizing images by their first bytes."""

import struct
import zlib

import pytest

from resolver.github.context.pictures import image_head


def png(width: int, height: int) -> bytes:
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))
    return b"\x89PNG\r\n\x1a\n" + data


def jpeg(width: int, height: int) -> bytes:
    comment = b"\xff\xfe" + struct.pack(">H", 6) + b"\xff\xc0ab"
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9)
    return b"\xff\xd8" + comment + b"\xff" + frame


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(3)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (png(3, 2), "png"),
        (jpeg(3, 2), "jpeg"),
        (gif(3, 2), "gif"),
    ],
)
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
