"""One life of a server: started, greeted, asked, ended. Everything here is for the loop's thread.

What can go wrong comes out as ConnectionLost, Refused or TimeoutError, with words for a person.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

from resolver import __version__
from resolver.mcp.endpoint import Address, Endpoint
from resolver.mcp.http import over_http
from resolver.mcp.lines import over_pipe
from resolver.models.run import JsonObject

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.client._transport import TransportStreams
    from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

MAX_CALL: Final = 600.0
"""Seconds that a call may take at most, however often the server tells of progress; a longer
timeout of the server's own goes before."""

CLOSE_SECONDS: Final = 10.0

TOLD_SECONDS: Final = 1.0
"""What it takes at most to tell a server that nobody waits any more; it may not read."""

MAX_PAGES: Final = 20
MAX_LISTED: Final = 500

_LOST = "Session terminated"
"""The package's words for a 404 that a session's request is answered with."""


class ConnectionLost(Exception):
    """The server is gone; the words say how."""


class ToolRefused(Exception):
    """The server has answered with an error; these are its words."""


class Connection:
    """note: told what is odd about the server, in a sentence without its name."""

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
        """The tools that it lists, as it lists them, when it has been greeted. Raises
        ConnectionLost, Refused and TimeoutError."""
        either: set[asyncio.Future[Any]] = {self._life, self._listed}
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._listed.done():
            return self._listed.result()
        if not self._life.done():
            await self.close()
            raise TimeoutError
        raise self._lost()

    async def call(self, tool: str, arguments: JsonObject) -> JsonObject:
        """The result of a tool. Raises ConnectionLost, Refused, and TimeoutError, after which the
        server was told that nobody waits."""
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
        """It has ended, or is ending."""
        return self._over.is_set() or self._life.done()

    async def close(self) -> None:
        """End it, and wait for that within bounds."""
        self._over.set()
        if not self._listed.done():
            self._life.cancel()  # it may be waiting for an answer to its greeting
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
        """By the handshake that every server of today knows; by the newer way with those that
        refuse it."""
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
        """The result as it came. The package's own checks would take a listing or a result for
        nothing where one field of it is odd; it is read with more patience here. The newer
        protocol needs what the session adds to each request."""
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
        """Some servers say that their tools have changed when they have not."""
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
    """How it ended is asked for later, or by nobody; it is no news for the loop's own log."""
    if not life.cancelled():
        life.exception()


def text_of_error(error: BaseException) -> str:
    """What went wrong, in one line. Of a group the first is told."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = getattr(error, "message", "") or str(error)
    return " ".join(str(text).split()) or type(error).__name__
