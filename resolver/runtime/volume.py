"""The Docker volume that holds the toolbox: filled once per version, read-only in every sandbox.

A volume is complete if it has the archive's last entry, which is also the first program of the
sandbox (toolbox.ENTRY). Only one process fills it at a time.

Two locks ensure that. The name of a container excludes the processes of other machines too, but it
outlives a process that is killed. The lock of the archive is known on this machine only, but the
kernel releases it when its process dies: the container of an earlier owner is then left over.
"""

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import docker
from docker import DockerClient
from docker.models.containers import Container
from docker.types import Mount

from resolver.errors import SandboxError
from resolver.runtime.engine import engine_errors, remove_container
from resolver.runtime.toolbox import ENTRY, KEPT_TIME, PREFIX, Toolbox, hold_lock

TOOLBOX_LABEL: Final = "resolver.toolbox"
LOCK_LABEL: Final = "resolver.toolbox.lock"
"""Label of the container that fills the volume: the lock that its process holds, or empty."""

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

    A helper container gives access to the volume and is never started. The engine accepts its name
    only once, so the name is the lock among all machines that use the engine.
    lock_seconds: seconds after which the helper of another machine, or of a process that is
        suspended, is considered to be left by a crash and removed. The helper of a process of this
        machine that was killed is removed at once.
    """
    with engine_errors(
        "the sandbox's toolbox could not be put on the engine",
        "check that the engine has free disk space with `docker system df`",
    ):
        deadline = time.monotonic() + lock_seconds
        with hold_lock(toolbox.archive(), deadline, _POLL_SECONDS) as descriptor:
            _fill(client, toolbox, image, _lock_id(descriptor), deadline, lock_seconds)


def _fill(
    client: DockerClient,
    toolbox: Toolbox,
    image: str,
    lock: str,
    deadline: float,
    lock_seconds: float,
) -> None:
    while (helper := _helper(client, toolbox, image, lock)) is None:
        if time.monotonic() > deadline:
            _remove_stale(client, toolbox)
            deadline = time.monotonic() + lock_seconds
        elif not _remove_stale(client, toolbox, lock):
            time.sleep(_POLL_SECONDS)
    try:
        if not _is_filled(helper):
            _put(helper, toolbox)
            remove_other_versions(client, toolbox, datetime.now(UTC) - KEPT_TIME)
    finally:
        remove_container(helper)


def _lock_id(descriptor: int | None) -> str:
    """Return a name of the lock that no other lock of any machine has, "" for no lock."""
    if descriptor is None:
        return ""
    # The number of a file is unique on one device, that of a device until the machine starts again.
    status = os.fstat(descriptor)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}-{status.st_dev}-{status.st_ino}"


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


def _lock_name(toolbox: Toolbox) -> str:
    return f"{volume_name(toolbox)}-fill"


def _helper(client: DockerClient, toolbox: Toolbox, image: str, lock: str) -> Container | None:
    """Return the container that gives access to the volume; None while another process fills it."""
    try:
        return client.containers.create(
            image,
            [ENTRY],
            name=_lock_name(toolbox),
            network_mode="none",
            labels={TOOLBOX_LABEL: toolbox.key, LOCK_LABEL: lock},
            mounts=[toolbox_mount(toolbox, read_only=False)],
        )
    except docker.errors.APIError as error:
        # Status 409: the name is in use, so another process holds the lock.
        if error.status_code == 409:
            return None
        raise


def _remove_stale(client: DockerClient, toolbox: Toolbox, lock: str | None = None) -> bool:
    """Remove the helper of another process. Return False if there is nothing to remove.

    lock: if given, only a helper that was made under this lock is removed. The caller has the lock,
        so that process has ended.
    """
    if lock == "":
        return False
    filters: dict[str, Any] = {"name": f"^/{_lock_name(toolbox)}$"}
    if lock is not None:
        filters["label"] = f"{LOCK_LABEL}={lock}"
    # Listed without details: the engine answers a question for those only after it has unpacked
    # what a process puts into the container.
    helpers = client.containers.list(all=True, filters=filters, sparse=True)
    for helper in helpers:
        remove_container(helper)
    return len(helpers) > 0


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
