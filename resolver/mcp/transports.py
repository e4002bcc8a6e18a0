"""The transports to an MCP server: a program behind a pair of pipes, or a URL.

Through pipes, each line is one JSON-RPC message. The other end is not trusted. This replaces the
package's own transport, which has no limit for the size of a message, and works for a process of
the host and for a program in the sandbox. Specification:
https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#stdio

Streamable HTTP uses one URL, the operator's headers and limited sizes. The MCP package follows a
redirect only within the URL's origin, so the headers go nowhere else. Specification:
https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#streamable-http
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

import anyio
import anyio.to_thread
import httpx2
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from anyio.streams.buffered import BufferedByteReceiveStream

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
    timeout: seconds that a call may take.
    """

    name: str
    transport: Launch | Address
    allows: Callable[[str], bool]
    timeout: float


MAX_MESSAGE_BYTES: Final = 10_000_000
"""Largest message that is accepted, in bytes."""


WAITING_MESSAGES: Final = 100
"""Number of messages that wait for a server to read them."""


@asynccontextmanager
async def open_pipe(
    launch: Launch, on_end: Callable[[str], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """Start a server and yield the streams that carry its messages.

    on_end: called with the reason when the server's output has ended, before the streams end.
    Cancel it by a scope of anyio only: a thread that starts, reads or writes is waited for.
    """
    # A server has its own threads: none must wait for one of another server, which may block.
    in_thread = partial(anyio.to_thread.run_sync, limiter=anyio.CapacityLimiter(3))
    pipe = await in_thread(launch)
    incoming, read = anyio.create_memory_object_stream[Any](0)
    # A call that was given up does not wait until a server that reads nothing takes its end.
    write, outgoing = anyio.create_memory_object_stream[Any](WAITING_MESSAGES)

    is_closing = False

    async def receive() -> None:
        reason: str | None = None
        with incoming:
            try:
                await _pass_messages(_Output(partial(in_thread, pipe.read)), incoming)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return  # the session has ended
            except anyio.DelimiterNotFound:
                reason = f"it wrote a message over {MAX_MESSAGE_BYTES:,} bytes"
            except (anyio.EndOfStream, anyio.IncompleteRead):
                pass
            if not is_closing:
                on_end(reason or f"it ended ({pipe.exit_details or 'no reason given'})")

    async def send() -> None:
        async for item in outgoing:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                await in_thread(pipe.write, text.encode() + b"\n")
            except (OSError, ResolverError):
                on_end(f"it accepts no input ({pipe.exit_details or 'no reason given'})")
                incoming.close()
                return

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)
            tasks.start_soon(send)
            try:
                yield read, write
            finally:
                is_closing = True
                with anyio.CancelScope(shield=True):
                    await in_thread(pipe.close)
                tasks.cancel_scope.cancel()
    finally:
        for stream in (incoming, read, write, outgoing):
            stream.close()


@dataclass
class _Output(ObjectReceiveStream[bytes]):
    """What a server writes, as a stream of anyio."""

    read: Callable[[], Awaitable[bytes]]

    async def receive(self) -> bytes:
        if data := await self.read():
            return data
        raise anyio.EndOfStream

    async def aclose(self) -> None:
        """Do nothing: the pipe is closed by its owner."""


async def _pass_messages(output: _Output, incoming: ObjectSendStream[Any]) -> None:
    """Pass on the messages of a server; other lines are skipped.

    Ends by an error of anyio: DelimiterNotFound for a message that is too long.
    """
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    lines = BufferedByteReceiveStream(output)
    while True:
        line = await lines.receive_until(b"\n", MAX_MESSAGE_BYTES)
        with suppress(ValueError):
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            await incoming.send(SessionMessage(message))


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
