"""The sandbox's image: a name, the devcontainer's, or one built from a Dockerfile.

Also keeps images that hold the result of a set-up. The engine builds from a tar of the commit; no
file of this host is part of it.
"""

import hashlib
import json
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
from resolver.git.tree import DOCKERFILE_NAME
from resolver.runtime.engine import engine_errors, image_settings
from resolver.runtime.environment.dockerfile import read_base_images, refuse_triggers
from resolver.runtime.environment.plan import FILES, DevContainer, Read, read_devcontainer

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

_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY")
"""Build arguments that the engine accepts without a declaration and leaves out of the keys of its
cache. A step that ran with the proxy of one repository would be reused for another repository."""

Context = Callable[[str, str], Iterator[bytes]]
"""Return a tar stream of a folder of the commit, with the Dockerfile added as DOCKERFILE_NAME.

Arguments: the folder and the Dockerfile as paths from the repository's root.
"""


@dataclass(frozen=True)
class BuildSource:
    """The commit that an image is built from. Only people with write access have made it.

    read: returns a file of the commit.
    context: returns a tar stream of a folder (see Context).
    tree: returns the object id of the commit's tree.
    """

    read: Read
    context: Context
    tree: Callable[[], str]


@dataclass(frozen=True)
class Build:
    """A Dockerfile and the inputs of its build. Paths start at the repository's root."""

    dockerfile: str
    context: str = "."
    args: tuple[tuple[str, str], ...] = ()
    target: str | None = None


def requested_image(setting: str, read: Read) -> str | Build:
    """Return the image that the setting `image` means in this repository. Raises UsageError."""
    if setting == DEVCONTAINER:
        devcontainer = read_devcontainer(read)
        if devcontainer is None:
            raise UsageError(
                f"the setting image is {DEVCONTAINER!r} and there is none of {', '.join(FILES)}",
                "add the file to the default branch, or name an image",
            )
        return _image_of_devcontainer(devcontainer)
    if setting.startswith(DOCKERFILE):
        path = setting.removeprefix(DOCKERFILE).strip()
        if read(path) is None:
            raise UsageError(
                f"the setting image names {path!r}, which is not in the repository",
                "correct the path: it starts at the repository's root",
            )
        return Build(path)
    return setting


def build_image(client: DockerClient, build: Build, repository: str, source: "BuildSource") -> str:
    """Return the id of the image made by the build; build it if the engine lacks it.

    repository: digest of the repository that the image belongs to.
    Raises UsageError if the Dockerfile names an image that a repository may not name, and
    SandboxError with the end of the build's output.
    """
    dockerfile = build.dockerfile
    key = derive_key("built", repository, repr(build), source.tree())
    name = f"{BUILT_PREFIX}:{key}"
    if (existing := find_kept_image(client, name, BUILT_LABEL, key)) is not None:
        return existing
    text = source.read(dockerfile)
    if text is None:
        raise UsageError(
            f"the image is to be built from {dockerfile}, which is not in the repository",
            "correct the path on the default branch, or name an image",
        )
    for base in read_base_images(dockerfile, text.decode(errors="replace"), dict(build.args)):
        refuse_triggers(dockerfile, base, image_settings(client, base).get("OnBuild") or ())
    labels = {BUILT_LABEL: key, REPOSITORY_LABEL: repository}
    with engine_errors(f"{dockerfile} could not be built", "build it manually to see why"):
        _run_build(client, build, name, labels, source.context)
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


def _image_of_devcontainer(devcontainer: DevContainer) -> str | Build:
    if devcontainer.image:
        return parse_registry_reference(devcontainer.image, f"{devcontainer.path}, image,")
    if devcontainer.dockerfile:
        args = tuple(
            arg for arg in sorted(devcontainer.args.items()) if arg[0].upper() not in _PROXIES
        )
        return Build(devcontainer.dockerfile, devcontainer.context, args, devcontainer.target)
    raise UsageError(
        f"{devcontainer.path} names neither an image nor a Dockerfile",
        "add `image` or `build.dockerfile`, or name an image in the settings",
    )


def _run_build(
    client: DockerClient,
    build: Build,
    name: str,
    labels: Mapping[str, str],
    context: Context,
) -> None:
    output: list[str] = []
    stream = client.api.build(
        fileobj=cast("IO[bytes]", context(build.context, build.dockerfile)),
        custom_context=True,
        dockerfile=DOCKERFILE_NAME,
        tag=name,
        buildargs=dict(build.args),
        target=build.target,
        labels=dict(labels),
        rm=True,
        forcerm=True,
        decode=True,
        timeout=BUILD_SECONDS,
        use_config_proxy=False,  # the proxy's URL may hold a password of this host
    )
    for line in stream:
        if "error" in line:
            output_end = "".join(output)[-_MAX_OUTPUT_CHARACTERS:]
            raise BuildError(f"{line['error']}\n{output_end}".strip(), build_log=iter(()))
        output = [*output[-200:], str(line.get("stream", ""))]


def _creation_time(image: Image) -> datetime:
    try:
        created = datetime.fromisoformat(str(image.attrs.get("Created")))
    except ValueError:
        return datetime.now(UTC)
    return created if created.tzinfo else created.replace(tzinfo=UTC)
