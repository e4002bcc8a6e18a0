"""All MCP servers of a run, for callers without an event loop.

The package's client runs in a task for each server, in an event loop in a thread. The thread ends,
with everything it started, when the servers are closed. A failure of a server never ends the run:
it becomes an observation or a note for people, and the run continues without the server.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from pydantic import ValidationError

from resolver import __version__
from resolver.config.templates import render
from resolver.events.actions import McpCall
from resolver.events.observations import ErrorObservation, McpResult
from resolver.mcp.results import Keep, observation_of_result
from resolver.mcp.tool_listing import Clean, ToolListing, choose_tools, truncate_with_ellipsis
from resolver.mcp.transports import Address, Endpoint, open_http, open_pipe
from resolver.models.base import JsonObject, describe_first_error
from resolver.models.run import McpTool

if TYPE_CHECKING:
    from mcp import Client

START_SECONDS: Final = 60.0
"""Time limit for a server to start, initialize and list its tools. `npx` may download it first."""

CLOSE_SECONDS: Final = 10.0
MAX_PAGES: Final = 20
MAX_NOTE_CHARACTERS: Final = 400
MAX_NAMED_TOOLS: Final = 12

_LOGGERS = ("mcp", "client", "httpx2")
"""Loggers that write what servers send. They are silenced: what matters arrives as an exception."""


class McpServers:
    """The MCP servers of a run. Use it as a context manager.

    A server that does not start is left out, and a note says so.
    clean: removes invisible characters and secrets from every text of a server.
    keep: stores a long result in the sandbox.
    note: receives notes for people, on the caller's thread: at the start, and before a call returns
        its observation.
    start_seconds: time limit for a server to start and list its tools.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        clean: Clean,
        keep: Keep,
        note: Callable[[str], None],
        start_seconds: float = START_SECONDS,
    ) -> None:
        self._servers = {endpoint.name: _Server(endpoint, start_seconds) for endpoint in endpoints}
        self._clean = clean
        self._keep = keep
        self._note = note
        self._open = ExitStack()
        self._lock = threading.Lock()
        self._call: Future[JsonObject] = Future()
        self.tools: tuple[McpTool, ...] = ()
        """The tools that can be offered to a model."""

    def __enter__(self) -> "McpServers":
        if not self._servers:
            return self
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        with ExitStack() as opened:
            portal = opened.enter_context(start_blocking_portal(name="mcp"))
            opened.callback(self._close_all)
            for server in self._servers.values():
                server.begin(portal)
            self._choose_tools()
            self._open = opened.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End all servers and the thread. May be called more than once."""
        self._open.close()
        self._servers = {}

    def call(self, action: McpCall) -> McpResult | ErrorObservation:
        """Execute the action and return its observation.

        Every failure becomes an ErrorObservation.
        """
        server = self._servers.get(action.server)
        if server is None:
            return self._failed(action, "gone", "there is no server of that name in this run")
        if not server.endpoint.allows(action.name):
            return self._failed(action, "refused", "this tool may not be used here")
        if server.is_over:
            return self._failed(action, "gone", server.end_reason or "")
        with self._lock:  # the loop may begin the call before it is stored
            request = self._call = server.begin_call(action)
        try:
            error = request.exception()
        except CancelledError:
            return self._failed(action, "interrupted", "somebody has interrupted it")
        if error is None:
            return observation_of_result(request.result(), self._clean, self._keep)
        if isinstance(error, TimeoutError):
            seconds = f"{server.endpoint.timeout:g} seconds"
            return self._failed(action, "timeout", f"no answer in {seconds}")
        reason = server.describe(error)
        if server.is_lost_with(error):
            self._note_of(action.server, f"it was lost during a call: {reason}")
        return self._failed(action, "lost" if server.is_over else "error", reason)

    def interrupt(self) -> None:
        """End the present call, if there is one. May be called from any thread."""
        with self._lock:
            self._call.cancel()

    def _failed(self, action: McpCall, kind: str, reason: str) -> ErrorObservation:
        content = render(
            "agent/mcp_failed.md.j2",
            server=truncate_with_ellipsis(self._clean(action.server), MAX_NOTE_CHARACTERS),
            tool=truncate_with_ellipsis(self._clean(action.name), MAX_NOTE_CHARACTERS),
            how=kind,
            why=truncate_with_ellipsis(self._clean(reason), 4 * MAX_NOTE_CHARACTERS),
        )
        return ErrorObservation(content=content.strip(), code="mcp")

    def _close_all(self) -> None:
        for server in self._servers.values():
            server.begin_to_close()
        for server in self._servers.values():
            server.close()

    def _choose_tools(self) -> None:
        """Choose the tools to offer from those of the started servers; note those left out."""
        listings = []
        for name, server in self._servers.items():
            listings.append(ToolListing(name, server.wait_for_tools(), server.endpoint.allows))
            if server.is_over:
                self._note_of(name, f"it can't be used in this run: {server.end_reason}")
        choice = choose_tools(listings, self._clean)
        self.tools = choice.tools
        offered = {tool.server for tool in choice.tools}
        for name, server in self._servers.items():
            names = choice.left_out.get(name, ())
            if names:
                further = len(names) - MAX_NAMED_TOOLS
                named = ", ".join(names[:MAX_NAMED_TOOLS])
                named += f" and {further} more" if further > 0 else ""
                self._note_of(name, f"it has tools that are not offered: {named}")
            elif not server.is_over and name not in offered:
                self._note_of(name, "it has no tool that may be used")

    def _note_of(self, name: str, text: str) -> None:
        note = truncate_with_ellipsis(self._clean(text), MAX_NOTE_CHARACTERS)
        self._note(f"MCP server {name}: {note}")


class _Server:
    """One server of the run."""

    def __init__(self, endpoint: Endpoint, start_seconds: float) -> None:
        self.endpoint = endpoint
        self.end_reason: str | None = None
        self._start_seconds = start_seconds
        self._http_status = 0
        self._ending = asyncio.Event()
        self._listed: Future[list[JsonObject]] = Future()
        self._client: Client | None = None

    def begin(self, portal: BlockingPortal) -> None:
        """Begin to start the server."""
        self._portal = portal
        self._task: Future[None] = portal.start_task_soon(self._run)

    def wait_for_tools(self) -> list[JsonObject]:
        """Return the tools that the server lists once it has started; none if it can't be used."""
        started: set[Future[Any]] = {self._task, self._listed}
        wait(started, return_when=FIRST_COMPLETED)
        if self._listed.done():
            return self._listed.result()
        if error := self._task.exception():
            self.end_reason = self.describe(error)
        return []

    def begin_call(self, action: McpCall) -> Future[JsonObject]:
        """Begin a call, whose future fails with TimeoutError, or with an error of the package.

        After a timeout and an interruption the server is sent a cancellation.
        """
        return self._portal.start_task_soon(self._call, action.name, action.arguments)

    def is_lost_with(self, error: BaseException) -> bool:
        """Return True, and let the server end, if the error of a call says that it is gone."""
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        is_closed = isinstance(error, MCPError) and error.code == CONNECTION_CLOSED
        is_lost = is_closed or self._http_status == 404  # a session that the server has forgotten
        if is_lost:
            self._portal.call(self._end, self.describe(error))
        return is_lost

    def describe(self, error: BaseException) -> str:
        """Return the message of an error for people; if the server has ended, the reason."""
        status = f" (HTTP status {self._http_status})" if self._http_status else ""
        return self.end_reason or f"{_text(error)}{status}"

    @property
    def is_over(self) -> bool:
        """True if the server has ended or is ending."""
        return self._ending.is_set() or self._task.done()

    def begin_to_close(self) -> None:
        """Let the server end."""
        self._portal.call(self._ending.set)
        if not self._listed.done():
            self._task.cancel()  # it may be waiting for the server's first answer

    def close(self) -> None:
        """Wait for the end of the server, for a limited time."""
        wait({self._task}, CLOSE_SECONDS)
        self._task.cancel()

    async def _run(self) -> None:
        from mcp import Client
        from mcp_types import Implementation

        info = Implementation(name="resolver", version=__version__)
        transport = self.endpoint.transport
        opened = (
            open_http(transport, partial(setattr, self, "_http_status"))
            if isinstance(transport, Address)
            else open_pipe(transport, self._end)
        )
        with anyio.CancelScope(deadline=anyio.current_time() + self._start_seconds) as start:
            try:
                async with Client(opened, client_info=info) as self._client:
                    listed = await self._list_tools(self._client)
                    start.deadline, self._http_status = float("inf"), 0
                    self._listed.set_result(listed)
                    await self._ending.wait()
            finally:
                if start.cancel_called:
                    self.end_reason = f"it did not answer in {self._start_seconds:g} seconds"

    async def _list_tools(self, client: "Client") -> list[JsonObject]:
        listed: list[JsonObject] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            listed += [tool.model_dump(mode="json", by_alias=True) for tool in page.tools]
            cursor = page.next_cursor
            if not cursor:
                break
        return listed

    async def _call(self, tool: str, arguments: JsonObject) -> JsonObject:
        assert self._client is not None, "the server has started"
        with anyio.fail_after(self.endpoint.timeout):
            result = await self._client.call_tool(tool, arguments)
            return result.model_dump(mode="json", by_alias=True, exclude_none=True)

    def _end(self, reason: str) -> None:
        self.end_reason = self.end_reason or reason
        self._ending.set()


def _text(error: BaseException) -> str:
    """Return the error's message in one line; for an exception group, that of the first error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ValidationError):
        return f"its answer is not one of the protocol: {describe_first_error(error)}"
    text = getattr(error, "message", "") or str(error)
    return " ".join(str(text).split()) or type(error).__name__
