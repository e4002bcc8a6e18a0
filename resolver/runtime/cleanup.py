"""Finds what killed runs leave on a Docker engine, by labels, and removes it."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from resolver.runtime.engine import RUN_LABEL, engine_errors
from resolver.runtime.toolbox import Toolbox
from resolver.runtime.volume import TOOLBOX_LABEL, remove_other_versions

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

STARTING: Final = timedelta(minutes=5)
"""Age below which a container may belong to a run that is about to use it."""


def idle_containers(client: "DockerClient", now: datetime) -> "list[Container]":
    """Return the containers of runs and of toolbox fillings that are no longer in use.

    A running run is recognized by its action server, which runs as an exec in the container.
    """
    with engine_errors("the engine can't list its containers", "check it with `docker ps`"):
        found = [
            container
            for label in (RUN_LABEL, TOOLBOX_LABEL)
            for container in client.containers.list(
                all=True, filters={"label": label}, ignore_removed=True
            )
        ]
    return [container for container in found if _is_idle(container, now)]


def remove_toolboxes(client: "DockerClient", toolbox: Toolbox, before: datetime) -> list[str]:
    """Remove the toolbox volumes of other versions made before that time; return their names."""
    with engine_errors("the engine can't list its volumes", "check it with `docker volume ls`"):
        there = {v.name for v in client.volumes.list(filters={"label": TOOLBOX_LABEL})}
        remove_other_versions(client, toolbox, before)
        left = {v.name for v in client.volumes.list(filters={"label": TOOLBOX_LABEL})}
    return sorted(there - left)


def _is_idle(container: "Container", now: datetime) -> bool:
    """Return True if the container is old enough and no exec runs in it."""
    made = datetime.fromisoformat(f"{container.attrs['Created'][:19]}+00:00")
    if now - made < STARTING:
        return False
    return not container.attrs.get("ExecIDs")
