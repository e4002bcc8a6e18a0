"""The stdio transport: one JSON-RPC message per line of a pipe. The other end is not trusted.

It replaces the package's own transport, which has no limit for the size of a message, and works for
a process of the host and for a program in the sandbox. Specification:
https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#stdio
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from resolver.errors import ResolverError
from resolver.mcp.endpoint import Launch, Pipe

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

MAX_MESSAGE: Final = 10_000_000
"""Largest message that is accepted, in bytes."""


@asynccontextmanager
async def over_pipe(
    launch: Launch, note: Callable[[str], None], ended: Callable[[str], None]
) -> "AsyncIterator[TransportStreams]":
    """Start a server and yield the streams that carry its messages.

    note: receives sentences about unusual output of the server.
    ended: called once with the reason when the server's output has ended.
    Both are called on the loop.
    """
    import anyio

    loop = asyncio.get_running_loop()
    pipe = await _launched(launch)
    incoming, read = anyio.create_memory_object_stream[Any](0)
    write, outgoing = anyio.create_memory_object_stream[Any](0)

    def receive() -> None:
        reason = ""
        try:
            for message in _messages(pipe, lambda text: _on(loop, note, text)):
                asyncio.run_coroutine_threadsafe(incoming.send(message), loop).result()
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return  # the session has ended
        except OverflowError:
            reason = f"it wrote a message over {MAX_MESSAGE:,} bytes"
        _on(loop, ended, reason or f"it ended ({pipe.last_words or 'without a word'})")
        _on(loop, lambda _: incoming.close(), "")

    async def send() -> None:
        async for item in outgoing:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                await asyncio.to_thread(pipe.write, text.encode() + b"\n")
            except (OSError, ResolverError):
                ended(f"it takes no input ({pipe.last_words or 'without a word'})")
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
        await _surely(loop.create_task(_end(pipe, reader, writer)))


async def _launched(launch: Launch) -> Pipe:
    """Start the server and return it. If the wait is cancelled, end the server."""
    launching = asyncio.ensure_future(asyncio.to_thread(launch))
    try:
        return await asyncio.shield(launching)
    except asyncio.CancelledError:
        await asyncio.wait({launching})  # a second cancellation ends this wait
        if launching.exception() is None:
            await asyncio.to_thread(launching.result().close)
        raise


async def _surely(ending: "asyncio.Task[None]") -> None:
    """Wait for the task even if the wait is cancelled, so that it has cleaned up afterwards."""
    cancelled = False
    while not ending.done():
        try:
            await asyncio.wait({ending})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


def _on(loop: asyncio.AbstractEventLoop, call: Callable[[str], None], text: str) -> None:
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(call, text)


async def _end(pipe: Pipe, reader: threading.Thread, writer: "asyncio.Task[None]") -> None:
    await asyncio.to_thread(pipe.close)
    await asyncio.to_thread(reader.join)
    await asyncio.wait({writer})


def _messages(pipe: Pipe, note: Callable[[str], None]) -> Iterator[Any]:
    """Yield the messages from the pipe. Raises OverflowError for a message that is too long."""
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    told = False
    for line in _lines(pipe):
        if not line.strip():
            continue
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            if not told:
                note("it writes other things than messages to its output; they are skipped")
                told = True
            continue
        yield SessionMessage(message)


def _lines(pipe: Pipe) -> Iterator[bytes]:
    pending = bytearray()
    while data := pipe.read():
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            pending += data[start:end]
            start = end + 1
            if len(pending) > MAX_MESSAGE:
                raise OverflowError
            yield bytes(pending)
            pending.clear()
        pending += data[start:]
        if len(pending) > MAX_MESSAGE:
            raise OverflowError
