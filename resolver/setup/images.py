"""The sandbox's image: a name, the devcontainer's, or one built from a Dockerfile; and images that
keep what a setup has prepared.

A build is the engine's work, from a tar of the commit; nothing of this host goes in.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import IO, TYPE_CHECKING, Any, Final, cast

from resolver.errors import UsageError
from resolver.runtime.engine import engine_errors
from resolver.setup.devcontainer import FILES, DevContainer, Read, read_devcontainer
from resolver.workspace.context import DOCKERFILE_NAME

if TYPE_CHECKING:
    from docker import DockerClient

DEVCONTAINER: Final = "devcontainer"
DOCKERFILE: Final = "dockerfile:"
"""What the setting `image` may be in the place of an image's name: `devcontainer`, or
`dockerfile:PATH`."""

BUILT: Final = "resolver-built"
PREPARED: Final = "resolver-prepared"
PREPARED_LABEL: Final = "resolver.prepared"
KEPT: Final = timedelta(days=14)
"""How long a built or prepared image is kept without being made again."""

BUILD_SECONDS: Final = 3600
_LAST_WORDS: Final = 2_000

Context = Callable[[str, str], Iterator[bytes]]
"""A tar stream of a folder of the commit, and the Dockerfile in it as DOCKERFILE_NAME; given both
paths from the repository's root."""


@dataclass(frozen=True)
class Build:
    """A Dockerfile with all that goes into it; paths from the repository's root."""

    dockerfile: str
    context: str = "."
    args: tuple[tuple[str, str], ...] = ()
    target: str | None = None


def wanted_image(setting: str, read: Read) -> str | Build:
    """What the setting `image` means for this repository. Raises UsageError."""
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


def build_image(client: "DockerClient", build: Build, tree: str, context: Context) -> str:
    """Name of the image that the build gives, made where the engine lacks it.

    tree: object id of what the context holds, so that the same content is built once.
    Raises SandboxError with the end of the build's output.
    """
    import docker

    digest = hashlib.sha256(f"{build!r}\0{tree}".encode()).hexdigest()[:20]
    name = f"{BUILT}:{digest}"
    dockerfile = build.dockerfile
    with engine_errors(f"{dockerfile} could not be built", "build it by hand to see why"):
        try:
            client.images.get(name)
            return name
        except docker.errors.ImageNotFound:
            pass
        _run_build(client, build, name, context)
    return name


def prepared_image(client: "DockerClient", key: str) -> str | None:
    """Name of the image that a setup with this key was saved in, None when there is none."""
    import docker

    name = f"{PREPARED}:{key}"
    with engine_errors("the engine can't list its images", "check it with `docker images`"):
        try:
            client.images.get(name)
        except docker.errors.ImageNotFound:
            return None
    return name


def image_id(client: "DockerClient", image: str) -> str:
    """The engine's id of an image that it has."""
    with engine_errors(f"the image {image} is not on the engine", "pull it first"):
        return str(client.images.get(image).id)


def remove_old_images(client: "DockerClient", now: datetime, kept: timedelta = KEPT) -> list[str]:
    """Remove built and prepared images that are older than `kept`, and not in use; their names."""
    import docker

    removed: list[str] = []
    with engine_errors("the engine can't list its images", "check it with `docker images`"):
        images = [i for n in (BUILT, PREPARED) for i in client.images.list(name=n)]
        for image in images:
            if now - _made_at(image.attrs.get("Created")) < kept:
                continue
            for tag in image.tags:
                try:
                    client.images.remove(tag)
                except docker.errors.APIError as error:
                    if error.status_code not in {404, 409}:  # gone already, or in use
                        raise
                    continue
                removed.append(tag)
    return removed


def _of_devcontainer(found: DevContainer) -> str | Build:
    if found.image:
        return found.image
    if found.dockerfile:
        args = tuple(sorted(found.args.items()))
        return Build(found.dockerfile, found.context, args, found.target)
    raise UsageError(
        f"{found.path} names neither an image nor a Dockerfile",
        "add `image` or `build.dockerfile`, or name an image in the settings",
    )


def _run_build(client: "DockerClient", build: Build, name: str, context: Context) -> None:
    from docker.errors import BuildError

    words: list[str] = []
    stream = client.api.build(
        fileobj=cast("IO[bytes]", context(build.context, build.dockerfile)),
        custom_context=True,
        dockerfile=DOCKERFILE_NAME,
        tag=name,
        buildargs=dict(build.args),
        target=build.target,
        rm=True,
        forcerm=True,
        decode=True,
        timeout=BUILD_SECONDS,
        use_config_proxy=False,  # a proxy's address may hold a password of this host
    )
    for line in stream:
        if "error" in line:
            last = "".join(words)[-_LAST_WORDS:]
            raise BuildError(f"{line['error']}\n{last}".strip(), build_log=iter(()))
        words = [*words[-200:], str(line.get("stream", ""))]


def _made_at(created: Any) -> datetime:
    try:
        made = datetime.fromisoformat(str(created)[:19])
    except ValueError:
        return datetime.now(UTC)
    return made.replace(tzinfo=UTC)
