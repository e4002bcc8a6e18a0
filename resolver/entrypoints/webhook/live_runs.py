"""Follows the logs of runs in progress for the people who look at their pages.

One follower reads the log of a run once a second, whatever the number of its viewers, and renders
what is new once for all of them. Each viewer has a bounded queue. A viewer that does not keep up is
disconnected, and its browser connects again with the id of the last event that it received.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi.sse import format_sse_event

from resolver.entrypoints.webhook.log_window import LogWindow
from resolver.entrypoints.webhook.run_notices import page_notices
from resolver.errors import LogError
from resolver.events.log import Event
from resolver.storage.run_folders import RunFolders
from resolver.storage.run_store import EVENTS, OUTCOME
from resolver.trace.html import render_update
from resolver.trace.steps import build_view

logger = logging.getLogger("resolver.entrypoints.webhook")

FOLLOW_SECONDS = 1.0
"""Interval in seconds at which the log of a followed run is read."""

MAX_QUEUED_UPDATES = 8
"""Maximum number of updates that wait for one viewer; a viewer with more is cut."""

MAX_VIEWERS = 1000
"""Maximum number of viewers of all runs. Further ones are answered with 503."""

VIEWERS_AT_ONCE = 3
"""Number of viewers that are sent an update before the others wait for `TURN_SECONDS`."""

TURN_SECONDS = 0.002
"""Pause in which the event loop serves deliveries. An update reaches the last of `MAX_VIEWERS` two
thirds of a second after the first."""

MAX_FOLLOWED_RUNS = 100
"""Maximum number of runs that are followed at a time."""

RELOAD = format_sse_event(event="reload", data_str="")
"""Tells a browser to load the page again: the run has ended, or the shown part has moved."""


class TooManyViewersError(Exception):
    """There is no room for another viewer."""


class Viewer:
    """The updates that wait for one viewer of a run."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.cut = asyncio.Event()
        """Set when the viewer is to be disconnected, because it has not kept up."""

    def put(self, update: bytes) -> None:
        """Queue an update. If too many wait already, drop all and cut the viewer."""
        if self.cut.is_set():
            return
        if self._queue.qsize() < MAX_QUEUED_UPDATES:
            self._queue.put_nowait(update)
            return
        while not self._queue.empty():
            self._queue.get_nowait()
        self.cut.set()
        self.end()

    def end(self) -> None:
        """Let the stream end after the updates that wait."""
        self._queue.put_nowait(None)

    async def take(self) -> bytes | None:
        """Return the next update as soon as there is one; None at the end of the stream."""
        return await self._queue.get()


@dataclass(frozen=True)
class _LogState:
    """What was read of a log. Replaced, never changed."""

    events: tuple[Event, ...] = ()
    start: int = 0
    version: int = 0
    skipped: int = 0
    unread: int = 0
    has_ended: bool = False

    @property
    def last_id(self) -> int:
        return self.events[-1].id if self.events else -1


