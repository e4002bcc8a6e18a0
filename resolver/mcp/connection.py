"""One connection to an MCP server: started, initialized, used and ended.

All methods are for the thread of the event loop. Failures are raised as ConnectionLost, ToolRefused
or TimeoutError, with messages for people.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

from resolver import __version__
from resolver.mcp.transports import Address, Endpoint, open_http, open_pipe
from resolver.models.base import JsonObject

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.client import Transport
    from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

MAX_CALL_SECONDS: Final = 600.0
"""Longest time of one call in seconds, regardless of progress notifications.

A longer timeout in the server's own settings takes precedence.
"""

CLOSE_SECONDS: Final = 10.0

CANCEL_SECONDS: Final = 1.0
"""Time limit for sending the cancellation of a call to a server, which may not be reading."""

MAX_PAGES: Final = 20
MAX_LISTED_TOOLS: Final = 500

_SESSION_TERMINATED = "Session terminated"
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
        self._ending = asyncio.Event()
        self._end_reason = ""
        self._http_status = 0
        self._tools_changed = False
        self._listed: asyncio.Future[list[JsonObject]] = self._loop.create_future()
        self._session: ClientSession | None = None
        self._dispatcher: JSONRPCDispatcher | None = None
        self._session_task = self._loop.create_task(self._run_session())
        self._session_task.add_done_callback(_retrieve_exception)

    async def tools(self, seconds: float) -> list[JsonObject]:
        """Return the tools as the server lists them, once it is initialized.

        Raises ConnectionLost, ToolRefused and TimeoutError.
        """
        tasks: set[asyncio.Future[Any]] = {self._session_task, self._listed}
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._listed.done():
            return self._listed.result()
        if not self._session_task.done():
            await self.close()
            raise TimeoutError
        raise self._connection_lost()

    async def call(self, tool: str, arguments: JsonObject) -> JsonObject:
        """Call a tool and return its result.

        Raises ConnectionLost, ToolRefused and TimeoutError. After a timeout the server is sent a
        cancellation.
        """
        if self._tools_changed:
            await self._recheck_tools()
        seconds, started = self._endpoint.timeout, self._loop.time()
        last_progress = started

        async def on_progress(*_: object) -> None:
            nonlocal last_progress
            last_progress = self._loop.time()

        params = {"name": tool, "arguments": arguments}
        request = self._loop.create_task(self._request("tools/call", params, on_progress))
        try:
            while not request.done():
                # A progress notification restarts the timeout, but not beyond MAX_CALL_SECONDS:
                # https://modelcontextprotocol.io/specification/2025-06-18/basic/lifecycle#timeouts
                deadline = min(last_progress + seconds, started + max(seconds, MAX_CALL_SECONDS))
                if deadline <= self._loop.time():
                    raise TimeoutError
                await asyncio.wait(
                    {request, self._session_task},
                    timeout=deadline - self._loop.time(),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if self._session_task.done() and not request.done():
                    raise self._connection_lost()
        finally:
            request.cancel()
            await asyncio.wait({request}, timeout=CANCEL_SECONDS)
        return self._answer(request)

    @property
    def is_over(self) -> bool:
        """True if the connection has ended or is ending."""
        return self._ending.is_set() or self._session_task.done()

    async def close(self) -> None:
        """End the connection and wait for that, for a limited time."""
        self._ending.set()
        if not self._listed.done():
            self._session_task.cancel()  # it may be waiting for the answer to `initialize`
        await asyncio.wait({self._session_task}, timeout=CLOSE_SECONDS)
        self._session_task.cancel()
        await asyncio.wait({self._session_task}, timeout=CLOSE_SECONDS)

    def _answer(self, request: "asyncio.Task[JsonObject]") -> JsonObject:
        error = request.exception()
        if error is None:
            return request.result()
        message = text_of_error(error)
        if self._is_end(error) or message == _SESSION_TERMINATED:
            self._end(self._end_reason or message)
            raise self._connection_lost()
        if self._http_status:
            message, self._http_status = f"{message} (HTTP status {self._http_status})", 0
        raise ToolRefused(message)

    def _is_end(self, error: BaseException) -> bool:
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        return isinstance(error, MCPError) and error.code == CONNECTION_CLOSED

    def _connection_lost(self) -> ConnectionLost:
        error = None
        if self._session_task.done() and not self._session_task.cancelled():
            error = self._session_task.exception()
        message = self._end_reason or (text_of_error(error) if error else "the connection ended")
        return ConnectionLost(
            f"{message} (HTTP status {self._http_status})" if self._http_status else message
        )

    def _end(self, reason: str) -> None:
        self._end_reason = self._end_reason or reason
        self._ending.set()

    async def _run_session(self) -> None:
        from mcp import ClientSession
        from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
        from mcp_types import Implementation

        async with self._transport() as (read, write):
            self._dispatcher = JSONRPCDispatcher(read, write)
            info = Implementation(name="resolver", version=__version__)
            async with ClientSession(
                dispatcher=self._dispatcher, client_info=info, message_handler=self._handle_message
            ) as session:
                self._session = session
                await self._initialize(session)
                self._listed.set_result(await self._list_tools())
                await self._ending.wait()

    def _transport(self) -> "Transport":
        if isinstance(self._endpoint.transport, Address):
            return open_http(self._endpoint.transport, self._record_status)
        return open_pipe(self._endpoint.transport, self._note, self._end)

    def _record_status(self, status: int) -> None:
        self._http_status = status

    async def _initialize(self, session: "ClientSession") -> None:
        """Initialize the session, with the newer discovery if the server refuses `initialize`."""
        from mcp import MCPError

        try:
            await session.initialize()
        except MCPError as error:
            if self._is_end(error):
                raise
            await session.discover()
        self._http_status = 0

    async def _list_tools(self) -> list[JsonObject]:
        listed: list[JsonObject] = []
        cursor: Any = None
        for _ in range(MAX_PAGES):
            page = await self._request("tools/list", {"cursor": cursor} if cursor else {})
            tools = page.get("tools")
            listed += [tool for tool in tools or () if isinstance(tool, dict)]
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or not cursor or len(listed) > MAX_LISTED_TOOLS:
                break
        return listed[:MAX_LISTED_TOOLS]

    async def _request(
        self, method: str, params: JsonObject, on_progress: Any = None
    ) -> JsonObject:
        """Send a request and return the result without validation by the package.

        The package would reject a whole listing or result for one unusual field; here it is read
        leniently. With the newer protocol versions the request goes through the session, which adds
        fields that they require.
        """
        from mcp.types import CallToolRequest, ListToolsRequest
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        assert self._session and self._dispatcher, "the session is initialized"
        if self._session.protocol_version in MODERN_PROTOCOL_VERSIONS:
            request_type = CallToolRequest if method == "tools/call" else ListToolsRequest
            request = request_type.model_validate({"method": method, "params": params})
            result_type: Any = TypeAdapter(JsonObject)
            answer = await self._session.send_request(
                request, result_type, progress_callback=on_progress
            )
            return dict(answer)
        options: Any = {} if on_progress is None else {"on_progress": on_progress}
        return await self._dispatcher.send_raw_request(method, params, options)

    async def _handle_message(self, message: object) -> None:
        from mcp.types import ToolListChangedNotification

        self._tools_changed |= isinstance(message, ToolListChangedNotification)

    async def _recheck_tools(self) -> None:
        """List the tools again after a change notification, and note a real change.

        Some servers send the notification without a change.
        """
        self._tools_changed = False
        listing = self._loop.create_task(self._list_tools())
        await asyncio.wait({listing}, timeout=CLOSE_SECONDS)
        if listing.done() and listing.exception() is None:
            if _names(listing.result()) != _names(self._listed.result()):
                self._note("its tools have changed; the run keeps the ones that it listed first")
        else:
            listing.cancel()


def _names(tools: list[JsonObject]) -> set[str]:
    return {str(tool.get("name")) for tool in tools}


def _retrieve_exception(task: "asyncio.Task[None]") -> None:
    """Retrieve the task's exception, which asyncio would log as never retrieved otherwise."""
    if not task.cancelled():
        task.exception()


def text_of_error(error: BaseException) -> str:
    """Return the error's message in one line; for an exception group, that of the first error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = getattr(error, "message", "") or str(error)
    return " ".join(str(text).split()) or type(error).__name__
