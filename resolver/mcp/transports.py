"""The transports to an MCP server: a program behind a pair of pipes, or a URL.

Through pipes, each line is one JSON-RPC message. The other end is not trusted. This replaces the
package's own transport, which has no limit for the size of a message, and works for a process of
the host and for a program in the sandbox. Specification:
https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#stdio

Streamable HTTP uses one URL, the operator's headers and limited sizes. The MCP package follows a
redirect only within the URL's origin, so the headers go nowhere else. Specification:
https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#streamable-http
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import anyio
import httpx2

from resolver.errors import ResolverError


class Pipe(Protocol):
    """A server's standard input and output. Two threads may read and write at the same time."""

    def read(self) -> bytes:
        """Return the next output, waiting for it; b"" if the server has ended."""
        ...

    def write(self, data: bytes) -> None:
        """Write to the server's input. Raises SandboxError or OSError if that fails."""
        ...

    def close(self) -> None:
        """End the server and everything it has started; a waiting `read` returns b"" then.

        May be called more than once.
        """
        ...

    @property
    def exit_details(self) -> str:
        """The end of what the server wrote to standard error."""
        ...


Launch = Callable[[], Pipe]
"""Start a server. Raises OSError or ResolverError if that fails."""


@dataclass(frozen=True)
class Address:
    """A server at a URL. headers: sent with every request; they hold credentials."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Endpoint:
    """One server of a run.

    transport: how it is reached.
    allows: returns True if the tool of that name may be used.
    timeout: seconds that a call may take without a progress notification.
    """

    name: str
    transport: Launch | Address
    allows: Callable[[str], bool]
    timeout: float


MAX_MESSAGE_BYTES: Final = 10_000_000
"""Largest message that is accepted, in bytes."""


@asynccontextmanager
async def open_pipe(
    launch: Launch, note: Callable[[str], None], on_end: Callable[[str], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """Start a server and yield the streams that carry its messages.

    note: receives sentences about unusual output of the server.
    on_end: called once with the reason when the server's output has ended.
    Both are called on the loop.
    """
    loop = asyncio.get_running_loop()
    pipe = await _launch(launch)
    incoming, read = anyio.create_memory_object_stream[Any](0)
    write, outgoing = anyio.create_memory_object_stream[Any](0)

    def receive() -> None:
        reason = ""
        try:
            for message in _messages(pipe, lambda text: _call_on_loop(loop, note, text)):
                asyncio.run_coroutine_threadsafe(incoming.send(message), loop).result()
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return  # the session has ended
        except OverflowError:
            reason = f"it wrote a message over {MAX_MESSAGE_BYTES:,} bytes"
        _call_on_loop(
            loop, on_end, reason or f"it ended ({pipe.exit_details or 'no reason given'})"
        )
        _call_on_loop(loop, lambda _: incoming.close(), "")

    async def send() -> None:
        async for item in outgoing:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                await asyncio.to_thread(pipe.write, text.encode() + b"\n")
            except (OSError, ResolverError):
                on_end(f"it accepts no input ({pipe.exit_details or 'no reason given'})")
                incoming.close()
                return

    reader = threading.Thread(target=receive, name="mcp-reader", daemon=True)
    reader.start()
    writer = loop.create_task(send())
    try:
        yield read, write
    finally:
        for stream in (incoming, read, write, outgoing):
            stream.close()
        writer.cancel()
        await _wait_uncancelled(loop.create_task(_close_pipe(pipe, reader, writer)))


async def _launch(launch: Launch) -> Pipe:
    """Start the server and return it. If the wait is cancelled, end the server."""
    launching = asyncio.ensure_future(asyncio.to_thread(launch))
    try:
        return await asyncio.shield(launching)
    except asyncio.CancelledError:
        await asyncio.wait({launching})  # a second cancellation ends this wait
        if launching.exception() is None:
            await asyncio.to_thread(launching.result().close)
        raise


async def _wait_uncancelled(task: asyncio.Task[None]) -> None:
    """Wait for the task even if the wait is cancelled, so that it has cleaned up afterwards."""
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


def _call_on_loop(loop: asyncio.AbstractEventLoop, call: Callable[[str], None], text: str) -> None:
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(call, text)


async def _close_pipe(pipe: Pipe, reader: threading.Thread, writer: asyncio.Task[None]) -> None:
    await asyncio.to_thread(pipe.close)
    await asyncio.to_thread(reader.join)
    await asyncio.wait({writer})


def _messages(pipe: Pipe, note: Callable[[str], None]) -> Iterator[Any]:
    """Yield the messages from the pipe. Raises OverflowError for a message that is too long."""
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    was_noted = False
    for line in _lines(pipe):
        if not line.strip():
            continue
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            if not was_noted:
                note("it writes other things than messages to its output; they are skipped")
                was_noted = True
            continue
        yield SessionMessage(message)


def _lines(pipe: Pipe) -> Iterator[bytes]:
    pending = bytearray()
    while data := pipe.read():
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            pending += data[start:end]
            start = end + 1
            if len(pending) > MAX_MESSAGE_BYTES:
                raise OverflowError
            yield bytes(pending)
            pending.clear()
        pending += data[start:]
        if len(pending) > MAX_MESSAGE_BYTES:
            raise OverflowError


CONNECT_SECONDS: Final = 20.0
READ_SECONDS: Final = 3600.0
"""Read timeout. It is long because the caller limits the time of an answer."""

_EVENT_STREAM = "text/event-stream"


@asynccontextmanager
async def open_http(
    address: Address, on_http_error: Callable[[int], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """Yield the streams that carry messages to a URL and back.

    on_http_error: called with the status of an HTTP error.
    """
    from mcp.client.streamable_http import streamable_http_client

    async def check_response(response: httpx2.Response) -> None:
        if response.status_code >= 400:
            on_http_error(response.status_code)
        if response.headers.get("content-encoding", "identity") != "identity":
            # It was not requested, and a small compressed answer may expand to a very large one.
            raise httpx2.DecodingError("it compresses its answers")
        # An event stream has no end that could be limited, so the limit applies to each event: see
        # max_sse_event_size below and
        # https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
        if not response.headers.get("content-type", "").lower().startswith(_EVENT_STREAM):
            response.stream = _limit_body(response.stream)

    async with (
        httpx2.AsyncClient(
            headers={**address.headers, "Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(CONNECT_SECONDS, read=READ_SECONDS),
            event_hooks={"response": [check_response]},
        ) as client,
        streamable_http_client(
            address.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES
        ) as streams,
    ):
        yield streams


def _limit_body(stream: Any) -> Any:
    """Return the body, which raises an error after MAX_MESSAGE_BYTES bytes."""

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            bytes_left = MAX_MESSAGE_BYTES
            async for chunk in stream:
                bytes_left -= len(chunk)
                if bytes_left < 0:
                    raise httpx2.StreamError(f"the answer is over {MAX_MESSAGE_BYTES:,} bytes")
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()
