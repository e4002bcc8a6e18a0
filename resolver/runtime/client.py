"""The host's end of the wire: JSON-RPC requests to the action server, which is not trusted.

A broken frame, an unknown id or a missing answer ends the connection. All calls, pending and later
ones, then raise the same SandboxError, which is a SandboxLost if the server has ended or hangs.
Nothing in this module waits without a time limit.

Protocol: https://www.jsonrpc.org/specification, one JSON object per line (sandbox/wire.py).

The input and output of a program in the sandbox, such as an MCP server of the repository, can be
connected to the host. Files go in and out as tar streams. A stream that comes out may have been
shaped by the sandbox and is not trusted.
"""

import base64
import binascii
import contextlib
import io
import tarfile
import tempfile
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import IO, Any, Final, Protocol, TypedDict, TypeVar, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from resolver.errors import SandboxError, SandboxLost
from resolver.models.base import describe_first_error
from resolver.runtime.base import Channel
from resolver.sandbox import wire
from resolver.sandbox.wire import FairLock

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
        Without it such a notification ends the connection.
    """

    def __init__(
        self,
        channel: Channel,
        notices: Callable[[Send], Notices] | None = None,
    ) -> None:
        self._channel = channel
        # Tunnel frames and requests share the wire. With an unfair lock, a download could keep a
        # command from being sent for a long time.
        self._sending = FairLock()
        self._lock = threading.Lock()
        self._ids = count(1)
        self._pending: dict[int, _Call] = {}
        self._lost_error: SandboxError | None = None
        self._notices = notices(self._send) if notices else None
        self._reader = threading.Thread(target=self._read, name="wire-reader", daemon=True)
        self._reader.start()

    def call(
        self,
        method: str,
        params: dict[str, Any],
        result: type[T],
        seconds: float,
    ) -> T:
        """Call one method and return its result, validated against the TypedDict `result`.

        seconds: time limit for the answer.
        Raises WireError if the server reports an error, SandboxLost if the server has ended or does
        not answer in time, and SandboxError if it breaks the protocol.
        """
        call = _Call()
        with self._lock:
            if self._lost_error is not None:
                raise self._lost_error
            id = next(self._ids)
            self._pending[id] = call
        with contextlib.suppress(SandboxError):  # `_send` has ended the connection
            self._send(wire.request_frame(id, method, params))
        if not call.done.wait(seconds):
            # It may be suspended for good, and so may be its engine. If the request itself makes it
            # hang, the number of sandboxes that replace it is limited, as for one that ends it.
            self._end(
                f"the action server did not answer `{method}` in {seconds:.0f} seconds", SandboxLost
            )
        if call.answer is None:
            raise self._loss_error()
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
            self._end(error.what, SandboxLost)
            raise

    def _result(self, method: str, answer: dict[str, Any], result: type[T]) -> T:
        result_type: Any = result  # mypy does not accept the type of a TypedDict as a key
        try:
            if "error" in answer:
                error = _ErrorField.model_validate(answer["error"])
                raise wire.WireError(error.code, error.message[:MAX_FIELD])
            checked = (
                _model_of(result_type).model_validate(answer["result"], strict=True).model_dump()
            )
        except ValidationError as error:
            self._end(f"the answer to `{method}` is malformed: {describe_first_error(error)}")
            raise self._loss_error() from error
        for name, value in checked.items():
            if isinstance(value, str) and len(value) > MAX_FIELD:
                self._end(f"`{name}` in the answer to `{method}` has {len(value):,} characters")
                raise self._loss_error()
        return cast("T", checked)

    def _read(self) -> None:
        buffer = bytearray()
        while data := self._channel.receive():
            start = 0
            while (end := data.find(b"\n", start)) >= 0:
                buffer += data[start:end]
                start = end + 1
                if not self._dispatch(bytes(buffer)):
                    return
                buffer.clear()
            buffer += data[start:]
            if len(buffer) > wire.MAX_FRAME:
                self._end(f"the action server sent a frame over {wire.MAX_FRAME:,} bytes")
                return
        details = self._channel.exit_details()
        self._end(
            "the action server ended"
            + (f", with the last output: {details[-1000:]}" if details else ""),
            SandboxLost,
        )

    def _dispatch(self, line: bytes) -> bool:
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
        is_well_formed = type(id) is int and ("result" in answer) != ("error" in answer)
        with self._lock:
            call = self._pending.pop(id, None) if is_well_formed else None
        if call is None:
            self._end("the action server sent an unexpected answer")
            return False
        call.answer = answer
        call.done.set()
        return True

    def _end(self, reason: str, kind: type[SandboxError] = SandboxError) -> None:
        """Close the connection and wake every caller. The first reason is the one they get, as an
        error of that kind."""
        with self._lock:
            if self._lost_error is None:
                self._lost_error = kind(
                    f"the sandbox was lost: {reason}",
                    "see the event log for what ran last, and start the run again",
                )
            pending, self._pending = list(self._pending.values()), {}
        self._channel.close()
        if self._notices:
            self._notices.stop()
        for call in pending:
            call.done.set()

    def _loss_error(self) -> SandboxError:
        assert self._lost_error is not None, "a call without an answer means that the end was noted"
        return self._lost_error


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
def _model_of(result: Hashable) -> type[BaseModel]:
    """Return a pydantic model of the TypedDict `result`.

    The wire module uses the standard library only, and pydantic accepts `typing.TypedDict` only
    from Python 3.12 on.
    """
    fields: dict[str, Any] = {name: (hint, ...) for name, hint in get_type_hints(result).items()}
    return create_model("Result", __config__=ConfigDict(allow_inf_nan=False), **fields)


READ_SECONDS: Final = 20.0
"""Time that one request for output waits before the next one is sent."""

GRACE_SECONDS: Final = 300.0
"""Time added for a busy sandbox, because a missing answer ends the sandbox."""


class EmptyResult(TypedDict):
    """A result without content: the request was executed."""


class Program:
    """One program. `read` and `write` may be called from two threads, `close` from any thread."""

    def __init__(self, client: WireClient, number: int) -> None:
        self._client = client
        self._number = number
        self._stderr_tail = ""

    def read(self) -> bytes:
        """Return the next output; b"" if the program or the sandbox has ended."""
        params = {"program": self._number, "timeout": READ_SECONDS}
        seconds = READ_SECONDS + GRACE_SECONDS
        try:
            while True:
                output = self._client.call("read_program", params, wire.ProgramOutput, seconds)
                self._stderr_tail = output["stderr_tail"]
                data = base64.b64decode(output["data"], validate=True)
                if data or output["ended"]:
                    return data
        except (SandboxError, wire.WireError, binascii.Error):
            return b""

    def write(self, data: bytes) -> None:
        """Write to the program's input. Raises SandboxError if it does not accept the data."""
        for start in range(0, len(data), wire.PROGRAM_CHUNK):
            piece = base64.b64encode(data[start : start + wire.PROGRAM_CHUNK]).decode()
            params = {"program": self._number, "data": piece}
            try:
                self._client.call("write_program", params, EmptyResult, GRACE_SECONDS)
            except wire.WireError as error:
                raise SandboxError(error.message, "see what it wrote to standard error") from error

    def close(self) -> None:
        """End the program and everything it has started; a waiting `read` returns b"" then.

        May be called more than once.
        """
        with suppress(SandboxError, wire.WireError):
            params = {"program": self._number}
            self._client.call("end_program", params, EmptyResult, GRACE_SECONDS)

    @property
    def exit_details(self) -> str:
        """The end of what the program wrote to standard error."""
        return self._stderr_tail


