"""The Docker volume that holds the toolbox: filled once per version, read-only in every sandbox.

A volume is complete if it has the archive's last entry, which is also the first program of the
sandbox (toolbox.ENTRY). Only one process of a machine fills it at a time. If two machines that
share an engine do so at the same moment, one of them fails to start its sandbox.
"""

import time
from datetime import UTC, datetime
from typing import Any, Final

import docker
from docker import DockerClient
from docker.models.containers import Container
from docker.types import Mount

from resolver.errors import SandboxError
from resolver.runtime.engine import engine_errors, remove_container
from resolver.runtime.toolbox import ENTRY, KEPT_TIME, PREFIX, Toolbox, hold_lock

TOOLBOX_LABEL: Final = "resolver.toolbox"
_POLL_SECONDS: Final = 0.5
_CHUNK_BYTES: Final = 1024 * 1024


def volume_name(toolbox: Toolbox) -> str:
    """Return the name of the volume that holds this toolbox."""
    return f"resolver-toolbox-{toolbox.key}"


def toolbox_mount(toolbox: Toolbox, read_only: bool) -> Mount:
    """Return the volume as a mount of a container. The engine creates the volume if it is missing.

    Docker copies an image's files at the mount point into a new volume. That is switched off,
    because all runs share the volume.
    """
    return Mount(
        PREFIX,
        volume_name(toolbox),
        read_only=read_only,
        no_copy=True,
        labels={TOOLBOX_LABEL: toolbox.key},
    )


def fill_volume(
    client: DockerClient, toolbox: Toolbox, image: str, lock_seconds: float = 300.0
) -> None:
    """Put the toolbox into its volume, or wait for the process that is doing so.

    A helper container gives access to the volume and is never started.
    lock_seconds: seconds to wait for another process of this machine.
    """
    with (
        engine_errors(
            "the sandbox's toolbox could not be put on the engine",
            "check that the engine has free disk space with `docker system df`",
        ),
        hold_lock(toolbox.archive(), time.monotonic() + lock_seconds, _POLL_SECONDS),
    ):
        # The engine may still unpack what a process that was killed has sent. Listed without
        # details, which it gives only after that.
        filters: dict[str, Any] = {"label": f"{TOOLBOX_LABEL}={toolbox.key}"}
        for abandoned in client.containers.list(all=True, filters=filters, sparse=True):
            remove_container(abandoned)
        helper = client.containers.create(
            image,
            [ENTRY],
            network_mode="none",
            labels={TOOLBOX_LABEL: toolbox.key},
            mounts=[toolbox_mount(toolbox, read_only=False)],
        )
        try:
            if not _is_filled(helper):
                _put(helper, toolbox)
                remove_other_versions(client, toolbox, datetime.now(UTC) - KEPT_TIME)
        finally:
            remove_container(helper)


def _is_filled(helper: Container) -> bool:
    try:
        stream, _ = helper.get_archive(ENTRY)
    except docker.errors.NotFound:
        return False
    return len(list(stream)) > 0


def _put(helper: Container, toolbox: Toolbox) -> None:
    with toolbox.archive().open("rb") as archive:
        chunks = iter(lambda: archive.read(_CHUNK_BYTES), b"")
        if not helper.put_archive(PREFIX, chunks):
            raise SandboxError(
                "the engine did not take the toolbox", "check that the engine has free disk space"
            )


def remove_other_versions(client: DockerClient, toolbox: Toolbox, before: datetime) -> None:
    """Remove the toolbox volumes of other versions made before that time, except those in use."""
    for volume in client.volumes.list(filters={"label": TOOLBOX_LABEL}):
        creation_time = datetime.fromisoformat(volume.attrs["CreatedAt"])
        if volume.name == volume_name(toolbox) or creation_time > before:
            continue
        try:
            volume.remove()
        except docker.errors.APIError as error:
            if error.status_code not in (404, 409):  # removed already, or in use
                raise
