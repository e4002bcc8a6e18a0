"""A client of the DevTools protocol over two pipes, as used by `--remote-debugging-pipe`.

Messages are JSON, each ended by a NUL. One thread reads. Every wait has a limit, and nothing here
knows what a page is. Source: https://chromedevtools.github.io/devtools-protocol/
"""

import json
import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

CHUNK: Final = 1 << 20
"""Number of bytes to read at once."""

MAX_MESSAGE: Final = 256 * 1024 * 1024
"""Size in bytes of a message above which the connection is given up."""

WRITE_SECONDS: Final = 5.0
"""Seconds that the browser may take to accept a command."""


class DevToolsError(Exception):
    """Base class: the browser did not do what it was asked."""


class DevToolsRefused(DevToolsError):
    """The browser answered with an error."""


class DevToolsTimeout(DevToolsError):
    """The browser did not answer in time."""


class DevToolsClosed(DevToolsError):
    """The browser has ended."""


class Interrupted(DevToolsError):
    """The wait was ended by `interrupt`."""


class DevTools:
    """Commands and events of one browser. It may be used from several threads.

    reader, writer: ends of pipes, closed by `close`.
    lost: True if the browser has closed its end of the pipe.
    on_event: called in the reading thread with session, method and parameters of each event. It
        must not call `call` or `wait`.

    It begins to read at once. Raises RuntimeError if the thread for that can't be started; the
    pipes are the caller's then.
    """

    def __init__(
        self, reader: int, writer: int, on_event: Callable[[str, str, dict[str, Any]], None]
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._on_event = on_event
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._id = 0
        self._waiting: set[int] = set()
        self._answers: dict[int, dict[str, Any]] = {}
        self.lost = False
        self._interrupted = False
        os.set_blocking(writer, False)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def send(self, method: str, session: str = "", **params: Any) -> int:
        """Send a command without waiting for its answer. Raises DevToolsClosed."""
        with self._changed:
            return self._send(method, session, params)

    def call(
        self,
        method: str,
        params: dict[str, Any],
        until: float,
        session: str = "",
        dead: Callable[[], bool] = lambda: False,
    ) -> dict[str, Any]:
        """Send a command and return its result. Raises DevToolsError.

        until: deadline on the monotonic clock.
        dead: returns True if an answer is no longer possible.
        """
        with self._changed:
            id = self._send(method, session, params)
            self._waiting.add(id)
        try:
            self.wait(lambda: id in self._answers or dead(), until, method)
        finally:
            with self._changed:
                self._waiting.discard(id)
                answer = self._answers.pop(id, None)
        if answer is None:
            raise DevToolsRefused("the page is gone")
        if "error" in answer:
            raise DevToolsRefused(str(answer["error"].get("message", answer["error"])))
        result = answer.get("result")
        return result if isinstance(result, dict) else {}

    def wait(self, ready: Callable[[], bool], until: float, what: str = "the page") -> None:
        """Wait until `ready()` is true, which is checked after each message.

        Raises DevToolsTimeout, DevToolsClosed and Interrupted.
        """
        with self._changed:
            while not ready():
                if self.lost:
                    raise DevToolsClosed("the browser ended")
                if self._interrupted:
                    raise Interrupted("interrupted")
                rest = until - time.monotonic()
                if rest <= 0:
                    raise DevToolsTimeout(f"{what} took too long")
                self._changed.wait(rest)

    def interrupt(self) -> None:
        """Make every wait, current and later, raise Interrupted until `resume`."""
        with self._changed:
            self._interrupted = True
            self._changed.notify_all()

    def resume(self) -> None:
        """Reset an interrupt."""
        with self._changed:
            self._interrupted = False

    def close(self) -> None:
        """Close the pipes. The browser must have ended, or the reading thread would not end."""
        self._thread.join(timeout=WRITE_SECONDS)
        with self._writing:
            os.close(self._writer)
        os.close(self._reader)

    def _send(self, method: str, session: str, params: dict[str, Any]) -> int:
        """Write a command and return its id. Raises DevToolsClosed."""
        self._id += 1
        message: dict[str, Any] = {"id": self._id, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = memoryview(json.dumps(message).encode() + b"\0")
        with self._writing:
            while data:
                if not select.select([], [self._writer], [], WRITE_SECONDS)[1]:
                    raise DevToolsClosed("the browser takes no commands")
                with suppress(BlockingIOError):
                    try:
                        data = data[os.write(self._writer, data) :]
                    except BrokenPipeError as error:
                        raise DevToolsClosed("the browser ended") from error
        return self._id

    def _read(self) -> None:
        """Read messages until the browser closes its end of the pipe."""
        pending = bytearray()
        while True:
            try:
                data = os.read(self._reader, CHUNK)
            except OSError:
                data = b""
            if not data or len(pending) > MAX_MESSAGE:
                break
            searched = len(pending)
            pending += data
            while (end := pending.find(b"\0", searched)) >= 0:
                self._take(bytes(pending[:end]))
                del pending[: end + 1]
                searched = 0
        with self._changed:
            self.lost = True
            self._changed.notify_all()

    def _take(self, frame: bytes) -> None:
        """Process a message: keep an awaited answer, or pass an event on. Garbage is ignored."""
        try:
            message = json.loads(frame)
        except (ValueError, RecursionError):
            return
        if not isinstance(message, dict):
            return
        with self._changed:
            id = message.get("id")
            if id in self._waiting:
                self._answers[id] = message
            elif isinstance(message.get("method"), str):
                params = message.get("params")
                self._on_event(
                    str(message.get("sessionId", "")),
                    message["method"],
                    params if isinstance(params, dict) else {},
                )
            self._changed.notify_all()
