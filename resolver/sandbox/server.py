"""The action server: reads JSON-RPC requests from stdin and writes responses to stdout.

One thread reads, so that `ping` and `interrupt` are answered while an action runs. One worker
thread runs the actions in the order of their requests. The program methods run in a thread pool of
their own. At the end of stdin, every process that was started is killed.
"""

import ctypes
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, Protocol

from .actions import Actions
from .processes import Family
from .spool import readable
from .wire import (
    ACTION_FAILED,
    CANCELED,
    INTERNAL_ERROR,
    INTERRUPTIBLE,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_FRAME,
    MAX_PROGRAMS,
    METHOD_NOT_FOUND,
    NOT_BEGUN,
    PARSE_ERROR,
    PROGRAM_METHODS,
    TUNNEL_METHODS,
    FairLock,
    WireError,
    decode,
    encode,
)

MAX_REQUESTS: Final = 64
"""Maximum number of requests that run or wait; further ones are refused."""

CHUNK_BYTES: Final = 1 << 16

_PR_SET_DUMPABLE: Final = 4  # linux/prctl.h


class SandboxTunnels(Protocol):
    """Receives the notifications of tunnels and sends its own.

    proxy.py implements it for runs that may use the network.
    """

    def start(self, send: Callable[[bytes], None], fault: Callable[[WireError], None]) -> None: ...

    def take(self, method: str, params: object) -> None: ...


def take_over_stdio() -> tuple[int, int]:
    """Move the wire to new descriptors and return them as (reader, writer).

    The new descriptors are not inherited, so neither a child process nor a `print` can write into
    the wire. Stdin becomes /dev/null, and everything printed in this process goes to standard
    error.
    """
    reader, writer = os.dup(0), os.dup(1)
    null_input = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null_input, 0)
    os.dup2(2, 1)
    os.close(null_input)
    return reader, writer


