"""One connection to an MCP server: started, initialized, used and ended.

The package's session runs in a task of an event loop in another thread; the methods are for callers
without one. Failures are raised as ConnectionLost, ToolRefused or TimeoutError, with messages for
people.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio.from_thread import BlockingPortal
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

    portal: starts tasks on the event loop.
    start_seconds: time limit for the server to be initialized and to list its tools.
    note: receives sentences, without the server's name, about unusual behaviour of the server.
    """

    def __init__(
        self,
        portal: BlockingPortal,
        endpoint: Endpoint,
        start_seconds: float,
        note: Callable[[str], None],
    ) -> None:
        self._portal = portal
        self._endpoint = endpoint
        self._start_seconds = start_seconds
        self._note = note
        self._ending = asyncio.Event()
        self._end_reason = ""
        self._http_status = 0
        self._listed: Future[list[JsonObject]] = Future()
        self._session: ClientSession | None = None
        self._dispatcher: JSONRPCDispatcher | None = None
        self._lock = threading.Lock()
        self._task = portal.start_task_soon(self._run_session)
        self._interruptible: Future[Any] = self._task

    def tools(self) -> list[JsonObject]:
        """Return the tools as the server lists them, once it is initialized.

        Raises ConnectionLost, and CancelledError if it is interrupted.
        """
        futures: set[Future[Any]] = {self._task, self._listed}
        wait(futures, return_when=FIRST_COMPLETED)
        with self._lock:
            self._interruptible = self._listed
        if not self._listed.done():
            raise self._connection_lost()
        return self._listed.result()

    def call(self, tool: str, arguments: JsonObject) -> JsonObject:
        """Call a tool and return its result.

        Raises ConnectionLost, ToolRefused, TimeoutError, and CancelledError if it is interrupted.
        After a timeout the server is sent a cancellation.
        """
        # The loop may begin the call before it is stored.
        with self._lock:
            request = self._portal.start_task_soon(self._call, tool, arguments)
            self._interruptible = request
        error = request.exception()
        if error is None:
            return request.result()
        if isinstance(error, TimeoutError):
            raise error
        message = text_of_error(error)
        if self._is_end(error) or message == _SESSION_TERMINATED:
            self._portal.call(self._end, message)
            raise self._connection_lost()
        if self._http_status:
            message, self._http_status = f"{message} (HTTP status {self._http_status})", 0
        raise ToolRefused(message)

    def interrupt(self) -> None:
        """End the present call or the start. May be called from any thread."""
        with self._lock:
            self._interruptible.cancel()

    @property
    def is_over(self) -> bool:
        """True if the connection has ended or is ending."""
        return self._ending.is_set() or self._task.done()

    def begin_to_close(self) -> None:
        """Let the connection end."""
        self._portal.call(self._ending.set)
        if not self._listed.done():
            self._task.cancel()  # it may be waiting for the answer to `initialize`

    def close(self) -> None:
        """End the connection and wait for that, for a limited time."""
        self.begin_to_close()
        wait({self._task}, CLOSE_SECONDS)
        self._task.cancel()

    async def _call(self, tool: str, arguments: JsonObject) -> JsonObject:
        seconds, now = self._endpoint.timeout, anyio.current_time
        latest = now() + max(seconds, MAX_CALL_SECONDS)
        with anyio.fail_after(seconds) as scope:

            async def extend(*_: object) -> None:
                # A progress notification restarts the timeout, but not beyond MAX_CALL_SECONDS:
                # https://modelcontextprotocol.io/specification/2025-06-18/basic/lifecycle#timeouts
                scope.deadline = min(now() + seconds, latest)

            return await self._request("tools/call", {"name": tool, "arguments": arguments}, extend)

    def _is_end(self, error: BaseException) -> bool:
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        return isinstance(error, MCPError) and error.code == CONNECTION_CLOSED

    def _connection_lost(self) -> ConnectionLost:
        error = self._task.exception() if self._task.done() else None
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
            async with ClientSession(dispatcher=self._dispatcher, client_info=info) as session:
                self._session = session
                try:
                    with anyio.fail_after(self._start_seconds):
                        await self._initialize(session)
                        listed = await self._list_tools()
                except TimeoutError:
                    self._end(f"it did not answer in {self._start_seconds:g} seconds")
                    raise
                self._listed.set_result(listed)
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


def text_of_error(error: BaseException) -> str:
    """Return the error's message in one line; for an exception group, that of the first error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = getattr(error, "message", "") or str(error)
    return " ".join(str(text).split()) or type(error).__name__
