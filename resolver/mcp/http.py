"""The streamable HTTP transport: to one address, with the operator's headers, and bounded.

The package follows a redirect only within the address's own origin; headers go nowhere else.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from resolver.mcp.endpoint import Address
from resolver.mcp.lines import MAX_MESSAGE

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams

CONNECT_SECONDS: Final = 20.0
SILENT_SECONDS: Final = 3600.0
"""An answer may be long in coming: how long is the caller's to say."""

_STREAM = "text/event-stream"


@asynccontextmanager
async def over_http(
    address: Address, refused: Callable[[int], None]
) -> "AsyncIterator[TransportStreams]":
    """Carry messages to an address and back. refused: told the status of an answer that is one of
    HTTP and not of the server."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def bounded(response: "httpx2.Response") -> None:
        if response.status_code >= 400:
            refused(response.status_code)
        if response.headers.get("content-encoding", "identity") != "identity":
            # nobody asked for it, and a little of it may become a lot
            raise httpx2.DecodingError("it compresses its answers")
        if not response.headers.get("content-type", "").lower().startswith(_STREAM):
            response.stream = _bounded(response.stream)

    async with (
        httpx2.AsyncClient(
            headers={**address.headers, "Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(CONNECT_SECONDS, read=SILENT_SECONDS),
            event_hooks={"response": [bounded]},
        ) as client,
        streamable_http_client(
            address.url, http_client=client, max_sse_event_size=MAX_MESSAGE
        ) as streams,
    ):
        yield streams


def _bounded(stream: Any) -> Any:
    """The body, of which no more than MAX_MESSAGE bytes are read."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = MAX_MESSAGE
            async for piece in stream:
                left -= len(piece)
                if left < 0:
                    raise httpx2.StreamError(f"the answer is over {MAX_MESSAGE:,} bytes")
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()
