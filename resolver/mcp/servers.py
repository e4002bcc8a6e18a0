"""All MCP servers of a run, for callers without an event loop.

One thread runs the loop. It ends, with everything it started, when the servers are closed. A
failure of a server never ends the run: it becomes an observation or a note for people.
"""

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

from resolver.config.templates import render
from resolver.events.actions import McpCall
from resolver.events.observations import ErrorObservation, McpResult
from resolver.mcp.connection import Connection, ConnectionLost, ToolRefused, text_of_error
from resolver.mcp.results import Keep, observation_of_result
from resolver.mcp.tool_listing import Clean, ToolListing, choose_tools, truncate_with_ellipsis
from resolver.mcp.transports import Endpoint
from resolver.models.base import JsonObject
from resolver.models.run import McpTool

T = TypeVar("T")

START_SECONDS: Final = 60.0
"""Time limit for a server to start, initialize and list its tools. `npx` may download it first."""

MAX_STARTS: Final = 2
"""Number of times that a server is started: it is restarted once if it dies."""

THREADS_PER_SERVER: Final = 4
"""Threads per server: one each to start it, write to it, end it, and wait for its reader."""

JOIN_SECONDS: Final = 30.0
MAX_NOTE_CHARACTERS: Final = 400
MAX_NAMED_TOOLS: Final = 12
MAX_NOTES: Final = 10

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
        self._servers = {endpoint.name: _Server(endpoint) for endpoint in endpoints}
        self._clean = clean
        self._keep = keep
        self._note = note
        self._start_seconds = start_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._current_call: Future[Any] | None = None
        self._starting = threading.Lock()
        self.tools: tuple[McpTool, ...] = ()
        """The tools that can be offered to a model."""

    def __enter__(self) -> "McpServers":
        if not self._servers:
            return self
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._loop = asyncio.new_event_loop()
        # Enough threads for all servers: a thread of one server must not have to wait for one of
        # another server, which may block forever.
        self._loop.set_default_executor(ThreadPoolExecutor(THREADS_PER_SERVER * len(self._servers)))
        self._thread = threading.Thread(target=self._loop.run_forever, name="mcp", daemon=True)
        self._thread.start()
        try:
            self._run(self._start_all())
        except BaseException:
            self.close()
            raise
        self._choose_tools()
        self._report_notes()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End all servers and the thread. May be called more than once."""
        loop, self._loop = self._loop, None
        if loop is None or self._thread is None:
            return
        ending = asyncio.run_coroutine_threadsafe(self._end_all(), loop)
        with suppress(TimeoutError, CancelledError):
            ending.result(JOIN_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(JOIN_SECONDS)
        if not self._thread.is_alive():
            loop.close()

    def call(self, action: McpCall) -> McpResult | ErrorObservation:
        """Execute the action and return its observation.

        Every failure becomes an ErrorObservation.
        """
        server = self._servers.get(action.server)
        if server is None or self._loop is None:
            return self._failed(action, "gone", "there is no server of that name in this run")
        if not server.endpoint.allows(action.name):
            return self._failed(action, "refused", "this tool may not be used here")
        try:
            return observation_of_result(self._run(server.call(action)), self._clean, self._keep)
        except TimeoutError:
            seconds = f"{server.endpoint.timeout:g} seconds"
            return self._failed(action, "timeout", f"no activity for {seconds}")
        except CancelledError:
            return self._failed(action, "interrupted", "somebody has interrupted it")
        except ToolRefused as error:
            return self._failed(action, "error", str(error))
        except ConnectionLost as error:
            return self._failed(action, "gone" if server.is_gone else "lost", str(error))
        finally:
            self._report_notes()

    def interrupt(self) -> None:
        """End the present call, if there is one. May be called from any thread."""
        # The loop may begin a call before the thread that starts it has stored it.
        with self._starting:
            current_call = self._current_call
        if current_call is not None:
            current_call.cancel()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine on the loop and return its result. Raises what it raises."""
        assert self._loop is not None, "the context was entered"
        with self._starting:
            self._current_call = future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            self._current_call = None
            future.cancel()

    def _failed(self, action: McpCall, kind: str, reason: str) -> ErrorObservation:
        content = render(
            "agent/mcp_failed.md.j2",
            server=truncate_with_ellipsis(self._clean(action.server), MAX_NOTE_CHARACTERS),
            tool=truncate_with_ellipsis(self._clean(action.name), MAX_NOTE_CHARACTERS),
            how=kind,
            why=truncate_with_ellipsis(self._clean(reason), 4 * MAX_NOTE_CHARACTERS),
        )
        return ErrorObservation(content=content.strip(), code="mcp")

    async def _start_all(self) -> None:
        starts = (server.start(self._start_seconds) for server in self._servers.values())
        await asyncio.gather(*starts)

    async def _end_all(self) -> None:
        await asyncio.gather(*(server.end() for server in self._servers.values()))
        await asyncio.get_running_loop().shutdown_default_executor()

    def _choose_tools(self) -> None:
        """Choose the tools to offer from those of the started servers; note those left out."""
        choice = choose_tools(
            (
                ToolListing(name, server.listed, server.endpoint.allows)
                for name, server in self._servers.items()
            ),
            self._clean,
        )
        self.tools = choice.tools
        for name, names in choice.left_out.items():
            named = ", ".join(names[:MAX_NAMED_TOOLS])
            further = (
                f" and {len(names) - MAX_NAMED_TOOLS} more" if len(names) > MAX_NAMED_TOOLS else ""
            )
            self._servers[name].note(f"it has tools that are not offered: {named}{further}")
        counts = Counter(tool.server for tool in choice.tools)
        for name, server in self._servers.items():
            if not server.is_gone and not counts[name] and name not in choice.left_out:
                server.note("it has no tool that may be used")

    def _report_notes(self) -> None:
        for name, server in self._servers.items():
            while server.notes:
                note = truncate_with_ellipsis(self._clean(server.notes.pop(0)), MAX_NOTE_CHARACTERS)
                self._note(f"MCP server {name}: {note}")


