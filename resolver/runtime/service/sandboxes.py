"""The sandboxes of the server: started, found, and removed when their client is gone.

Everything that `Sandboxes` does runs in the event loop; blocking work is done in threads. The
operator sets the limits for clients. Machines that an earlier server left are removed.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, TypeVar

from resolver.errors import Refused, SandboxError, UsageError
from resolver.runtime.base import Machine, SandboxSpec
from resolver.runtime.docker import DockerMachine
from resolver.runtime.engine import RUN_LABEL, connect_engine, labeled_containers, remove_container
from resolver.runtime.local import LocalMachine
from resolver.runtime.remote.protocol import (
    PROTOCOL,
    RemoteFailure,
    RemoteLimits,
    SandboxRequest,
    StreamRequest,
)
from resolver.runtime.service.stream import Stream, get, receive_archive, wire
from resolver.runtime.toolbox import Toolbox

_MEMORY_PATTERN: Final = re.compile(r"([0-9]{1,15})([bkmg]?)", re.IGNORECASE)
_UNITS: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_MAX_ENVIRONMENT_CHARACTERS: Final = 16_000


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

    def check(self, request: SandboxRequest) -> None:
        """Raise Refused if a sandbox with these properties is not provided."""
        if self.runtime == "docker" and not any(fnmatchcase(request.image, i) for i in self.images):
            raise Refused(
                f"the sandbox server offers no sandbox with the image {request.image}",
                f"use one of {', '.join(self.images)}, or ask its operator",
            )
        if memory_bytes(request.memory) > memory_bytes(self.memory):
            raise _above_limit("memory", request.memory, self.memory)
        if request.cpus > self.cpus:
            raise _above_limit("cpus", f"{request.cpus:g}", f"{self.cpus:g}")
        if request.pids > self.pids:
            raise _above_limit("pids", str(request.pids), str(self.pids))
        if request.disk > self.disk:
            raise _above_limit(
                "disk", *(f"{size / 10**9:g} GB" for size in (request.disk, self.disk))
            )
        # A variable such as LD_PRELOAD would take effect before the local sandbox is isolated:
        # ld.so(8).
        if request.environment and self.runtime == "local":
            raise Refused(
                "the sandbox server accepts no environment variables", "leave the environment out"
            )
        if (
            sum(len(n) + len(v) for n, v in request.environment.items())
            > _MAX_ENVIRONMENT_CHARACTERS
        ):
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
    match = _MEMORY_PATTERN.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise UsageError(f"{text!r} is not an amount of memory", "write it like 512m or 4g")
    return int(match[1]) * _UNITS[match[2].lower()]


def _above_limit(resource: str, requested: str, limit: str) -> Refused:
    part = "disk_gigabytes" if resource == "disk" else resource
    return Refused(
        f"the sandbox server's limit for {resource} is {limit}, but {requested} was requested",
        f"set `{part}` in RESOLVER_SANDBOX_LIMITS to {limit} or less, or ask its operator",
    )


logger = logging.getLogger("resolver.sandboxes")

T = TypeVar("T")

OpenMachine = Callable[[SandboxSpec], AbstractContextManager[Machine]]
"""Return a context manager that starts a machine and removes it, each called in a thread."""

MAX_STREAMS: Final = 16
"""Limit of the open streams of one sandbox."""


MAX_REMEMBERED: Final = 1000
"""Number of removed sandboxes for which the reason is remembered."""

INFORM_SECONDS: Final = 2.0
"""Time in seconds that a server which stops gives its clients to learn why their streams ended."""

_UNKNOWN_SANDBOX: Final = RemoteFailure(
    what="the server has no such sandbox: it was restarted, or removed it long ago",
    next_step="start the run again",
)


class UnknownError(Exception):
    """Raised if there is no sandbox or stream with that id. reason: the reason."""

    def __init__(self, reason: RemoteFailure) -> None:
        super().__init__(reason.what)
        self.reason = reason


class ConflictError(Exception):
    """Raised if the id is in use for a different request."""


class FullError(Exception):
    """Raised if the limit of sandboxes or streams is reached."""


class ServedSandbox:
    """One sandbox of one client."""

    def __init__(self, name: str, request: SandboxRequest) -> None:
        self.name = name
        self.request = request
        self.streams: dict[str, tuple[StreamRequest, asyncio.Task[Stream]]] = {}
        self.last_active = asyncio.get_running_loop().time()
        self.starting: asyncio.Task[Machine]
        self.machine: AbstractContextManager[Machine] | None = None

    def touch(self) -> None:
        """Record that the client is active."""
        self.last_active = asyncio.get_running_loop().time()

    def close_streams(self, reason: RemoteFailure) -> None:
        """End all streams."""
        for _, opening in self.streams.values():
            if opening.done() and not opening.cancelled() and opening.exception() is None:
                opening.result().close(reason)


class Sandboxes:
    """All sandboxes of one server. prefix: start of the run id in the labels of their machines."""

    def __init__(self, bounds: ServiceBounds, open_machine: OpenMachine, prefix: str) -> None:
        self._bounds = bounds
        self._open_machine = open_machine
        self._prefix = prefix
        self._running: dict[str, ServedSandbox] = {}
        self._removing: dict[str, asyncio.Task[None]] = {}
        self._removal_reasons: dict[str, RemoteFailure] = {}
        self._uninformed: set[str] = set()
        self._all_informed = asyncio.Event()
        self._closed = False
        self._threads = ThreadPoolExecutor(2 * bounds.sandboxes + 2, "sandboxes")

    @property
    def count(self) -> int:
        """Number of sandboxes, including those that are being started or removed."""
        return len(self._running) + len(self._removing)

    def start(self, name: str, request: SandboxRequest) -> ServedSandbox:
        """Return the sandbox of that id, and begin to start it if there is none.

        Its attribute `starting` is a task that returns the machine. Raises Refused, ConflictError
        and FullError.
        """
        existing = self._running.get(name)
        if existing is not None:
            if existing.request != request:
                raise ConflictError("another sandbox with that id exists")
            return existing
        self._bounds.check(request)
        if self._closed or name in self._removal_reasons:
            raise ConflictError("it is stopped, or the sandbox of that id is gone")
        if self.count >= self._bounds.sandboxes:
            raise FullError(f"all of its {self._bounds.sandboxes} sandboxes are in use")
        sandbox = self._running[name] = ServedSandbox(name, request)
        sandbox.starting = asyncio.create_task(self._start(sandbox))
        sandbox.starting.add_done_callback(lambda done: self._on_started(sandbox, done))
        return sandbox

    def find(self, name: str) -> ServedSandbox:
        """Return a sandbox that runs or is being started. Raises UnknownError."""
        sandbox = self._running.get(name)
        if sandbox is None:
            self._uninformed.discard(name)
            if not self._uninformed:
                self._all_informed.set()
            raise UnknownError(self._removal_reasons.get(name, _UNKNOWN_SANDBOX))
        sandbox.touch()
        return sandbox

    def open_stream(
        self, sandbox: ServedSandbox, name: str, request: StreamRequest
    ) -> asyncio.Task[Stream]:
        """Return the task that opens a stream, and begin it if there is none with that id.

        Raises ConflictError and FullError.
        """
        if name in sandbox.streams:
            earlier_request, opening = sandbox.streams[name]
            if earlier_request != request:
                raise ConflictError("another stream with that id exists")
            return opening
        if len(sandbox.streams) >= MAX_STREAMS:
            raise FullError(f"{MAX_STREAMS} streams of this sandbox are open")
        opening = asyncio.create_task(self._open(sandbox, request))
        opening.add_done_callback(_retrieve)
        sandbox.streams[name] = request, opening
        return opening

    def remove(self, name: str, reason: RemoteFailure) -> "asyncio.Task[None] | None":
        """Begin to remove a sandbox and return the task, or None if the sandbox is gone already."""
        sandbox = self._running.pop(name, None)
        if sandbox is not None:
            self._removal_reasons[name] = reason
            while len(self._removal_reasons) > MAX_REMEMBERED:
                del self._removal_reasons[next(iter(self._removal_reasons))]
            removing = self._removing[name] = asyncio.create_task(self._remove(sandbox, reason))
            removing.add_done_callback(lambda _: self._removing.pop(name, None))
            removing.add_done_callback(_retrieve)
        return self._removing.get(name)

    async def close(self) -> None:
        """Remove all sandboxes and refuse to start new ones.

        Then wait until the clients have asked for the rest of the streams that this ended, since
        the reply to that tells them the reason: for at most INFORM_SECONDS, as a client may have
        died.
        """
        self._closed = True
        reason = RemoteFailure(
            what="the sandbox server was stopped",
            next_step="start the run again when it is up",
        )
        self._all_informed.clear()
        self._uninformed = {name for name, each in self._running.items() if each.streams}
        for name in list(self._running):
            self.remove(name, reason)
        await asyncio.gather(*self._removing.values(), return_exceptions=True)
        if self._uninformed:
            with suppress(TimeoutError):
                async with asyncio.timeout(INFORM_SECONDS):
                    await self._all_informed.wait()

    async def _start(self, sandbox: ServedSandbox) -> Machine:
        request = sandbox.request
        spec = SandboxSpec(**{**request.model_dump(), "run": f"{self._prefix}{sandbox.name}"})
        sandbox.machine = self._open_machine(spec)
        logger.info("sandbox %s starts, for run %s", sandbox.name, request.run)
        machine = await self._in_thread(sandbox.machine.__enter__)
        sandbox.touch()
        return machine

    def _on_started(self, sandbox: ServedSandbox, task: "asyncio.Task[Machine]") -> None:
        error = _retrieve(task)
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
        seconds_left = sandbox.last_active + self._bounds.idle_seconds - loop.time()
        if seconds_left > 0:
            loop.call_later(seconds_left, self._watch, sandbox)
            return
        logger.warning(
            "sandbox %s is removed: there was no request for it for %g seconds",
            sandbox.name,
            self._bounds.idle_seconds,
        )
        message = (
            f"the sandbox was removed after {self._bounds.idle_seconds:g} seconds without a request"
        )
        self.remove(sandbox.name, RemoteFailure(what=message, next_step="start the run again"))

    async def _open(self, sandbox: ServedSandbox, request: StreamRequest) -> Stream:
        machine = await asyncio.shield(sandbox.starting)
        loop = asyncio.get_running_loop()
        if request.kind == "put":
            stream = Stream(loop, receive_archive(machine, request.path), stop=lambda: None)
        elif request.kind == "get":
            stream = Stream(loop, get(machine, request.path), stop=lambda: None)
        else:
            channel = await self._in_thread(machine.connect)
            stream = Stream(loop, wire(channel), stop=channel.close)
        if self._running.get(sandbox.name) is not sandbox:
            stream.close(RemoteFailure(what="the sandbox was removed"))
        return stream

    async def _remove(self, sandbox: ServedSandbox, reason: RemoteFailure) -> None:
        sandbox.close_streams(reason)
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


def _retrieve(task: "asyncio.Task[T]") -> BaseException | None:
    """Return the task's error. asyncio would log it as never retrieved otherwise."""
    return None if task.cancelled() else task.exception()


