"""Pulls an image and logs that it does.

Whoever shows progress to a person attaches a handler to `pull_logger`.
"""

import logging

from docker import DockerClient
from docker.errors import APIError
from docker.models.images import Image
from docker.utils import parse_repository_tag

pull_logger = logging.getLogger("resolver.runtime.image_pull")


def pull_image(client: DockerClient, image: str) -> Image:
    """Pull an image and return it. Raises the exceptions of the engine's client."""
    repository, tag = parse_repository_tag(image)
    tag = tag or "latest"
    pull_logger.info("Pulling the image %s", image)
    # The client's own `images.pull` ignores an error that the engine reports while it pulls.
    for entry in client.api.pull(repository, tag=tag, stream=True, decode=True):
        if entry.get("error"):
            raise APIError(str(entry["error"]))
    return client.images.get(f"{repository}{'@' if tag.startswith('sha256:') else ':'}{tag}")
