"""Pulls an image and logs its progress.

Whoever shows progress to a person attaches a handler to `pull_logger`: the start of a pull is
logged with INFO, its progress with DEBUG.
"""

import logging
from collections.abc import Mapping
from typing import Any

from docker import DockerClient
from docker.errors import APIError
from docker.models.images import Image
from docker.utils import parse_repository_tag

pull_logger = logging.getLogger("resolver.runtime.image_pull")

MAX_LAYERS = 1_000
"""Maximum number of layers that are counted; an image has 127 at most."""


class PullProgress:
    """Adds up the bytes of the layers of an image, as the engine reports them.

    See https://docs.docker.com/reference/api/engine/version/v1.47/#tag/Image/operation/ImageCreate
    """

    def __init__(self) -> None:
        self._layers: dict[str, tuple[int, int]] = {}

    def add(self, entry: Mapping[str, Any]) -> None:
        """Add one entry of the engine's answer."""
        layer, detail = str(entry.get("id", "")), entry.get("progressDetail") or {}
        known = self._layers.get(layer, (0, 0))
        if entry.get("status") == "Downloading" and len(self._layers) < MAX_LAYERS:
            current, total = (_number(detail.get(name)) for name in ("current", "total"))
            self._layers[layer] = (current, max(total, current))
        elif entry.get("status") in ("Download complete", "Pull complete"):
            self._layers[layer] = (known[1], known[1])

    def __str__(self) -> str:
        """Return the progress for a person, such as `12 of 45 MB`; "" before the first byte."""
        current = sum(done for done, _ in self._layers.values())
        total = sum(size for _, size in self._layers.values())
        return f"{current / 1e6:,.0f} of {total / 1e6:,.0f} MB" if total else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def pull_image(client: DockerClient, image: str) -> Image:
    """Pull an image and return it. Raises the exceptions of the engine's client."""
    repository, tag = parse_repository_tag(image)
    tag = tag or "latest"
    pull_logger.info("Pulling the image %s", image)
    progress, shown = PullProgress(), ""
    for entry in client.api.pull(repository, tag=tag, stream=True, decode=True):
        if entry.get("error"):
            raise APIError(str(entry["error"]))
        progress.add(entry)
        if str(progress) != shown:
            shown = str(progress)
            pull_logger.debug("Pulling the image %s: %s", image, shown)
    separator = "@" if tag.startswith("sha256:") else ":"
    return client.images.get(f"{repository}{separator}{tag}")
