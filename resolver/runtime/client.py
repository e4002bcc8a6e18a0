"""The host's end of the wire: JSON-RPC requests to the action server, which is not trusted.

A broken frame, an unknown id or a missing answer ends the connection. All calls, pending and later
ones, then raise the same SandboxError. Nothing in this module waits without a time limit.

Protocol: https://www.jsonrpc.org/specification, one JSON object per line (sandbox/wire.py).
"""

import contextlib
import threading
from collections.abc import Callable, Hashable
from functools import cache
from itertools import count
from typing import Any, Final, Protocol, TypeVar, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from resolver.errors import SandboxError
from resolver.runtime.base import Channel
from resolver.sandbox import wire
from resolver.sandbox.fair_lock import FairLock

T = TypeVar("T")

MAX_FIELD: Final = 4 * wire.MAX_TEXT
"""Longest text field that is accepted in a result, in characters. The server truncates at MAX_TEXT.
"""


Send = Callable[[bytes], None]
"""Sends one whole frame. Raises SandboxError if the wire is gone."""


class Notices(Protocol):
    """Receives the notifications of the sandbox: the egress tunnels of a run with egress."""

    def take(self, method: str, params: object) -> None:
        """Process one notification without waiting. Raises WireError if it breaks the protocol."""
        ...

    def stop(self) -> None:
        """Stop because the wire is gone. May be called more than once, from any thread."""
        ...

    def join(self) -> None:
        """Wait for the end after `stop`."""
        ...


class WireClient:
    """Sends requests over a Channel; answers may arrive in any order. Safe for several threads.

    notices: called with the function that sends frames, returns the receiver of notifications.
        Without it a notification ends the connection.
    """

    def __init__(self, channel: Channel, notices: Callable[[Send], Notices] | None = None) -> None:
        self._channel = channel
        # Tunnel frames and requests share the wire. With an unfair lock, a download could keep a
        # command from being sent for a long time.
        self._sending = FairLock()
        self._lock = threading.Lock()
        self._ids = count(1)
        self._waiting: dict[int, _Call] = {}
        self._lost: SandboxError | None = None
        self._notices = notices(self._send) if notices else None
        self._reader = threading.Thread(target=self._read, name="wire-reader", daemon=True)
        self._reader.start()

    def call(self, method: str, params: dict[str, Any], result: type[T], seconds: float) -> T:
        """Call one method and return its result, validated against the TypedDict `result`.

        seconds: time limit for the answer.
        Raises WireError if the server reports an error, SandboxError if the server is lost or
        breaks the protocol.
        """
        call = _Call()
        with self._lock:
            if self._lost is not None:
                raise self._lost
            id = next(self._ids)
            self._waiting[id] = call
        with contextlib.suppress(SandboxError):  # `_send` has ended the connection
            self._send(wire.request(id, method, params))
        if not call.done.wait(seconds):
            self._end(f"the action server did not answer `{method}` in {seconds:.0f} seconds")
        if call.answer is None:
            raise self._why()
        return self._result(method, call.answer, result)

    def close(self) -> None:
        """Close the connection and wait for the reader."""
        self._end("the sandbox was closed")
        self._reader.join(timeout=5)
        if self._notices:
            self._notices.join()

    def _send(self, frame: bytes) -> None:
        """Send one whole frame. On failure end the connection and raise SandboxError."""
        try:
            with self._sending:
                self._channel.send(frame)
        except SandboxError as error:
            self._end(error.what)
            raise

    def _result(self, method: str, answer: dict[str, Any], result: type[T]) -> T:
        shape: Any = result  # mypy does not accept the type of a TypedDict as a key
        try:
            if "error" in answer:
                error = _ErrorField.model_validate(answer["error"])
                raise wire.WireError(error.code, error.message[:MAX_FIELD])
            checked = _shape(shape).model_validate(answer["result"], strict=True).model_dump()
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            self._end(f"the answer to `{method}` is not of its shape: {where}: {first['msg']}")
            raise self._why() from error
        for name, value in checked.items():
            if isinstance(value, str) and len(value) > MAX_FIELD:
                self._end(f"`{name}` in the answer to `{method}` has {len(value):,} characters")
                raise self._why()
        return cast("T", checked)

    def _read(self) -> None:
        buffer = bytearray()
        while data := self._channel.receive():
            start = 0
            while (end := data.find(b"\n", start)) >= 0:
                buffer += data[start:end]
                start = end + 1
                if not self._take(bytes(buffer)):
                    return
                buffer.clear()
            buffer += data[start:]
            if len(buffer) > wire.MAX_FRAME:
                self._end(f"the action server sent a frame over {wire.MAX_FRAME:,} bytes")
                return
        words = self._channel.last_words()
        self._end(
            "the action server ended" + (f", with the words: {words[-1000:]}" if words else "")
        )

    def _take(self, line: bytes) -> bool:
        """Give one frame to its receiver. Return False if the frame ended the connection."""
        try:
            answer = wire.decode(line)
            if self._notices and "id" not in answer and answer.get("method") in wire.TUNNEL_METHODS:
                self._notices.take(answer["method"], answer.get("params"))
                return True
        except wire.WireError as error:
            self._end(f"the action server sent a broken frame: {error.message[:200]}")
            return False
        id: Any = answer.get("id")
        well_formed = type(id) is int and ("result" in answer) != ("error" in answer)
        with self._lock:
            call = self._waiting.pop(id, None) if well_formed else None
        if call is None:
            self._end("the action server sent an answer that nobody asked for")
            return False
        call.answer = answer
        call.done.set()
        return True

    def _end(self, what: str) -> None:
        """Close the connection and wake every caller. The first reason is the one they get."""
        with self._lock:
            if self._lost is None:
                self._lost = SandboxError(
                    f"the sandbox was lost: {what}",
                    "see the event log for what ran last, and start the run again",
                )
            waiting, self._waiting = list(self._waiting.values()), {}
        self._channel.close()
        if self._notices:
            self._notices.stop()
        for call in waiting:
            call.done.set()

    def _why(self) -> SandboxError:
        assert self._lost is not None, "a call without an answer means that the end was noted"
        return self._lost


class _Call:
    """A pending request."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.answer: dict[str, Any] | None = None


class _ErrorField(BaseModel):
    """The `error` member of a JSON-RPC response."""

    model_config = ConfigDict(strict=True)

    code: int
    message: str


@cache
def _shape(result: Hashable) -> type[BaseModel]:
    """Return a pydantic model of the TypedDict `result`.

    The wire module uses the standard library only, and pydantic accepts `typing.TypedDict` only
    from Python 3.12 on.
    """
    fields: dict[str, Any] = {name: (hint, ...) for name, hint in get_type_hints(result).items()}
    return create_model("Result", __config__=ConfigDict(allow_inf_nan=False), **fields)
