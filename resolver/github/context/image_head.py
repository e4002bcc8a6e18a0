"""Determines the type and size of a picture from its header, without decoding it.

Sources: https://www.w3.org/TR/png-3/
https://www.w3.org/Graphics/JPEG/itu-t81.pdf
https://www.w3.org/Graphics/GIF/spec-gif89a.txt
https://developers.google.com/speed/webp/docs/riff_container
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["png", "jpeg", "gif", "webp"]

_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""JPEG markers of frame headers (SOF), which contain the size."""

_BARE = frozenset({0x01, *range(0xD0, 0xD8)})
"""JPEG markers without a length field."""

_SEGMENTS = 1_000
"""Maximum number of JPEG segments that are searched for the size."""


@dataclass(frozen=True)
class ImageHead:
    """The type of a picture, and its width and height in pixels according to the file."""

    kind: Kind
    width: int
    height: int


def image_head(data: bytes) -> ImageHead | None:
    """Return type and size, None for anything but a PNG, JPEG, GIF or WebP with a size."""
    found: ImageHead | None = None
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR" and len(data) >= 24:
        found = ImageHead("png", _big(data[16:20]), _big(data[20:24]))
    elif data.startswith(b"\xff\xd8\xff"):
        found = _jpeg(data)
    elif data[:6] in {b"GIF87a", b"GIF89a"} and len(data) >= 10:
        found = ImageHead("gif", _little(data[6:8]), _little(data[8:10]))
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) >= 30:
        found = _webp(data)
    return found if found and found.width and found.height else None


def _jpeg(data: bytes) -> ImageHead | None:
    position = 2
    for _ in range(_SEGMENTS):
        while data[position : position + 2] == b"\xff\xff":
            position += 1
        if data[position : position + 1] != b"\xff" or len(data) < position + 9:
            return None
        marker = data[position + 1]
        if marker in _FRAMES:
            height, width = data[position + 5 : position + 7], data[position + 7 : position + 9]
            return ImageHead("jpeg", _big(width), _big(height))
        length = 0 if marker in _BARE else _big(data[position + 2 : position + 4])
        position += 2 + length
    return None


def _webp(data: bytes) -> ImageHead | None:
    match data[12:16]:
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            width, height = _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
        case b"VP8L" if data[20] == 0x2F:
            packed = _little(data[21:25])
            width, height = (packed & 0x3FFF) + 1, (packed >> 14 & 0x3FFF) + 1
        case b"VP8X":
            width, height = _little(data[24:27]) + 1, _little(data[27:30]) + 1
        case _:
            return None
    return ImageHead("webp", width, height)


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
