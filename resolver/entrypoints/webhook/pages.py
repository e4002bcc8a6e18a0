"""`GET /runs/RUN?key=...`: shows a run's log as a page, while the run is active and afterwards.

Anybody with the link may read it. The key is derived from the webhook's secret and the run's id, so
nothing is stored, and the link of one run does not reveal that of another.
"""

import hmac
import re
import stat
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Annotated, BinaryIO

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import FastAPI, HTTPException, Query, Response
from fastapi.responses import HTMLResponse

from resolver.config.templates import render
from resolver.entrypoints.webhook.openapi import (
    PAGE_KEY,
    error_responses,
    page_response,
    requires,
)
from resolver.entrypoints.webhook.page_links import page_key
from resolver.errors import LogError
from resolver.events.log import Event, open_log_file, parse_line
from resolver.runs.output import EVENTS, OUTCOME, PATCH, read_diff
from resolver.trace.html import content_policy, render_html

REFRESH_SECONDS = 10
"""Interval in seconds at which a browser reloads the page of an active run."""

MAX_SHOWN_BYTES = 1_000_000
"""Maximum number of bytes of a log that are shown: its end, in addition to its first event."""

MAX_FIRST_EVENT_BYTES = 500_000
"""Maximum size in bytes of the first event of a long log; a larger one is left out."""

MAX_RENDERING = 2
"""Pages that are rendered at a time. They have their own threads, so that deliveries are not
delayed."""

MAX_WAITING = 20
"""Maximum number of requests that wait for a page; further ones are answered with 503."""

MAX_CACHED_PAGES = 4
"""Number of rendered pages that are cached in memory."""

_RUN = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")


@dataclass(frozen=True)
class _Stamp:
    """Identifies the state of a log: a page with the same stamp is up to date."""

    size: int
    changed: int
    ended: bool


class Pages:
    """Renders and caches the pages of the runs whose folders are below `folder`."""

    def __init__(self, folder: Path, secret: str) -> None:
        self._folder = folder
        self._secret = secret
        self._cache: OrderedDict[str, tuple[_Stamp, str]] = OrderedDict()
        self._lock = Lock()

    def opens(self, run: str, key: str) -> bool:
        """Return True if `run` has the form of a run's id and `key` is the key to its page."""
        given_key, expected_key = key.encode(errors="replace"), page_key(self._secret, run).encode()
        return hmac.compare_digest(given_key, expected_key) and _RUN.fullmatch(run) is not None

    def page(self, run: str) -> str | None:
        """Return the current page; None if there is no such run. run: must have passed `opens`."""
        folder = self._folder / run
        try:
            if not stat.S_ISDIR(folder.lstat().st_mode):
                return None
            stamp = self._stamp(folder)
        except OSError:
            return None
        with self._lock:
            cached = self._cache.get(run)
        if cached is not None and cached[0] == stamp:
            return cached[1]
        html = _render(folder / EVENTS, stamp)
        with self._lock:
            self._cache[run] = (stamp, html)
            self._cache.move_to_end(run)
            while len(self._cache) > MAX_CACHED_PAGES:
                self._cache.popitem(last=False)
        return html

    @staticmethod
    def _stamp(folder: Path) -> _Stamp:
        ended = (folder / OUTCOME).exists()
        try:
            log = (folder / EVENTS).lstat()
        except FileNotFoundError:
            return _Stamp(0, 0, ended)
        return _Stamp(log.st_size, log.st_mtime_ns, ended)


def add_pages(app: FastAPI, pages: Pages) -> None:
    """Add the route to `app`. A wrong key, a missing key and an unknown run get the same answer."""
    limiter = CapacityLimiter(MAX_RENDERING)
    headers = {
        "Content-Security-Policy": f"{content_policy()}; frame-ancestors 'none'",
        "X-Robots-Tag": "noindex, nofollow",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    waiting = 0

    @app.get(
        "/runs/{run}",
        operation_id="show_run",
        summary="Show the log of a run",
        response_class=Response,
        responses=page_response(headers)
        | error_responses(
            s404="There is no such run, or the key is not the run's.",
            s503="Too many pages are requested; `Retry-After` says when to ask again.",
        ),
        openapi_extra=requires(PAGE_KEY),
    )
    async def page(
        run: str, key: Annotated[str, Query(include_in_schema=False)] = ""
    ) -> HTMLResponse:
        """The steps of a run so far, as a page."""
        nonlocal waiting
        if not pages.opens(run, key):
            raise HTTPException(404)
        if waiting >= MAX_WAITING:
            raise HTTPException(503, "too many requests", {"Retry-After": str(REFRESH_SECONDS)})
        waiting += 1
        try:
            html = await run_sync(pages.page, run, limiter=limiter)
        finally:
            waiting -= 1
        if html is None:
            raise HTTPException(404)
        return HTMLResponse(html, headers=headers)


def _render(log: Path, stamp: _Stamp) -> str:
    lines = _Lines()
    try:
        events = list(lines.events(log)) if stamp.size else []
    except (LogError, OSError):
        events = []
    notices = render(
        "trace/live.txt.j2",
        at_work=not stamp.ended,
        events=bool(events),
        seconds=REFRESH_SECONDS,
        skipped=f"{lines.skipped / 1e6:,.1f} MB" if lines.skipped else "",
        unread=lines.unread,
    )
    refresh = 0 if stamp.ended else REFRESH_SECONDS
    diff = read_diff(log.parent / PATCH) if stamp.ended else ""
    return render_html(events, refresh, [line for line in notices.splitlines() if line], diff)


class _Lines:
    """Reads the part of a log that is shown.

    skipped: number of bytes that are left out. unread: number of lines that can't be parsed.
    """

    def __init__(self) -> None:
        self.skipped = 0
        self.unread = 0

    def events(self, log: Path) -> Iterator[Event]:
        """Yield the events. Raises LogError if the file can't be read as a log, and OSError."""
        with open_log_file(log) as file:
            end = file.seek(0, 2)
            file.seek(0)
            if end > MAX_SHOWN_BYTES:
                first = file.readline(MAX_FIRST_EVENT_BYTES)
                yield from self._parse_lines([first])
                first_end = len(first) if first.endswith(b"\n") else 0
                file.seek(max(first_end, end - MAX_SHOWN_BYTES) - 1)
                # skip the rest of the line that is cut here
                file.readline(MAX_SHOWN_BYTES)
                self.skipped = file.tell() - first_end
            yield from self._parse_lines(_lines_before(file, end))

    def _parse_lines(self, lines: Iterable[bytes]) -> Iterator[Event]:
        for line in lines:
            if not line.endswith(b"\n"):
                continue  # the line is being written
            try:
                yield parse_line(line)
            except LogError:
                self.unread += 1


def _lines_before(file: BinaryIO, end: int) -> Iterator[bytes]:
    """Yield the lines that begin before `end`. What is appended meanwhile is shown next time."""
    while (remaining := end - file.tell()) > 0 and (line := file.readline(remaining)):
        yield line