class _Follower:
    """Follows one run. Used by the event loop only; its files are read in a thread."""

    def __init__(self, run: str, folders: RunFolders, limiter: CapacityLimiter) -> None:
        self._run, self._folders, self._limiter = run, folders, limiter
        self._window: LogWindow | None = None
        self._lock = asyncio.Lock()
        self._rendered: dict[int, bytes] = {}
        self.state = _LogState()
        self.viewers: set[Viewer] = set()
        self.users = 0
        """Number of viewers, with those that are joining."""

    async def join(self, viewer: Viewer, after: int, start: int) -> None:
        """Send the viewer what it does not have yet, and everything from now on.

        after: id of the last event that it has. start: position of the part that its page shows.
        """
        async with self._lock:
            if after > self.state.last_id or start != self.state.start or self._window is None:
                await self._refresh()
            if self.state.has_ended or start != self.state.start:
                viewer.put(RELOAD)
                viewer.end()
                return
            if after < self.state.last_id:
                viewer.put(await self._update_since(after))
            self.viewers.add(viewer)

    async def tick(self) -> None:
        """Read the log and send what is new to all viewers."""
        async with self._lock:
            earlier = self.state
            if not await self._refresh():
                return
            if self.state.has_ended or self.state.version != earlier.version:
                await self._send(RELOAD, is_last=True)
                return
            await self._send(await self._update_since(earlier.last_id))

    async def _send(self, update: bytes, is_last: bool = False) -> None:
        """Send an update to all viewers."""
        for number, viewer in enumerate(tuple(self.viewers)):
            if number % VIEWERS_AT_ONCE == 0:
                await asyncio.sleep(TURN_SECONDS)
            viewer.put(update)
            if is_last:
                viewer.end()
                self.viewers.discard(viewer)

    async def _refresh(self) -> bool:
        """Read the log. Return True if anything has changed."""
        state = await run_sync(self._read, limiter=self._limiter)
        if state is self.state:
            return False
        self.state, self._rendered = state, {}
        return True

    def _read(self) -> _LogState:
        folder = self._folders.folder_of(self._run)
        if folder is None:
            return self.state
        # Looked for first: everything that a run logs is there before its outcome.
        has_ended = (folder / OUTCOME).exists()
        self._window = window = self._window or LogWindow(folder / EVENTS)
        try:
            has_changed = window.read()
        except (LogError, OSError) as error:
            logger.debug("the log of run %s can't be read now: %s", self._run, error)
            return self.state
        if not has_changed and has_ended == self.state.has_ended:
            return self.state
        return _LogState(
            tuple(window.events),
            window.start,
            window.version,
            window.skipped,
            window.unread,
            has_ended,
        )

    async def _update_since(self, after: int) -> bytes:
        """Return the update from event `after` to the newest. It is rendered once."""
        if after not in self._rendered:
            render = partial(_render_update, self.state, after)
            self._rendered[after] = await run_sync(render, limiter=self._limiter)
        return self._rendered[after]


def _render_update(state: _LogState, after: int) -> bytes:
    earlier = build_view(event for event in state.events if event.id <= after)
    notices = page_notices(bool(state.events), False, state.skipped, state.unread)
    html = render_update(earlier, build_view(state.events), notices)
    return format_sse_event(event="update", id=str(state.last_id), data_str=html)


class LiveRuns:
    """The followers of all runs that somebody looks at. Used by one event loop.

    seconds: interval between two reads of a log. max_viewers: of all runs.
    """

    def __init__(
        self,
        folders: RunFolders,
        seconds: float = FOLLOW_SECONDS,
        max_viewers: int = MAX_VIEWERS,
    ) -> None:
        self._folders, self._seconds, self._max_viewers = folders, seconds, max_viewers
        self._limiter = CapacityLimiter(1)
        self._followers: dict[str, _Follower] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._viewers = 0

    @property
    def watched(self) -> int:
        """The number of viewers."""
        return self._viewers

    @property
    def followed(self) -> int:
        """The number of runs that are followed."""
        return len(self._followers)

    @asynccontextmanager
    async def watch(self, run: str, after: int, start: int) -> AsyncIterator[Viewer]:
        """Return a viewer of a run, until the end of the block. Raises TooManyViewersError.

        after: id of the last event that the viewer has. start: position of the shown part.
        """
        viewer, follower = Viewer(), self._enter(run)
        try:
            await follower.join(viewer, after, start)
            yield viewer
        finally:
            follower.viewers.discard(viewer)
            follower.users -= 1
            self._viewers -= 1

    def _enter(self, run: str) -> _Follower:
        follower = self._followers.get(run)
        is_full = follower is None and len(self._followers) >= MAX_FOLLOWED_RUNS
        if is_full or self._viewers >= self._max_viewers:
            raise TooManyViewersError
        self._viewers += 1
        if follower is None:
            follower = self._followers[run] = _Follower(run, self._folders, self._limiter)
            task = asyncio.create_task(self._follow(run, follower))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        follower.users += 1
        return follower

    async def _follow(self, run: str, follower: _Follower) -> None:
        """Read the log at intervals, until an interval has passed in which nobody looked."""
        now = asyncio.get_running_loop().time
        due = now() + self._seconds
        try:
            while True:
                await asyncio.sleep(max(0.0, due - now()))
                due = now() + self._seconds
                if not follower.users:
                    return
                await follower.tick()
        finally:
            del self._followers[run]
            # They connect again, if the follower has failed.
            for viewer in follower.viewers:
                viewer.end()
