"""All MCP servers of a run, for callers without an event loop.

One thread runs an event loop. It ends, with everything it started, when the servers are closed. A
failure of a server never ends the run: it becomes an observation or a note for people.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack
from typing import Final

from anyio.from_thread import BlockingPortal, start_blocking_portal

from resolver.config.templates import render
from resolver.events.actions import McpCall
from resolver.events.observations import ErrorObservation, McpResult
from resolver.mcp.connection import Connection, ConnectionLost, ToolRefused
from resolver.mcp.results import Keep, observation_of_result
from resolver.mcp.tool_listing import Clean, ToolListing, choose_tools, truncate_with_ellipsis
from resolver.mcp.transports import Endpoint
from resolver.models.base import JsonObject
from resolver.models.run import McpTool

START_SECONDS: Final = 60.0
"""Time limit for a server to start, initialize and list its tools. `npx` may download it first."""

MAX_STARTS: Final = 2
"""Number of times that a server is started: it is restarted once if it dies."""

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
        self._servers = {endpoint.name: _Server(endpoint, start_seconds) for endpoint in endpoints}
        self._clean = clean
        self._keep = keep
        self._note = note
        self._open = ExitStack()
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
            for server in self._servers.values():
                server.wait_for_tools()
            self._open = opened.pop_all()
        self._choose_tools()
        self._report_notes()
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
        try:
            return observation_of_result(server.call(action), self._clean, self._keep)
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
        for server in self._servers.values():
            server.interrupt()

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

    def __init__(self, endpoint: Endpoint, start_seconds: float) -> None:
        self.endpoint = endpoint
        self.listed: list[JsonObject] = []
        self.notes: list[str] = []
        self._start_seconds = start_seconds
        self._portal: BlockingPortal | None = None
        self._connection: Connection | None = None
        self._starts = 0
        self._noted: set[str] = set()
        self._end_reason = "it was not started"

    @property
    def is_gone(self) -> bool:
        """True if the server does not run and is not started again."""
        ended = self._connection is None or self._connection.is_over
        return ended and (self._starts >= MAX_STARTS or self._portal is None)

    def note(self, text: str) -> None:
        """Add a note. Repeated notes are dropped, and their number is limited to MAX_NOTES."""
        if text not in self._noted and len(self._noted) < MAX_NOTES:
            self._noted.add(text)
            self.notes.append(text)

    def begin(self, portal: BlockingPortal) -> None:
        """Begin to start the server for the first time."""
        self._portal = portal
        self._connect()

    def wait_for_tools(self) -> None:
        """Keep the server's list of tools once it has started. After a failure it stays away."""
        assert self._connection is not None, "the start has begun"
        try:
            self.listed = self._connection.tools()
        except ConnectionLost as error:
            self._starts, self._end_reason = MAX_STARTS, str(error)
            self.note(f"it can't be used in this run: {error}")

    def call(self, action: McpCall) -> JsonObject:
        """Return the result of the call; restart the server first if it has ended.

        Raises ConnectionLost, ToolRefused, TimeoutError and CancelledError.
        """
        if self._connection is None or self._connection.is_over:
            if self.is_gone:
                raise ConnectionLost(self._end_reason)
            self.close()
            self._connect().tools()
        assert self._connection is not None, "the server was started"
        try:
            return self._connection.call(action.name, action.arguments)
        except ConnectionLost as error:
            self._end_reason = str(error)
            self.note(f"it was lost during a call: {error}")
            raise

    def interrupt(self) -> None:
        if self._connection is not None:
            self._connection.interrupt()

    def begin_to_close(self) -> None:
        if self._connection is not None:
            self._connection.begin_to_close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _connect(self) -> Connection:
        assert self._portal is not None, "the start has begun"
        self._starts += 1
        self._connection = Connection(self._portal, self.endpoint, self._start_seconds, self.note)
        return self._connection
