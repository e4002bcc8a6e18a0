"""The limits that the operator of the sandbox server sets for clients."""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from resolver.errors import Refused, UsageError
from resolver.runtime.remote.protocol import PROTOCOL, RemoteLimits, SandboxRequest

_MEMORY: Final = re.compile(r"([0-9]{1,15})([bkmg]?)", re.IGNORECASE)
_UNITS: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_MAX_ENVIRONMENT: Final = 16_000


@dataclass(frozen=True)
class ServiceBounds:
    """The limits of one server.

    runtime: "docker" or "local".
    images: patterns such as `ghcr.io/us/*`, one of which the image must match.
    memory: largest memory of a sandbox, in Docker's notation.
    cpus, pids: largest number of processors, and of processes and threads.
    disk: largest size of the disk, in bytes.
    sandboxes: number of sandboxes at a time.
    idle_seconds: time without a request of its client after which a sandbox is removed.
    """

    runtime: str
    images: tuple[str, ...] = ("*",)
    memory: str = "4g"
    cpus: float = 2.0
    pids: int = 1024
    disk: int = 10 * 10**9
    sandboxes: int = 4
    idle_seconds: float = 120.0

    def check(self, asked: SandboxRequest) -> None:
        """Raise Refused if a sandbox with these properties is not provided."""
        if self.runtime == "docker" and not any(fnmatchcase(asked.image, i) for i in self.images):
            raise Refused(
                f"the server of the sandbox gives no sandbox of image {asked.image}",
                f"use one of {', '.join(self.images)}, or ask its operator",
            )
        if memory_bytes(asked.memory) > memory_bytes(self.memory):
            raise _too_much("memory", asked.memory, self.memory)
        if asked.cpus > self.cpus:
            raise _too_much("cpus", f"{asked.cpus:g}", f"{self.cpus:g}")
        if asked.pids > self.pids:
            raise _too_much("pids", str(asked.pids), str(self.pids))
        if asked.disk > self.disk:
            raise _too_much("disk", *(f"{size / 10**9:g} GB" for size in (asked.disk, self.disk)))
        # A variable such as LD_PRELOAD would take effect before the local sandbox is isolated:
        # ld.so(8).
        if asked.environment and self.runtime == "local":
            raise Refused(
                "the server of the sandbox takes no variables for it", "leave the environment out"
            )
        if sum(len(n) + len(v) for n, v in asked.environment.items()) > _MAX_ENVIRONMENT:
            raise Refused("the sandbox's environment is too large", "leave variables out")

    def limits(self, running: int) -> RemoteLimits:
        """Return the limits in the form for clients. running: number of sandboxes in use."""
        return RemoteLimits(
            protocol=PROTOCOL,
            runtime=self.runtime,
            images=list(self.images),
            memory=self.memory,
            cpus=self.cpus,
            pids=self.pids,
            disk=self.disk,
            sandboxes=self.sandboxes,
            running=running,
            idle_seconds=self.idle_seconds,
        )


def memory_bytes(text: str) -> int:
    """Return the bytes for an amount in Docker's notation (`512m`). Raises UsageError."""
    found = _MEMORY.fullmatch(text)
    if found is None or int(found[1]) == 0:
        raise UsageError(f"{text!r} is no amount of memory", "write it like 512m or 4g")
    return int(found[1]) * _UNITS[found[2].lower()]


def _too_much(what: str, asked: str, given: str) -> Refused:
    part = "disk_gigabytes" if what == "disk" else what
    return Refused(
        f"the server of the sandbox gives {given} of {what} at most, {asked} was asked for",
        f"set `{part}` in RESOLVER_SANDBOX_LIMITS to {given} or less, or ask its operator",
    )