class _Server:
    """One server of the run, with its successive connections.

    `notes` wait for the caller's thread.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.listed: list[JsonObject] = []
        self.notes: list[str] = []
        self._connection: Connection | None = None
        self._starts = 0
        self._start_seconds = START_SECONDS
        self._noted: set[str] = set()
        self._end_reason = "it was not started"

    @property
    def is_gone(self) -> bool:
        """True if the server does not run and is not started again."""
        ended = self._connection is None or self._connection.is_over
        return ended and self._starts >= MAX_STARTS

    def note(self, text: str) -> None:
        """Add a note. Repeated notes are dropped, and their number is limited to MAX_NOTES."""
        if text not in self._noted and len(self._noted) < MAX_NOTES:
            self._noted.add(text)
            self.notes.append(text)

    async def start(self, seconds: float) -> None:
        """Start the server for the first time and keep its list of tools.

        After a failure it stays away.
        """
        self._start_seconds = seconds
        try:
            self.listed = await self._connect()
        except ConnectionLost as error:
            self._starts = MAX_STARTS
            self.note(f"it can't be used in this run: {error}")

    async def call(self, action: McpCall) -> JsonObject:
        """Return the result of the call; restart the server first if it has ended.

        Raises ConnectionLost, ToolRefused and TimeoutError.
        """
        if self._connection is None or self._connection.is_over:
            if self.is_gone:
                raise ConnectionLost(self._end_reason)
            await self._connect()
        assert self._connection is not None, "the server was started"
        try:
            return await self._connection.call(action.name, action.arguments)
        except ConnectionLost as error:
            self._end_reason = str(error)
            self.note(f"it was lost during a call: {error}")
            raise

    async def end(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def _connect(self) -> list[JsonObject]:
        """Start the server and return its tools. Raises ConnectionLost."""
        await self.end()
        self._starts += 1
        self._connection = Connection(self.endpoint, self.note)
        try:
            return await self._connection.tools(self._start_seconds)
        except TimeoutError:
            self._end_reason = f"it did not answer in {self._start_seconds:g} seconds"
        except (ConnectionLost, ToolRefused) as error:
            self._end_reason = text_of_error(error)
        raise ConnectionLost(self._end_reason)