_RUN_PREFIX: Final = "served"


def run_prefix(server: str) -> str:
    """Return the start of the run id in the labels of containers of the server with that name."""
    return f"{_RUN_PREFIX}.{server}."


def docker_machines(environment: Mapping[str, str], toolbox: Toolbox) -> OpenMachine:
    """Return a function that opens containers, each with its own connection to the engine."""

    @contextmanager
    def open_machine(spec: SandboxSpec) -> Iterator[Machine]:
        with DockerMachine(spec, toolbox, connect_engine(environment)) as machine:
            yield machine

    return open_machine


def local_machines(environment: Mapping[str, str]) -> OpenMachine:
    """Return a function that opens folders and process trees of the server's machine."""

    def open_machine(spec: SandboxSpec) -> AbstractContextManager[Machine]:
        return LocalMachine(spec, environment)

    return open_machine


def remove_abandoned(environment: Mapping[str, str], prefix: str) -> int:
    """Remove the containers that a killed server of this name has left; return their number."""
    with closing(connect_engine(environment)) as engine:
        own_containers = [
            container
            for container in labeled_containers(engine, RUN_LABEL)
            if container.labels.get(RUN_LABEL, "").startswith(prefix)
        ]
        for container in own_containers:
            remove_container(container)
    return len(own_containers)