def hide_descriptors() -> None:
    """Prevent other processes of the same user from accessing this one's memory and descriptors.

    A process that is not dumpable can't be attached to with ptrace(2) without CAP_SYS_PTRACE, and
    its /proc/PID/fd and /proc/PID/mem belong to root. Without this, a program that the agent runs
    could open the wire. Source: prctl(2), PR_SET_DUMPABLE.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def frames(reader: int) -> Iterator[bytes]:
    """Yield the lines of the stream.

    Raises WireError (PARSE_ERROR) at a line longer than MAX_FRAME.
    """
    pending = bytearray()
    while data := os.read(reader, CHUNK_BYTES):
        # Search only what is new: rescanning a long unfinished frame after each read would take
        # quadratic time.
        searched = len(pending)
        pending += data
        while (end := pending.find(b"\n", searched)) >= 0:
            if end > MAX_FRAME:
                break
            yield bytes(pending[:end])
            del pending[: end + 1]
            searched = 0
        if len(pending) > MAX_FRAME:
            raise WireError(PARSE_ERROR, f"a frame is over {MAX_FRAME} bytes")


class Server:
    """Serves one connection, until its end or `shutdown`."""

    def __init__(
        self,
        actions: Actions,
        family: Family,
        reader: int,
        writer: int,
        proxy: SandboxTunnels | None = None,
    ) -> None:
        self._actions = actions
        self._family = family
        self._reader = reader
        self._writer = writer
        self._write_lock = FairLock()
        self._proxy = proxy
        self._worker = ThreadPoolExecutor(1)
        self._program_threads = ThreadPoolExecutor(
            3 * MAX_PROGRAMS
        )  # a read, a write and an end each
        self._free_slots = threading.BoundedSemaphore(MAX_REQUESTS)
        self._interruptible: set[Future[dict[str, Any]]] = set()

    def serve(self) -> None:
        """Read requests until the end of stdin, `shutdown`, or a frame that is too long."""
        if self._proxy:
            self._proxy.start(self._write, lambda error: self._fail(None, error))
        try:
            for line in frames(self._reader):
                if not line.strip():
                    continue
                message: dict[str, Any] = {}
                try:
                    message = decode(line)
                    _check(message)
                    if message["method"] in TUNNEL_METHODS:
                        self._to_proxy(message)
                        continue
                except WireError as error:
                    id = message.get("id")
                    self._fail(id if _is_id(id) else None, error)
                    continue
                if not self._receive(message):
                    return
        except WireError as error:
            self._fail(None, error)
        except OSError as error:
            sys.stderr.write(f"the wire broke: {error}\n")

    def _receive(self, message: dict[str, Any]) -> bool:
        """Answer the request at once, or queue it. Return False if the server should end."""
        method = message["method"]
        if method == "hello":
            self._reply(message, self._actions.hello())
        elif method == "ping":
            self._reply(message, {})
        elif method == "interrupt":
            self._reply(message, {"interrupted": self._interrupt()})
        elif method == "shutdown":
            self._reply(message, {})
            return False
        elif self._free_slots.acquire(blocking=False):
            executor = self._program_threads if method in PROGRAM_METHODS else self._worker
            future = executor.submit(self._run, message)
            if method in INTERRUPTIBLE:
                self._interruptible.add(future)
            future.add_done_callback(lambda done: self._conclude(message, done))
        else:
            error = WireError(ACTION_FAILED, f"{MAX_REQUESTS} requests are waiting already")
            self._fail(message.get("id"), error)
        return True

    def _run(self, message: dict[str, Any]) -> dict[str, Any]:
        return self._actions.run(message["method"], message.get("params", {}))

    def _interrupt(self) -> bool:
        """Cancel queued requests, interrupt the running one, and return True if there was any.

        A request that has only just begun can't be interrupted yet, but counts: the host can try
        again.
        """
        requests = list(self._interruptible)
        for request in requests:
            request.cancel()
        return self._actions.interrupt() or bool(requests)

    def _to_proxy(self, message: dict[str, Any]) -> None:
        if self._proxy is None:
            raise WireError(METHOD_NOT_FOUND, "there is no proxy")
        if "id" in message:
            raise WireError(INVALID_REQUEST, "tunnels take notifications")
        self._proxy.take(message["method"], message.get("params", {}))

    def _conclude(self, message: dict[str, Any], future: "Future[dict[str, Any]]") -> None:
        """Send the result or the error of a request that has ended."""
        self._free_slots.release()
        self._interruptible.discard(future)
        if future.cancelled():
            self._fail(message.get("id"), WireError(CANCELED, NOT_BEGUN))
            return
        error = future.exception()
        if error is None:
            self._reply(message, future.result())
        elif isinstance(error, WireError):
            self._fail(message.get("id"), error)
        else:
            traceback.print_exception(error, file=sys.stderr)
            internal_error = WireError(INTERNAL_ERROR, readable(f"{type(error).__name__}: {error}"))
            self._fail(message.get("id"), internal_error)

    def _reply(self, message: dict[str, Any], result: dict[str, Any]) -> None:
        if "id" in message:
            self._send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _fail(self, id: object, error: WireError) -> None:
        failure = {"code": error.code, "message": error.message}
        self._send({"jsonrpc": "2.0", "id": id, "error": failure})

    def _send(self, message: dict[str, Any]) -> None:
        self._write(encode(message))

    def _write(self, data: bytes) -> None:
        frame = memoryview(data)
        # If the host no longer reads, the end of stdin follows and ends the server.
        with suppress(OSError), self._write_lock:
            while frame:
                frame = frame[os.write(self._writer, frame) :]


def _check(message: dict[str, Any]) -> None:
    """Check the outer form of a request.

    Raises WireError (INVALID_REQUEST or INVALID_PARAMS).
    """
    if not isinstance(message.get("method"), str) or not _is_id(message.get("id")):
        raise WireError(INVALID_REQUEST, "a request has a string as method and a plain id")
    if not isinstance(message.get("params", {}), dict):
        raise WireError(INVALID_PARAMS, "params must be an object")


def _is_id(value: object) -> bool:
    return value is None or (isinstance(value, int | str) and not isinstance(value, bool))


def run_action_server(
    actions: Actions, family: Family, proxy: SandboxTunnels | None = None
) -> None:
    """Serve on this process's stdin and stdout, then kill all descendants and exit.

    It does not return.
    """
    hide_descriptors()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: _end(family))
    # Ignored signals are inherited across exec (signal(7)): if the host ignores some (nohup, a
    # background job), every program in the sandbox would ignore them too.
    for number in (signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        signal.signal(number, signal.SIG_DFL)
    reader, writer = take_over_stdio()
    Server(actions, family, reader, writer, proxy).serve()
    _end(family)


def _end(family: Family) -> None:
    family.end_all()
    # No interpreter shutdown: it would wait for the worker threads, which may still run an action.
    os._exit(0)
