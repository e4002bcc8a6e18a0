"""The action server: JSON-RPC lines on stdin and stdout, answered by Actions.

One thread reads, so that `ping` and `interrupt` are answered while an action runs; one thread
runs the actions, in the order they came. The end of stdin ends everything that was started.
"""

import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

from .actions import Actions
from .processes import Family
from .spool import readable
from .wire import (
    ACTION_FAILED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_FRAME,
    PARSE_ERROR,
    WireError,
    decode,
    encode,
)

MAX_WAITING: Final = 64
"""Requests that may run or wait; more are refused."""

CHUNK: Final = 1 << 16


def take_over_stdio() -> tuple[int, int]:
    """The wire's own descriptors, moved away so that no child and no `print` can reach them.

    What anybody prints in this process goes to standard error.
    """
    reader, writer = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return reader, writer


def frames(reader: int) -> Iterator[bytes]:
    """Lines of the stream. Raises WireError(PARSE_ERROR) at one that is over MAX_FRAME."""
    pending = bytearray()
    while data := os.read(reader, CHUNK):
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

    def __init__(self, actions: Actions, family: Family, reader: int, writer: int) -> None:
        self._actions = actions
        self._family = family
        self._reader = reader
        self._writer = writer
        self._writing = threading.Lock()
        self._worker = ThreadPoolExecutor(1)
        self._places = threading.BoundedSemaphore(MAX_WAITING)

    def serve(self) -> None:
        """Read requests until the end of stdin, `shutdown`, or a frame that is too long."""
        try:
            for line in frames(self._reader):
                if not line.strip():
                    continue
                message: dict[str, Any] = {}
                try:
                    message = decode(line)
                    _check(message)
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
        """Answer at once, or put in line. False ends the server."""
        method = message["method"]
        if method == "hello":
            self._reply(message, self._actions.hello())
        elif method == "ping":
            self._reply(message, {})
        elif method == "interrupt":
            self._reply(message, {"interrupted": self._actions.interrupt()})
        elif method == "shutdown":
            self._reply(message, {})
            return False
        elif self._places.acquire(blocking=False):
            running = self._worker.submit(self._actions.run, method, message.get("params", {}))
            running.add_done_callback(lambda done: self._conclude(message, done))
        else:
            busy = WireError(ACTION_FAILED, f"{MAX_WAITING} requests are waiting already")
            self._fail(message.get("id"), busy)
        return True

    def _conclude(self, message: dict[str, Any], done: "Future[dict[str, Any]]") -> None:
        self._places.release()
        error = done.exception()
        if error is None:
            self._reply(message, done.result())
        elif isinstance(error, WireError):
            self._fail(message.get("id"), error)
        else:
            traceback.print_exception(error, file=sys.stderr)
            fault = WireError(INTERNAL_ERROR, readable(f"{type(error).__name__}: {error}"))
            self._fail(message.get("id"), fault)

    def _reply(self, message: dict[str, Any], result: dict[str, Any]) -> None:
        if "id" in message:
            self._send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _fail(self, id: object, error: WireError) -> None:
        failure = {"code": error.code, "message": error.message}
        self._send({"jsonrpc": "2.0", "id": id, "error": failure})

    def _send(self, message: dict[str, Any]) -> None:
        frame = memoryview(encode(message))
        # Where nobody listens any more, the end of stdin follows.
        with suppress(OSError), self._writing:
            while frame:
                frame = frame[os.write(self._writer, frame) :]


def _check(message: dict[str, Any]) -> None:
    """A request's outer form. Raises WireError(INVALID_REQUEST or INVALID_PARAMS)."""
    if not isinstance(message.get("method"), str) or not _is_id(message.get("id")):
        raise WireError(INVALID_REQUEST, "a request has a string as method and a plain id")
    if not isinstance(message.get("params", {}), dict):
        raise WireError(INVALID_PARAMS, "params must be an object")


def _is_id(value: object) -> bool:
    return value is None or (isinstance(value, int | str) and not isinstance(value, bool))


def run(actions: Actions, family: Family) -> None:
    """Serve on this process's stdin and stdout, then end every process below; does not return."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: _end(family))
    # What the host ignores (nohup, a job in the background), every program in here would, too.
    for number in (signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        signal.signal(number, signal.SIG_DFL)
    reader, writer = take_over_stdio()
    Server(actions, family, reader, writer).serve()
    _end(family)


def _end(family: Family) -> None:
    family.end_all()
    os._exit(0)
