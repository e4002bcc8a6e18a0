"""The sandbox's image: a name, the devcontainer's, or one built from a Dockerfile.

Also keeps images that hold the result of a set-up. The engine builds from a tar of the commit; no
file of this host is part of it.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import IO, TYPE_CHECKING, Final, cast

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

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

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
_LAST_WORDS: Final = 2_000

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
        found = read_devcontainer(read)
        if found is None:
            raise UsageError(
                f"the setting image is {DEVCONTAINER!r} and there is none of {', '.join(FILES)}",
                "add the file to the default branch, or name an image",
            )
        return _of_devcontainer(found)
    if setting.startswith(DOCKERFILE):
        path = setting.removeprefix(DOCKERFILE).strip()
        if read(path) is None:
            raise UsageError(
                f"the setting image names {path!r}, which is not in the repository",
                "correct the path: it starts at the repository's root",
            )
        return Build(path)
    return setting


def build_image(
    client: "DockerClient", build: Build, repository: str, source: "BuildSource"
) -> str:
    """Return the id of the image made by the build; build it if the engine lacks it.

    repository: digest of the repository that the image belongs to.
    Raises UsageError if the Dockerfile names an image that a repository may not name, and
    SandboxError with the end of the build's output.
    """
    dockerfile = build.dockerfile
    key = derive_key("built", repository, repr(build), source.tree())
    name = f"{BUILT_PREFIX}:{key}"
    if (found := find_kept_image(client, name, BUILT_LABEL, key)) is not None:
        return found
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


def find_kept_image(client: "DockerClient", name: str, label: str, key: str) -> str | None:
    """Return the id of the image of that name that was made under `key`, or None.

    The name alone proves nothing, because anybody with access to the engine can tag an image. The
    label must hold the key too.
    """
    import docker

    with engine_errors("the engine can't list its images", "check it with `docker images`"):
        try:
            found = client.images.get(name)
        except docker.errors.ImageNotFound:
            return None
    return str(found.id) if found.labels.get(label) == key else None


def derive_key(*parts: str) -> str:
    """Return a digest of the parts. Different parts give different digests."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def remove_older_environments(
    client: "DockerClient", repository: str, kept: int = MAX_PREPARED_IMAGES - 1
) -> None:
    """Remove the prepared images of a repository except the newest ones and those in use.

    repository: digest of the repository that they belong to.
    kept: number of images that stay.
    """
    with engine_errors("the engine can't list its images", "check it with `docker images`"):
        own = _list_images(client, PREPARED_PREFIX, f"{REPOSITORY_LABEL}={repository}")
        for image in sorted(own, key=_creation_time, reverse=True)[kept:]:
            _remove_names(client, image, PREPARED_PREFIX)


def image_id(client: "DockerClient", image: str) -> str:
    """Return the engine's id of an image that it has."""
    with engine_errors(f"the image {image} is not on the engine", "pull it first"):
        return str(client.images.get(image).id)


def remove_old_images(client: "DockerClient", now: datetime, kept: timedelta = KEPT) -> list[str]:
    """Remove unused built and prepared images of at least the age `kept`; return their names."""
    with engine_errors("the engine can't list its images", "check it with `docker images`"):
        return [
            tag
            for name in (BUILT_PREFIX, PREPARED_PREFIX)
            for image in _list_images(client, name)
            if now - _creation_time(image) >= kept
            for tag in _remove_names(client, image, name)
        ]


def _list_images(client: "DockerClient", name: str, *labels: str) -> Iterator["Image"]:
    """Yield the images of that name. Other runs may remove some of them in the meantime."""
    import docker

    for each in client.api.images(name=name, filters={"label": list(labels)}):
        try:
            yield client.images.get(each["Id"])
        except docker.errors.ImageNotFound:
            continue


def _remove_names(client: "DockerClient", image: "Image", name: str) -> list[str]:
    """Remove the names of an image that begin with `name`, and return those that were removed.

    The engine removes an image with its last name. An image in use keeps its names.
    """
    import docker

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


def _of_devcontainer(found: DevContainer) -> str | Build:
    if found.image:
        return parse_registry_reference(found.image, f"{found.path}, image,")
    if found.dockerfile:
        args = tuple(a for a in sorted(found.args.items()) if a[0].upper() not in _PROXIES)
        return Build(found.dockerfile, found.context, args, found.target)
    raise UsageError(
        f"{found.path} names neither an image nor a Dockerfile",
        "add `image` or `build.dockerfile`, or name an image in the settings",
    )


def _run_build(
    client: "DockerClient",
    build: Build,
    name: str,
    labels: Mapping[str, str],
    context: Context,
) -> None:
    from docker.errors import BuildError

    words: list[str] = []
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
            last = "".join(words)[-_LAST_WORDS:]
            raise BuildError(f"{line['error']}\n{last}".strip(), build_log=iter(()))
        words = [*words[-200:], str(line.get("stream", ""))]


def _creation_time(image: "Image") -> datetime:
    try:
        made = datetime.fromisoformat(str(image.attrs.get("Created")))
    except ValueError:
        return datetime.now(UTC)
    return made if made.tzinfo else made.replace(tzinfo=UTC)
