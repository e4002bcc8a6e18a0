"""The sandboxes of the server: started, found, and removed when their client is gone.

Everything that `Sandboxes` does runs in the event loop; blocking work is done in threads. The
operator sets the limits for clients. Machines that an earlier server left are removed.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, TypeVar

from resolver.errors import Refused, SandboxError, UsageError
from resolver.runtime.base import Machine, SandboxSpec
from resolver.runtime.docker import DockerMachine
from resolver.runtime.engine import RUN_LABEL, connect_engine, engine_errors, remove_container
from resolver.runtime.local import LocalMachine
from resolver.runtime.remote.protocol import (
    PROTOCOL,
    RemoteFailure,
    RemoteLimits,
    SandboxRequest,
    StreamRequest,
)
from resolver.runtime.service.stream import Stream, get, put, wire
from resolver.runtime.toolbox import Toolbox

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
    return Refused(
        f"the server of the sandbox gives {given} of {what} at most, {asked} was asked for",
        f"set RESOLVER_{what.upper()} to {given} or less, or ask its operator",
    )


logger = logging.getLogger("resolver.sandboxes")

T = TypeVar("T")

OpenMachine = Callable[[SandboxSpec], AbstractContextManager[Machine]]
"""Return a context manager that starts a machine and removes it, each called in a thread."""

MAX_STREAMS: Final = 16
"""Limit of the open streams of one sandbox."""


REMEMBERED: Final = 1000
"""Number of removed sandboxes for which the reason is remembered."""

_NEVER_SEEN: Final = RemoteFailure(
    what="the server has no such sandbox: it was started anew, or removed it long ago",
    next_step="start the run again",
)


class UnknownError(Exception):
    """Raised if there is no sandbox or stream with that id. why: the reason."""

    def __init__(self, why: RemoteFailure) -> None:
        super().__init__(why.what)
        self.why = why


class ConflictError(Exception):
    """Raised if the id is in use for a different request."""


class FullError(Exception):
    """Raised if the limit of sandboxes or streams is reached."""


class ServedSandbox:
    """One sandbox of one client."""

    def __init__(self, name: str, asked: SandboxRequest) -> None:
        self.name = name
        self.asked = asked
        self.streams: dict[str, tuple[StreamRequest, asyncio.Task[Stream]]] = {}
        self.seen = asyncio.get_running_loop().time()
        self.starting: asyncio.Task[Machine]
        self.machine: AbstractContextManager[Machine] | None = None

    def touch(self) -> None:
        """Record that the client is active."""
        self.seen = asyncio.get_running_loop().time()

    def close_streams(self, why: RemoteFailure) -> None:
        """End all streams."""
        for _, opening in self.streams.values():
            if opening.done() and not opening.cancelled() and opening.exception() is None:
                opening.result().close(why)


class Sandboxes:
    """All sandboxes of one server. prefix: start of the run id in the labels of their machines."""

    def __init__(self, bounds: ServiceBounds, open_machine: OpenMachine, prefix: str) -> None:
        self._bounds = bounds
        self._open_machine = open_machine
        self._prefix = prefix
        self._running: dict[str, ServedSandbox] = {}
        self._removing: dict[str, asyncio.Task[None]] = {}
        self._gone: dict[str, RemoteFailure] = {}
        self._closed = False
        self._threads = ThreadPoolExecutor(2 * bounds.sandboxes + 2, "sandboxes")

    @property
    def count(self) -> int:
        """Number of sandboxes, including those that are being started or removed."""
        return len(self._running) + len(self._removing)

    def start(self, name: str, asked: SandboxRequest) -> ServedSandbox:
        """Return the sandbox of that id, and begin to start it if there is none.

        Its attribute `starting` is a task that returns the machine. Raises Refused, ConflictError
        and FullError.
        """
        found = self._running.get(name)
        if found is not None:
            if found.asked != asked:
                raise ConflictError("another sandbox of that id is there")
            return found
        self._bounds.check(asked)
        if self._closed or name in self._gone:
            raise ConflictError("it is stopped, or the sandbox of that id is gone")
        if self.count >= self._bounds.sandboxes:
            raise FullError(f"all of its {self._bounds.sandboxes} sandboxes are in use")
        sandbox = self._running[name] = ServedSandbox(name, asked)
        sandbox.starting = asyncio.create_task(self._start(sandbox))
        sandbox.starting.add_done_callback(lambda done: self._started(sandbox, done))
        return sandbox

    def find(self, name: str) -> ServedSandbox:
        """Return a sandbox that runs or is being started. Raises UnknownError."""
        found = self._running.get(name)
        if found is None:
            raise UnknownError(self._gone.get(name, _NEVER_SEEN))
        found.touch()
        return found

    def open_stream(
        self, sandbox: ServedSandbox, name: str, asked: StreamRequest
    ) -> asyncio.Task[Stream]:
        """Return the task that opens a stream, and begin it if there is none with that id.

        Raises ConflictError and FullError.
        """
        if name in sandbox.streams:
            before, opening = sandbox.streams[name]
            if before != asked:
                raise ConflictError("another stream of that id is there")
            return opening
        if len(sandbox.streams) >= MAX_STREAMS:
            raise FullError(f"{MAX_STREAMS} streams of this sandbox are open")
        opening = asyncio.create_task(self._open(sandbox, asked))
        opening.add_done_callback(_retrieve)
        sandbox.streams[name] = asked, opening
        return opening

    def remove(self, name: str, why: RemoteFailure) -> "asyncio.Task[None] | None":
        """Begin to remove a sandbox and return the task, or None if the sandbox is gone already."""
        sandbox = self._running.pop(name, None)
        if sandbox is not None:
            self._gone[name] = why
            while len(self._gone) > REMEMBERED:
                del self._gone[next(iter(self._gone))]
            removing = self._removing[name] = asyncio.create_task(self._remove(sandbox, why))
            removing.add_done_callback(lambda _: self._removing.pop(name, None))
            removing.add_done_callback(_retrieve)
        return self._removing.get(name)

    async def close(self) -> None:
        """Remove all sandboxes and refuse to start new ones."""
        self._closed = True
        why = RemoteFailure(
            what="the server of the sandbox was stopped",
            next_step="start the run again when it is up",
        )
        for name in list(self._running):
            self.remove(name, why)
        await asyncio.gather(*self._removing.values(), return_exceptions=True)

    async def _start(self, sandbox: ServedSandbox) -> Machine:
        asked = sandbox.asked
        spec = SandboxSpec(**{**asked.model_dump(), "run": f"{self._prefix}{sandbox.name}"})
        sandbox.machine = self._open_machine(spec)
        logger.info("sandbox %s starts, for run %s", sandbox.name, asked.run)
        machine = await self._in_thread(sandbox.machine.__enter__)
        sandbox.touch()
        return machine

    def _started(self, sandbox: ServedSandbox, done: "asyncio.Task[Machine]") -> None:
        error = _retrieve(done)
        if error is not None:
            logger.warning("sandbox %s could not be started: %s", sandbox.name, error)
            if self._running.get(sandbox.name) is sandbox:
                del self._running[sandbox.name]
        else:
            self._watch(sandbox)

    def _watch(self, sandbox: ServedSandbox) -> None:
        """Remove the sandbox if its client was inactive for too long, else check again later."""
        if self._running.get(sandbox.name) is not sandbox:
            return
        loop = asyncio.get_running_loop()
        left = sandbox.seen + self._bounds.idle_seconds - loop.time()
        if left > 0:
            loop.call_later(left, self._watch, sandbox)
            return
        logger.warning(
            "sandbox %s is removed: nobody asked for it for %g seconds",
            sandbox.name,
            self._bounds.idle_seconds,
        )
        what = f"the sandbox was removed after {self._bounds.idle_seconds:g} seconds without a word"
        self.remove(sandbox.name, RemoteFailure(what=what, next_step="start the run again"))

    async def _open(self, sandbox: ServedSandbox, asked: StreamRequest) -> Stream:
        machine = await asyncio.shield(sandbox.starting)
        loop = asyncio.get_running_loop()
        if asked.kind == "put":
            stream = Stream(loop, put(machine, asked.path), stop=lambda: None)
        elif asked.kind == "get":
            stream = Stream(loop, get(machine, asked.path), stop=lambda: None)
        else:
            channel = await self._in_thread(machine.connect)
            stream = Stream(loop, wire(channel), stop=channel.close)
        if self._running.get(sandbox.name) is not sandbox:
            stream.close(RemoteFailure(what="the sandbox was removed"))
        return stream

    async def _remove(self, sandbox: ServedSandbox, why: RemoteFailure) -> None:
        sandbox.close_streams(why)
        try:
            await sandbox.starting
        except SandboxError:
            return
        machine = sandbox.machine
        assert machine is not None, "it was started"
        try:
            await self._in_thread(lambda: machine.__exit__(None, None, None))
        except SandboxError as error:
            logger.error("sandbox %s could not be removed: %s", sandbox.name, error.what)
            raise
        logger.info("sandbox %s is removed", sandbox.name)

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)


def _retrieve(done: "asyncio.Task[T]") -> BaseException | None:
    """Return the task's error. asyncio would log it as never retrieved otherwise."""
    return None if done.cancelled() else done.exception()


