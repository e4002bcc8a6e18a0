"""Selects the images of a conversation that a model is sent, and writes the text that stands in for
the others. Images of the task are always sent, under the numbers that the task's text refers to.

Messages that were already sent should stay unchanged so that the prompt cache stays valid. Older
images are therefore dropped several at a time, decided by their number alone.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from resolver.events import observations as o
from resolver.events.base import EventBase
from resolver.models.issue_context import Picture
from resolver.models.run import JsonObject

MOST = 8
"""Maximum images that a conversation sends, not counting those of the task."""

DROPPED_AT_ONCE = 4
"""Number of the oldest images dropped at once when there are more than `MOST`."""

MAX_CHARACTERS = 3_000_000
"""Maximum characters of one image's data: URL. Providers refuse a request with an image over 5 MB.
"""

_SENT = "shown below"
_SENDABLE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+")
"""Only data: URLs are sent: the provider would fetch any other URL itself."""


def images_of(event: EventBase) -> tuple[str, ...]:
    """Return the data: URLs of the images in an observation."""
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
    """Return the number (from 0) of the first image that is sent, of `count` images in all."""
    over = max(0, count - MOST)
    return -(-over // DROPPED_AT_ONCE) * DROPPED_AT_ONCE


@dataclass
class Pictures:
    """Numbers the images of a conversation from its beginning and decides which are sent.

    sees: the model accepts images.
    first: number of the first image that is sent.
    count: number of images so far.
    """

    sees: bool
    first: int = 0
    count: int = 0

    def take(self, images: Sequence[str]) -> tuple[list[str], list[JsonObject]]:
        """Count the next images; return lines of text about them and the content parts to send."""
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
        """Return the same for the images of the task, which are not counted."""
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
        """Return `_SENT`, or the reason why the image is not sent."""
        if not self.sees:
            return "not shown, since you can't see images here"
        if self.count <= self.first:
            return "no longer shown; make it again if you need it"
        if len(image) > MAX_CHARACTERS:
            return "not shown, since it is too large; make a smaller one"
        if not _SENDABLE.fullmatch(image):
            return "not shown, since only PNG, JPEG, GIF and WebP can be"
        return _SENT
