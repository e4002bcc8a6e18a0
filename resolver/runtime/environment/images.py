"""The sandbox's image: a name, the devcontainer's, or one built from a Dockerfile.

Also keeps images that hold the result of a set-up. The engine builds from a tar of the commit; no
file of this host is part of it. One engine may hold images of other repositories, so a build takes
every image that its Dockerfile names from a registry (`pull`): the engine then looks no name up
among its own images, and takes none for the beginning of an image's id.
"""

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import IO, Final, cast

import docker
from docker import DockerClient
from docker.errors import BuildError
from docker.models.images import Image

from resolver.config.image_reference import (
    BUILT_PREFIX,
    DEVCONTAINER,
    DOCKERFILE,
    PREPARED_PREFIX,
    parse_registry_reference,
)
from resolver.errors import UsageError
from resolver.runtime.engine import engine_errors
from resolver.runtime.environment.plan import FILES, Read, read_devcontainer

BUILT_LABEL: Final = "resolver.built"
PREPARED_LABEL: Final = "resolver.prepared"
REPOSITORY_LABEL: Final = "resolver.repository"
"""The three labels of images made here: the keys that a built or a prepared image is found by, and
the digest of the repository that it belongs to."""

KEPT: Final = timedelta(days=14)
"""Age at which a built or prepared image is removed."""

MAX_PREPARED_IMAGES: Final = 3
"""Number of prepared images that are kept per repository. Each commit of its default branch may
make one, and the newest are most likely to be used again."""

BUILD_SECONDS: Final = 3600
_MAX_OUTPUT_CHARACTERS: Final = 2_000


@dataclass(frozen=True)
class BuildSource:
    """The commit that an image is built from. Only people with write access have made it.

    read: returns a file of the commit.
    context: returns a tar stream of the commit's files, with the Dockerfile at a path among them.
    tree: returns the object id of the commit's tree.
    """

    read: Read
    context: Callable[[str], Iterator[bytes]]
    tree: Callable[[], str]


@dataclass(frozen=True)
class Build:
    """An image that is to be built. dockerfile: path from the repository's root."""

    dockerfile: str


def requested_image(setting: str, read: Read) -> str | Build:
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
        path = setting.removeprefix(DOCKERFILE).strip()
        if read(path) is None:
            raise UsageError(
                f"the setting image names {path!r}, which is not in the repository",
                "correct the path: it starts at the repository's root",
            )
        return Build(path)
    return setting


def build_image(client: DockerClient, build: Build, repository: str, source: BuildSource) -> str:
    """Return the id of the image made by the build; build it if the engine lacks it.

    repository: digest of the repository that the image belongs to.
    Raises SandboxError with the end of the build's output.
    """
    dockerfile = build.dockerfile
    key = derive_key("built", repository, dockerfile, source.tree())
    name = f"{BUILT_PREFIX}:{key}"
    if (existing := find_kept_image(client, name, BUILT_LABEL, key)) is not None:
        return existing
    labels = {BUILT_LABEL: key, REPOSITORY_LABEL: repository}
    with engine_errors(f"{dockerfile} could not be built", "build it manually to see why"):
        _run_build(client, dockerfile, name, labels, source.context(dockerfile))
    return image_id(client, name)


def find_kept_image(client: DockerClient, name: str, label: str, key: str) -> str | None:
    """Return the id of the image of that name that was made under `key`, or None.

    The name alone proves nothing, because anybody with access to the engine can tag an image. The
    label must hold the key too.
    """
    with engine_errors("the engine can't list its images", "check it with `docker images`"):
        try:
            image = client.images.get(name)
        except docker.errors.ImageNotFound:
            return None
    return str(image.id) if image.labels.get(label) == key else None


def derive_key(*parts: str) -> str:
    """Return a digest of the parts. Different parts give different digests."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def remove_older_environments(
    client: DockerClient, repository: str, keep_count: int = MAX_PREPARED_IMAGES - 1
) -> None:
    """Remove the prepared images of a repository except the newest ones and those in use.

    repository: digest of the repository that they belong to.
    keep_count: number of images that stay.
    """
    with engine_errors("the engine can't list its images", "check it with `docker images`"):
        images = _list_images(client, PREPARED_PREFIX, f"{REPOSITORY_LABEL}={repository}")
        for image in sorted(images, key=_creation_time, reverse=True)[keep_count:]:
            _remove_names(client, image, PREPARED_PREFIX)


def image_id(client: DockerClient, image: str) -> str:
    """Return the engine's id of an image that it has."""
    with engine_errors(f"the image {image} is not on the engine", "pull it first"):
        return str(client.images.get(image).id)


def remove_old_images(client: DockerClient, now: datetime, max_age: timedelta = KEPT) -> list[str]:
    """Remove unused built and prepared images of at least the age `max_age`; return their names."""
    with engine_errors("the engine can't list its images", "check it with `docker images`"):
        return [
            tag
            for name in (BUILT_PREFIX, PREPARED_PREFIX)
            for image in _list_images(client, name)
            if now - _creation_time(image) >= max_age
            for tag in _remove_names(client, image, name)
        ]


def _list_images(client: DockerClient, name: str, *labels: str) -> Iterator[Image]:
    """Yield the images of that name. Other runs may remove some of them in the meantime."""
    for image_info in client.api.images(name=name, filters={"label": list(labels)}):
        try:
            yield client.images.get(image_info["Id"])
        except docker.errors.ImageNotFound:
            continue


def _remove_names(client: DockerClient, image: Image, name: str) -> list[str]:
    """Remove the names of an image that begin with `name`, and return those that were removed.

    The engine removes an image with its last name. An image in use keeps its names.
    """
    removed: list[str] = []
    for tag in image.tags:
        if not tag.startswith(f"{name}:"):
            continue
        try:
            client.images.remove(tag)
        except docker.errors.APIError as error:
            if error.status_code not in {404, 409}:  # removed already, or in use
                raise
            continue
        removed.append(tag)
    return removed


def _run_build(
    client: DockerClient,
    dockerfile: str,
    name: str,
    labels: Mapping[str, str],
    context: Iterator[bytes],
) -> None:
    output: deque[str] = deque(maxlen=200)
    error = ""
    stream = client.api.build(
        fileobj=cast("IO[bytes]", context),
        custom_context=True,
        dockerfile=dockerfile,
        tag=name,
        labels=dict(labels),
        pull=True,
        rm=True,
        forcerm=True,
        decode=True,
        timeout=BUILD_SECONDS,
        use_config_proxy=False,  # the proxy's URL may hold a password of this host
    )
    for line in stream:  # to its end, which gives the connection back
        output.append(str(line.get("stream", "")))
        error = error or str(line.get("error", ""))
    if error:
        output_end = "".join(output)[-_MAX_OUTPUT_CHARACTERS:]
        raise BuildError(f"{error}\n{output_end}".strip(), build_log=iter(()))


def _creation_time(image: Image) -> datetime:
    try:
        created = datetime.fromisoformat(str(image.attrs.get("Created")))
    except ValueError:
        return datetime.now(UTC)
    return created if created.tzinfo else created.replace(tzinfo=UTC)
