"""All MCP servers of a run, for a caller without an event loop: one thread has the loop, and is
gone with everything it started when the servers are closed.

Nothing that a server does ends the run: it becomes an observation, or a note for a person.
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
from resolver.mcp.endpoint import Endpoint
from resolver.mcp.results import Keep, observation_of_result
from resolver.mcp.schemas import Clean, shorten_schema
from resolver.mcp.tool_listing import ToolListing, offered
from resolver.models.run import JsonObject, McpTool

T = TypeVar("T")

START_SECONDS: Final = 60.0
"""What a server has to start, be greeted and list its tools. `npx` may download it first."""

MOST_STARTS: Final = 2
"""How often a server is started: when it dies, once more."""

THREADS: Final = 4
"""Of one server at once: to start it, write to it, end it, and wait for its reader."""

JOIN_SECONDS: Final = 30.0
MAX_WORDS: Final = 400
MOST_NAMED: Final = 12
MOST_NOTES: Final = 10

_LOGGERS = ("mcp", "client", "httpx2")
"""They write what servers send into the log; what matters of it comes to us as an exception."""


class McpServers:
    """Use as a context manager. Servers that don't start are left out, and said so in `notes`.

    clean: takes out of every text of a server what nobody sees and what nobody may know.
    keep: keeps a long result. note: told on the caller's thread what a person should know, before
    a call's observation is given and at the start.
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
        self._asking: Future[Any] | None = None
        self.tools: tuple[McpTool, ...] = ()
        """What a model can be offered."""

    def __enter__(self) -> "McpServers":
        if not self._servers:
            return self
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._loop = asyncio.new_event_loop()
        # No server's thread may have to wait for another's, which may wait for ever.
        self._loop.set_default_executor(ThreadPoolExecutor(THREADS * len(self._servers)))
        self._thread = threading.Thread(target=self._loop.run_forever, name="mcp", daemon=True)
        self._thread.start()
        try:
            self._run(self._start_all())
        except BaseException:
            self.close()
            raise
        self._offer()
        self._tell()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End all servers and the thread. May be called again."""
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
        """Do the action. Whatever goes wrong is the observation."""
        server = self._servers.get(action.server)
        if server is None or self._loop is None:
            return self._failed(action, "gone", "there is no server of that name in this run")
        if not server.endpoint.allows(action.name):
            return self._failed(action, "refused", "this tool may not be used here")
        try:
            return observation_of_result(self._run(server.call(action)), self._clean, self._keep)
        except TimeoutError:
            seconds = f"{server.endpoint.timeout:g} seconds"
            return self._failed(action, "timeout", f"no sign of life in {seconds}")
        except CancelledError:
            return self._failed(action, "interrupted", "somebody has interrupted it")
        except ToolRefused as error:
            return self._failed(action, "error", str(error))
        except ConnectionLost as error:
            return self._failed(action, "gone" if server.is_gone else "lost", str(error))
        finally:
            self._tell()

    def interrupt(self) -> None:
        """End the call that is under way, if any. From any thread."""
        asking = self._asking
        if asking is not None:
            asking.cancel()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """On the loop, and wait. Raises what it raises."""
        assert self._loop is not None, "it was entered"
        self._asking = future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            self._asking = None
            future.cancel()

    def _failed(self, action: McpCall, how: str, why: str) -> ErrorObservation:
        words = render(
            "agent/mcp_failed.md.j2",
            server=shorten_schema(self._clean(action.server), MAX_WORDS),
            tool=shorten_schema(self._clean(action.name), MAX_WORDS),
            how=how,
            why=shorten_schema(self._clean(why), 4 * MAX_WORDS),
        )
        return ErrorObservation(content=words.strip(), code="mcp")

    async def _start_all(self) -> None:
        starts = (server.start(self._start_seconds) for server in self._servers.values())
        await asyncio.gather(*starts)

    async def _end_all(self) -> None:
        await asyncio.gather(*(server.end() for server in self._servers.values()))
        await asyncio.get_running_loop().shutdown_default_executor()

    def _offer(self) -> None:
        """The tools of those that have started."""
        found = offered(
            (
                ToolListing(name, server.listed, server.endpoint.allows)
                for name, server in self._servers.items()
            ),
            self._clean,
        )
        self.tools = found.tools
        for name, names in found.left_out.items():
            some = ", ".join(names[:MOST_NAMED])
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            self._servers[name].note(f"these tools of it are not offered: {some}{more}")
        counts = Counter(tool.server for tool in found.tools)
        for name, server in self._servers.items():
            if not server.is_gone and not counts[name] and name not in found.left_out:
                server.note("it has no tool that may be used")

    def _tell(self) -> None:
        for name, server in self._servers.items():
            while server.notes:
                words = shorten_schema(self._clean(server.notes.pop(0)), MAX_WORDS)
                self._note(f"MCP server {name}: {words}")


class _Server:
    """One server of the run, through its lives. `notes` are left for the caller to tell."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.listed: list[JsonObject] = []
        self.notes: list[str] = []
        self._connection: Connection | None = None
        self._starts = 0
        self._seconds = START_SECONDS
        self._told: set[str] = set()
        self._why = "it was not started"

    @property
    def is_gone(self) -> bool:
        """It does not run, and is not started any more."""
        ended = self._connection is None or self._connection.is_over
        return ended and self._starts >= MOST_STARTS

    def note(self, words: str) -> None:
        """Leave a note; the same is told once, and no server has much to say."""
        if words not in self._told and len(self._told) < MOST_NOTES:
            self._told.add(words)
            self.notes.append(words)

    async def start(self, seconds: float) -> None:
        """Start it for the first time; what it lists is kept. One that fails stays away."""
        self._seconds = seconds
        try:
            self.listed = await self._begin()
        except ConnectionLost as error:
            self._starts = MOST_STARTS
            self.note(f"it can't be used in this run: {error}")

    async def call(self, action: McpCall) -> JsonObject:
        """The result. Raises ConnectionLost, Refused and TimeoutError."""
        if self._connection is None or self._connection.is_over:
            if self.is_gone:
                raise ConnectionLost(self._why)
            await self._begin()
        assert self._connection is not None, "it has begun"
        try:
            return await self._connection.call(action.name, action.arguments)
        except ConnectionLost as error:
            self._why = str(error)
            self.note(f"it was lost during a call: {error}")
            raise

    async def end(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def _begin(self) -> list[JsonObject]:
        """Its tools. Raises ConnectionLost."""
        await self.end()
        self._starts += 1
        self._connection = Connection(self.endpoint, self.note)
        try:
            return await self._connection.tools(self._seconds)
        except TimeoutError:
            self._why = f"it did not answer in {self._seconds:g} seconds"
        except (ConnectionLost, ToolRefused) as error:
            self._why = text_of_error(error)
        raise ConnectionLost(self._why)
