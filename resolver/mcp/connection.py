"""One connection to an MCP server: started, initialized, used and ended.

All methods are for the thread of the event loop. Failures are raised as ConnectionLost, ToolRefused
or TimeoutError, with messages for people.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

from resolver import __version__
from resolver.mcp.transports import Address, Endpoint, over_http, over_pipe
from resolver.models.run import JsonObject

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.client._transport import TransportStreams
    from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

MAX_CALL: Final = 600.0
"""Longest time of one call in seconds, regardless of progress notifications.

A longer timeout in the server's own settings takes precedence.
"""

CLOSE_SECONDS: Final = 10.0

TOLD_SECONDS: Final = 1.0
"""Time limit for sending the cancellation of a call to a server, which may not be reading."""

MAX_PAGES: Final = 20
MAX_LISTED: Final = 500

_LOST = "Session terminated"
"""Message of the package's exception if a request of a session is answered with status 404."""


class ConnectionLost(Exception):
    """Raised if the server is gone. The message says how."""


class ToolRefused(Exception):
    """Raised if the server answered with an error. The message is the server's."""


class Connection:
    """A connection that starts when it is constructed.

    note: receives sentences, without the server's name, about unusual behaviour of the server.
    """

    def __init__(self, endpoint: Endpoint, note: Callable[[str], None]) -> None:
        self._endpoint = endpoint
        self._note = note
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._why = ""
        self._status = 0
        self._changed = False
        self._listed: asyncio.Future[list[JsonObject]] = self._loop.create_future()
        self._session: ClientSession | None = None
        self._dispatcher: JSONRPCDispatcher | None = None
        self._life = self._loop.create_task(self._live())
        self._life.add_done_callback(_seen)

    async def tools(self, seconds: float) -> list[JsonObject]:
        """Return the tools as the server lists them, once it is initialized.

        Raises ConnectionLost, ToolRefused and TimeoutError.
        """
        either: set[asyncio.Future[Any]] = {self._life, self._listed}
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._listed.done():
            return self._listed.result()
        if not self._life.done():
            await self.close()
            raise TimeoutError
        raise self._lost()

    async def call(self, tool: str, arguments: JsonObject) -> JsonObject:
        """Call a tool and return its result.

        Raises ConnectionLost, ToolRefused and TimeoutError. After a timeout the server is sent a
        cancellation.
        """
        if self._changed:
            await self._look_again()
        seconds, started = self._endpoint.timeout, self._loop.time()
        moved = started

        async def on_progress(*_: object) -> None:
            nonlocal moved
            moved = self._loop.time()

        params = {"name": tool, "arguments": arguments}
        asking = self._loop.create_task(self._ask("tools/call", params, on_progress))
        try:
            while not asking.done():
                # A progress notification restarts the timeout, but not beyond MAX_CALL in total:
                # https://modelcontextprotocol.io/specification/2025-06-18/basic/lifecycle#timeouts
                end = min(moved + seconds, started + max(seconds, MAX_CALL))
                if end <= self._loop.time():
                    raise TimeoutError
                await asyncio.wait(
                    {asking, self._life},
                    timeout=end - self._loop.time(),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if self._life.done() and not asking.done():
                    raise self._lost()
        finally:
            asking.cancel()
            await asyncio.wait({asking}, timeout=TOLD_SECONDS)
        return self._answer(asking)

    @property
    def is_over(self) -> bool:
        """True if the connection has ended or is ending."""
        return self._over.is_set() or self._life.done()

    async def close(self) -> None:
        """End the connection and wait for that, for a limited time."""
        self._over.set()
        if not self._listed.done():
            self._life.cancel()  # it may be waiting for the answer to `initialize`
        await asyncio.wait({self._life}, timeout=CLOSE_SECONDS)
        self._life.cancel()
        await asyncio.wait({self._life}, timeout=CLOSE_SECONDS)

    def _answer(self, asking: "asyncio.Task[JsonObject]") -> JsonObject:
        error = asking.exception()
        if error is None:
            return asking.result()
        words = text_of_error(error)
        if self._is_end(error) or words == _LOST:
            self._end(self._why or words)
            raise self._lost()
        if self._status:
            words, self._status = f"{words} (HTTP status {self._status})", 0
        raise ToolRefused(words)

    def _is_end(self, error: BaseException) -> bool:
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        return isinstance(error, MCPError) and error.code == CONNECTION_CLOSED

    def _lost(self) -> ConnectionLost:
        error = None
        if self._life.done() and not self._life.cancelled():
            error = self._life.exception()
        words = self._why or (text_of_error(error) if error else "the connection ended")
        return ConnectionLost(f"{words} (HTTP status {self._status})" if self._status else words)

    def _end(self, why: str) -> None:
        self._why = self._why or why
        self._over.set()

    async def _live(self) -> None:
        from mcp import ClientSession
        from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
        from mcp_types import Implementation

        async with self._transport() as (read, write):
            self._dispatcher = JSONRPCDispatcher(read, write)
            info = Implementation(name="resolver", version=__version__)
            async with ClientSession(
                dispatcher=self._dispatcher, client_info=info, message_handler=self._noticed
            ) as session:
                self._session = session
                await self._greet(session)
                self._listed.set_result(await self._list())
                await self._over.wait()

    def _transport(self) -> "AbstractAsyncContextManager[TransportStreams]":
        if isinstance(self._endpoint.way, Address):
            return over_http(self._endpoint.way, self._refused)
        return over_pipe(self._endpoint.way, self._note, self._end)

    def _refused(self, status: int) -> None:
        self._status = status

    async def _greet(self, session: "ClientSession") -> None:
        """Initialize the session, with the newer discovery if the server refuses `initialize`."""
        from mcp import MCPError

        try:
            await session.initialize()
        except MCPError as error:
            if self._is_end(error):
                raise
            await session.discover()
        self._status = 0

    async def _list(self) -> list[JsonObject]:
        found: list[JsonObject] = []
        cursor: Any = None
        for _ in range(MAX_PAGES):
            page = await self._ask("tools/list", {"cursor": cursor} if cursor else {})
            tools = page.get("tools")
            found += [tool for tool in tools or () if isinstance(tool, dict)]
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or not cursor or len(found) > MAX_LISTED:
                break
        return found[:MAX_LISTED]

    async def _ask(self, method: str, params: JsonObject, on_progress: Any = None) -> JsonObject:
        """Send a request and return the result without validation by the package.

        The package would reject a whole listing or result for one unusual field; here it is read
        leniently. With the newer protocol versions the request goes through the session, which adds
        fields that they require.
        """
        from mcp.types import CallToolRequest, ListToolsRequest
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        assert self._session and self._dispatcher, "it was greeted"
        if self._session.protocol_version in MODERN_PROTOCOL_VERSIONS:
            kind = CallToolRequest if method == "tools/call" else ListToolsRequest
            request = kind.model_validate({"method": method, "params": params})
            whole: Any = TypeAdapter(JsonObject)
            answer = await self._session.send_request(request, whole, progress_callback=on_progress)
            return dict(answer)
        options: Any = {} if on_progress is None else {"on_progress": on_progress}
        return await self._dispatcher.send_raw_request(method, params, options)

    async def _noticed(self, message: object) -> None:
        from mcp.types import ToolListChangedNotification

        self._changed |= isinstance(message, ToolListChangedNotification)

    async def _look_again(self) -> None:
        """List the tools again after a change notification, and note a real change.

        Some servers send the notification without a change.
        """
        self._changed = False
        looking = self._loop.create_task(self._list())
        await asyncio.wait({looking}, timeout=CLOSE_SECONDS)
        if looking.done() and looking.exception() is None:
            if _names(looking.result()) != _names(self._listed.result()):
                self._note("its tools have changed; those it began with are still the ones offered")
        else:
            looking.cancel()


def _names(tools: list[JsonObject]) -> set[str]:
    return {str(tool.get("name")) for tool in tools}


def _seen(life: "asyncio.Task[None]") -> None:
    """Retrieve the task's exception, which asyncio would log as never retrieved otherwise."""
    if not life.cancelled():
        life.exception()


def text_of_error(error: BaseException) -> str:
    """Return the error's message in one line; for an exception group, that of the first error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = getattr(error, "message", "") or str(error)
    return " ".join(str(text).split()) or type(error).__name__