_CHUNK_BYTES: Final = 1024 * 1024
_BLOCK: Final = tarfile.BLOCKSIZE


def wrap_file(name: str, content: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a tar stream with one file, `name`.

    The content is written to a temporary file first, because its size precedes it in the stream.
    """
    with tempfile.TemporaryFile() as spool:
        for chunk in content:
            spool.write(chunk)
        member = tarfile.TarInfo(name)
        member.size, member.mode = spool.tell(), 0o644
        spool.seek(0)
        yield member.tobuf(tarfile.PAX_FORMAT)
        while chunk := spool.read(_CHUNK_BYTES):
            yield chunk
        yield bytes(-member.size % _BLOCK + 2 * _BLOCK)


def take_file(tar: Iterator[bytes], destination: Path, max_bytes: int) -> None:
    """Write the one regular file of a tar stream to `destination`, which must not exist.

    Raises SandboxError for anything else: a link, a device, a folder, a second member, a file of
    more than `max_bytes` bytes, a stream that breaks off. In those cases no file is left at
    `destination`.
    """
    try:
        with destination.open("xb") as target:
            _copy_only_file(tar, target, max_bytes)
    except FileExistsError as error:
        raise SandboxError(f"{destination} exists already", "name another file") from error
    except (tarfile.TarError, EOFError, ValueError, OverflowError, OSError) as error:
        destination.unlink(missing_ok=True)
        raise _unexpected(f"the stream is broken: {error}") from error
    except BaseException:
        destination.unlink(missing_ok=True)
        raise


def _copy_only_file(tar: Iterator[bytes], target: IO[bytes], max_bytes: int) -> None:
    with tarfile.open(fileobj=_Reader(tar), mode="r|", bufsize=_BLOCK * 128) as archive:
        member = archive.next()
        if member is None or member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise _unexpected("it is not a regular file")
        if member.sparse is not None or member.size > max_bytes:
            raise _unexpected(f"it has {member.size:,} bytes, the limit is {max_bytes:,}")
        content = archive.extractfile(member)
        while content is not None and (chunk := content.read(_CHUNK_BYTES)):
            target.write(chunk)
        if target.tell() != member.size:
            raise _unexpected("the stream broke off")
        if archive.next() is not None:
            raise _unexpected("it is more than one file")


def _unexpected(reason: str) -> SandboxError:
    return SandboxError(
        f"the sandbox returned something other than the requested file: {reason}",
        "the run's event log shows what ran in the sandbox",
    )


class _Reader(io.RawIOBase):
    """A stream of chunks as a readable file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._remaining = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        parts, bytes_left = [], size
        while bytes_left:
            if not self._remaining:
                self._remaining = next(self._chunks, b"")
                if not self._remaining:
                    break
            part, self._remaining = self._remaining[:bytes_left], self._remaining[bytes_left:]
            parts.append(part)
            bytes_left -= len(part)
        return b"".join(parts)
