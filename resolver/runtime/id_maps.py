"""Finds the ids that own a folder in memory which the engine mounts into a container.

The engine mounts it as its own user. A container in a user namespace of its own (`userns-remap`)
has other ids than the engine for the same users; one of a rootless engine shares the engine's
namespace. https://man7.org/linux/man-pages/man7/user_namespaces.7.html
"""

from docker import DockerClient

from resolver.runtime.engine import engine_errors


def has_remapped_users(client: DockerClient) -> bool:
    """Return True if the engine gives containers a user namespace of their own."""
    with engine_errors("the engine can't be asked for its options", "check it with `docker info`"):
        options = client.info().get("SecurityOptions") or []
    return "name=userns" in options


def id_outside(id_map: str, id: int) -> int:
    """Return the id that a user or group of a user namespace has outside of it.

    id_map: content of /proc/PID/uid_map or gid_map. An id that is not in it is returned unchanged.
    """
    for line in id_map.splitlines():
        inside, outside, count = (int(part) for part in line.split())
        if inside <= id < inside + count:
            return outside + id - inside
    return id