_SERVED: Final = "served"


def run_prefix(server: str) -> str:
    """Return the start of the run id in the labels of containers of the server with that name."""
    return f"{_SERVED}.{server}."


def docker_machines(environment: Mapping[str, str], toolbox: Toolbox) -> OpenMachine:
    """Return a function that opens containers, each with its own connection to the engine."""

    @contextmanager
    def open_machine(spec: SandboxSpec) -> Iterator[Machine]:
        engine = connect_engine(environment)
        try:
            with DockerMachine(spec, toolbox, engine) as machine:
                yield machine
        finally:
            engine.close()

    return open_machine


def local_machines(environment: Mapping[str, str]) -> OpenMachine:
    """Return a function that opens folders and process trees of the server's machine."""

    def open_machine(spec: SandboxSpec) -> AbstractContextManager[Machine]:
        return LocalMachine(spec, environment)

    return open_machine


def remove_abandoned(environment: Mapping[str, str], prefix: str) -> int:
    """Remove the containers that a killed server of this name has left; return their number."""
    engine = connect_engine(environment)
    try:
        with engine_errors("the engine can't list its containers", "check it with `docker ps`"):
            found = engine.containers.list(
                all=True, ignore_removed=True, filters={"label": RUN_LABEL}
            )
        ours = [c for c in found if c.labels.get(RUN_LABEL, "").startswith(prefix)]
        for container in ours:
            remove_container(container)
    finally:
        engine.close()
    return len(ours)
