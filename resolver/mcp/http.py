"""The streamable HTTP transport: one URL, the operator's headers, limited sizes.

The MCP package follows a redirect only within the URL's origin, so the headers go nowhere else.
Specification:
https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#streamable-http
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
"""Read timeout. It is long because the caller limits the time of an answer."""

_STREAM = "text/event-stream"


@asynccontextmanager
async def over_http(
    address: Address, refused: Callable[[int], None]
) -> "AsyncIterator[TransportStreams]":
    """Yield the streams that carry messages to a URL and back.

    refused: called with the status of an HTTP error.
    """
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def bounded(response: "httpx2.Response") -> None:
        if response.status_code >= 400:
            refused(response.status_code)
        if response.headers.get("content-encoding", "identity") != "identity":
            # It was not requested, and a small compressed answer may expand to a very large one.
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
    """Return the body, which raises an error after MAX_MESSAGE bytes."""
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
