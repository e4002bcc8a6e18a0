"""All MCP servers of a run, for callers without an event loop.

The package's client runs in a task for each server, in an event loop in a thread. The thread ends,
with everything it started, when the servers are closed. A failure of a server never ends the run:
it becomes an observation or a note for people, and the run continues without the server.
"""

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
from anyio.abc import TaskStatus
from anyio.from_thread import start_blocking_portal
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

CLOSE_SECONDS: Final = 3.0
"""Time limit for the end of a session; the process of a server is then ended all the same."""

MAX_PAGES: Final = 20
MAX_NOTE_CHARACTERS: Final = 400

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
        ending = anyio.Event()
        with ExitStack() as opened:  # an exception, such as a stop, cancels all tasks
            self._portal = opened.enter_context(start_blocking_portal(name="mcp"))
            self._portal.start_task(_hold_all, self._servers.values(), ending)
            opened.callback(self._portal.call, ending.set)
            self._choose_tools()
            self._open = opened.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End all servers and the thread. May be called more than once."""
        with suppress(Exception):  # of a server that is no longer needed; all are ended
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
        if server.end_reason:
            return self._failed(action, "gone", server.end_reason)
        with self._lock:  # the loop may begin the call before it is stored
            request = self._portal.start_task_soon(server.call, action.name, action.arguments)
            self._call = request
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
        if not server.is_lost_with(error):
            return self._failed(action, "error", reason)
        self._note_of(action.server, f"it was lost during a call: {reason}")
        server.end_reason = reason
        return self._failed(action, "lost", reason)

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

    def _choose_tools(self) -> None:
        """Choose the tools to offer from those of the started servers; note those left out."""
        listings = []
        for name, server in self._servers.items():
            if server.end_reason:
                self._note_of(name, f"it can't be used in this run: {server.end_reason}")
                continue
            listings.append(ToolListing(name, server.tools, server.endpoint.allows))
        choice = choose_tools(listings, self._clean)
        self.tools = choice.tools
        offered = {tool.server for tool in choice.tools}
        for name, server in self._servers.items():
            if names := choice.left_out.get(name):
                self._note_of(
                    name, f"tools that are not offered ({len(names)}): {', '.join(names)}"
                )
            elif not server.end_reason and name not in offered:
                self._note_of(name, "it has no tool that may be used")

    def _note_of(self, name: str, text: str) -> None:
        note = truncate_with_ellipsis(self._clean(text), MAX_NOTE_CHARACTERS)
        self._note(f"MCP server {name}: {note}")


async def _hold_all(
    servers: "Collection[_Server]", ending: anyio.Event, *, task_status: TaskStatus[None]
) -> None:
    """Start the servers side by side, and end them side by side when `ending` is set."""
    async with anyio.create_task_group() as tasks:
        for server in servers:
            tasks.start_soon(server.hold, ending)
        for server in servers:
            await server.has_started.wait()
        task_status.started()


class _Server:
    """One server of the run.

    end_reason: why it can't be called any more; None while it can.
    tools: those that it lists.
    has_started: set when it has listed them or has failed.
    """

    def __init__(self, endpoint: Endpoint, start_seconds: float) -> None:
        self.endpoint = endpoint
        self.end_reason: str | None = None
        self.tools: list[JsonObject] = []
        self.has_started = anyio.Event()
        self._start_seconds = start_seconds
        self._http_status = 0
        self._client: Client | None = None

    async def hold(self, ending: anyio.Event) -> None:
        """Start the server, and keep it until `ending` is set or the connection breaks."""
        try:
            await self._connect(ending)
        except Exception as error:  # noqa: BLE001 - of one server; the others go on
            self.end_reason = self.describe(error)
        finally:
            self.has_started.set()

    async def _connect(self, ending: anyio.Event) -> None:
        from mcp import Client
        from mcp_types import Implementation

        info = Implementation(name="resolver", version=__version__)
        transport = self.endpoint.transport
        opened = (
            open_http(transport, partial(setattr, self, "_http_status"))
            if isinstance(transport, Address)
            else open_pipe(transport, partial(setattr, self, "end_reason"))
        )
        with anyio.fail_after(self._start_seconds) as limit:
            async with Client(opened, client_info=info) as self._client:
                self.tools = await self._list_tools(self._client)
                limit.deadline, self._http_status = float("inf"), 0
                self.has_started.set()
                try:
                    await ending.wait()
                finally:  # also if the connection breaks while nobody calls
                    self.end_reason = self.end_reason or "the connection to it has ended"
                    limit.deadline = anyio.current_time() + CLOSE_SECONDS

    def is_lost_with(self, error: BaseException) -> bool:
        """Return True if the error of a call says that the server is gone."""
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        is_closed = isinstance(error, MCPError) and error.code == CONNECTION_CLOSED
        return is_closed or self._http_status == 404  # a session that the server has forgotten

    def describe(self, error: BaseException) -> str:
        """Return the message of an error for people; if the server has ended, the reason."""
        if self.end_reason:
            return self.end_reason
        if isinstance(error, TimeoutError):
            return f"it did not answer in {self._start_seconds:g} seconds"
        return f"{_text(error)}{f' (HTTP status {self._http_status})' if self._http_status else ''}"

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

    async def call(self, tool: str, arguments: JsonObject) -> JsonObject:
        """Return the tool's result. Raises TimeoutError, or an error of the package.

        After a timeout and an interruption the server is sent a cancellation.
        """
        assert self._client is not None, "the server has started"
        with anyio.fail_after(self.endpoint.timeout):
            result = await self._client.call_tool(tool, arguments)
            return result.model_dump(mode="json", by_alias=True, exclude_none=True)


def _text(error: BaseException) -> str:
    """Return the error's message in one line; for an exception group, that of the first error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ValidationError):
        return f"its answer is not one of the protocol: {describe_first_error(error)}"
    text = getattr(error, "message", "") or str(error)
    return " ".join(str(text).split()) or type(error).__name__
