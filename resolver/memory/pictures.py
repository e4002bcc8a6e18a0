"""Which images of a conversation a model is sent, and the words that stand for the others. Those of
the task are always sent, and have the numbers by which its texts call them.

What was sent stays as it is, so that a prompt cache holds: older images are dropped several at a
time, by their number alone.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from resolver.events import observations as o
from resolver.events.base import EventBase
from resolver.models.issue_context import Picture
from resolver.models.run import JsonObject

MOST = 8
"""Images that a conversation holds at most."""

DROPPED_AT_ONCE = 4
"""When one more than `MOST` comes, this many of the oldest go."""

MAX_CHARACTERS = 3_000_000
"""Of one image's data: URL. Providers refuse a request with an image over 5 MB."""

_SENT = "shown below"
_SENDABLE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+")
"""An address would be fetched by the provider, so nothing but the image itself is sent."""


def images_of(event: EventBase) -> tuple[str, ...]:
    """The data: URLs of the images that came with an observation."""
    match event:
        case (
            o.IPythonOutput(images=images)
            | o.FileReadResult(images=images)
            | o.McpResult(images=images)
        ):
            return images
        case o.BrowserOutput(screenshot=str(screenshot)):
            return (screenshot,)
        case _:
            return ()


def first_shown(count: int) -> int:
    """Of `count` images, the number (from 0) of the first that is sent."""
    over = max(0, count - MOST)
    return -(-over // DROPPED_AT_ONCE) * DROPPED_AT_ONCE


@dataclass
class Pictures:
    """Numbers the images of a conversation from its beginning.

    sees: whether the model takes images. first: the first number that is sent.
    """

    sees: bool
    first: int = 0
    count: int = 0

    def take(self, images: Sequence[str]) -> tuple[list[str], list[JsonObject]]:
        """The next images: lines of text about them, and the content parts that are sent."""
        lines: list[str] = []
        parts: list[JsonObject] = []
        for image in images:
            self.count += 1
            fate = self._fate(image)
            lines.append(f"[image {self.count}: {fate}]")
            if fate == _SENT:
                parts.append({"type": "text", "text": f"Image {self.count}:"})
                parts.append({"type": "image_url", "image_url": {"url": image}})
        return lines, parts

    def of_task(self, pictures: Sequence[Picture]) -> tuple[list[str], list[JsonObject]]:
        """The same for the pictures of the task; they are not counted with the others."""
        lines: list[str] = []
        parts: list[JsonObject] = []
        for picture in pictures:
            shown = self.sees and bool(_SENDABLE.fullmatch(picture.data))
            fate = _SENT if shown else "not shown, since you can't see images here"
            lines.append(f"[picture {picture.number}: {fate}]")
            if shown:
                parts.append({"type": "text", "text": f"Picture {picture.number}:"})
                parts.append({"type": "image_url", "image_url": {"url": picture.data}})
        return lines, parts

    def _fate(self, image: str) -> str:
        if not self.sees:
            return "not shown, since you can't see images here"
        if self.count <= self.first:
            return "no longer shown; make it again if you need it"
        if len(image) > MAX_CHARACTERS:
            return "not shown, since it is too large; make a smaller one"
        if not _SENDABLE.fullmatch(image):
            return "not shown, since only PNG, JPEG, GIF and WebP can be"
        return _SENT
