"""The sandbox's image (a name, or the devcontainer's) and images that hold what a set-up made."""

import hashlib
import json
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO, Final

import docker
from docker import DockerClient

from resolver.config.image_reference import (
    DEVCONTAINER,
    DOCKERFILE,
    PREPARED_PREFIX,
    parse_registry_reference,
)
from resolver.errors import UsageError
from resolver.runtime.engine import engine_errors
from resolver.runtime.environment.plan import FILES, Read, read_devcontainer

PREPARED_LABEL: Final = "resolver.prepared"
REPOSITORY_LABEL: Final = "resolver.repository"
"""The labels of images made here: the key that a prepared image is found by, and the digest of the
repository that it belongs to."""

BUILT_LABEL: Final = "resolver.built"
"""The label of a built image, which loses its name to the next build of its repository."""

KEPT: Final = timedelta(days=14)
"""Age at which a prepared image is removed."""

MAX_PREPARED_IMAGES: Final = 3
"""Number of prepared images that are kept per repository. Each commit of its default branch may
make one, and the newest are most likely to be used again."""


def requested_image(setting: str, read: Read) -> str:
    """Return the image that the setting `image` means in this repository. Raises UsageError."""
    if setting == DEVCONTAINER:
        devcontainer = read_devcontainer(read)
        if devcontainer is None:
            raise UsageError(
                f"the setting image is {DEVCONTAINER!r} and there is none of {', '.join(FILES)}",
                "add the file to the default branch, or name an image",
            )
        if devcontainer.image:
            return parse_registry_reference(devcontainer.image, f"{devcontainer.path}, image,")
        raise UsageError(
            f"{devcontainer.path} names no image",
            f"add `image`, or set image to `{DOCKERFILE}PATH` to build one",
        )
    if setting.startswith(DOCKERFILE):
        raise UsageError(
            f"the image is built from {setting.removeprefix(DOCKERFILE)}, and it needs a name here",
            "build the image, push it to a registry, and name it with --image",
        )
    return setting


def build_image(client: DockerClient, dockerfile: str, repository: str, context: BinaryIO) -> str:
    """Build an image with the engine, and return its id.

    One engine may hold images of other repositories, so every image that the Dockerfile names is
    taken from a registry (`pull`): the engine looks no name up among its own images. It keeps the
    steps that have not changed since the last build.
    repository: distinguishes it from all other repositories that use the engine.
    context: a tar with the Dockerfile at the path `dockerfile`.
    Raises SandboxError.
    """
    with engine_errors(f"{dockerfile} could not be built", "build it manually to see why"):
        try:
            image, _ = client.images.build(
                fileobj=context,
                custom_context=True,
                dockerfile=dockerfile,
                tag=f"{PREPARED_PREFIX}:built-{derive_key(repository)}",
                labels={BUILT_LABEL: "true"},
                pull=True,
                rm=True,
                forcerm=True,
                use_config_proxy=False,  # the proxy's URL may hold a password of this host
            )
        except docker.errors.BuildError as error:
            # Only when its answer was read to the end does the connection return to the client.
            deque(error.build_log, maxlen=0)
            raise
    return str(image.id)


def find_prepared_image(client: DockerClient, key: str) -> str | None:
    """Return the id of the prepared image that was made under `key`, or None.

    The name alone proves nothing, because anybody with access to the engine can tag an image. The
    label must hold the key too.
    """
    with engine_errors("the engine can't list its images", "check it with `docker images`"):
        try:
            image = client.images.get(f"{PREPARED_PREFIX}:{key}")
        except docker.errors.ImageNotFound:
            return None
    return str(image.id) if image.labels.get(PREPARED_LABEL) == key else None


def derive_key(*parts: str) -> str:
    """Return a digest of the parts. Different parts give different digests."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def remove_older_environments(client: DockerClient, repository: str) -> None:
    """Make room for one more prepared image of a repository: remove the oldest that aren't in use.

    repository: digest of the repository that they belong to.
    """
    with engine_errors("the engine can't list its images", "check it with `docker images`"):
        images = _list_images(client, f"{REPOSITORY_LABEL}={repository}")
        for image in sorted(images, key=_creation_time, reverse=True)[MAX_PREPARED_IMAGES - 1 :]:
            _remove_names(client, image)


def image_id(client: DockerClient, image: str) -> str:
    """Return the engine's id of an image that it has."""
    with engine_errors(f"the image {image} is not on the engine", "pull it first"):
        return str(client.images.get(image).id)


def remove_old_images(client: DockerClient, now: datetime, max_age: timedelta = KEPT) -> list[str]:
    """Remove unused built and prepared images of at least the age `max_age`; return their names."""
    with engine_errors("the engine can't list its images", "check it with `docker images`"):
        until = f"{int(max_age.total_seconds())}s"
        client.images.prune({"dangling": True, "label": BUILT_LABEL, "until": until})
        return [
            tag
            for image in _list_images(client)
            if now - _creation_time(image) >= max_age
            for tag in _remove_names(client, image)
        ]


def _list_images(client: DockerClient, *labels: str) -> list[dict[str, Any]]:
    """Return what the engine says about each prepared image."""
    return list(client.api.images(name=PREPARED_PREFIX, filters={"label": list(labels)}))


def _remove_names(client: DockerClient, image: dict[str, Any]) -> list[str]:
    """Remove the names of a prepared image, and return those that were removed.

    The engine removes an image with its last name. An image in use keeps its names.
    """
    removed: list[str] = []
    for tag in image["RepoTags"] or ():
        if not tag.startswith(f"{PREPARED_PREFIX}:"):
            continue
        try:
            client.images.remove(tag)
        except docker.errors.APIError as error:
            if error.status_code not in {404, 409}:  # removed already, or in use
                raise
            continue
        removed.append(tag)
    return removed


def _creation_time(image: dict[str, Any]) -> datetime:
    return datetime.fromtimestamp(image["Created"], UTC)
