"""What killed runs leave on an engine, found by its labels and removed."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from resolver.runtime.engine import RUN_LABEL, engine_errors
from resolver.runtime.toolbox import Toolbox
from resolver.runtime.volume import TOOLBOX_LABEL, remove_other_versions

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

STARTING: Final = timedelta(minutes=5)
"""A container this young may belong to a run that is about to use it."""


def idle_containers(client: "DockerClient", now: datetime) -> "list[Container]":
    """The containers of runs and of toolbox fillings that nobody uses any more. A run at work has
    its action server running in its container."""
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
    """Remove the volumes of other versions' toolboxes made before that time; their names."""
    with engine_errors("the engine can't list its volumes", "check it with `docker volume ls`"):
        there = {v.name for v in client.volumes.list(filters={"label": TOOLBOX_LABEL})}
        remove_other_versions(client, toolbox, before)
        left = {v.name for v in client.volumes.list(filters={"label": TOOLBOX_LABEL})}
    return sorted(there - left)


def _is_idle(container: "Container", now: datetime) -> bool:
    """Old enough, and no exec runs in it."""
    made = datetime.fromisoformat(f"{container.attrs['Created'][:19]}+00:00")
    if now - made < STARTING:
        return False
    return not container.attrs.get("ExecIDs")
