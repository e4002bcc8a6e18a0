"""`GET /runs/RUN?key=...`: shows a run's log as a page, while the run is active and afterwards.

Anybody with the link may read it. The key is derived from the webhook's secret and the run's id, so
nothing is stored, and the link of one run does not reveal that of another. Where people can log in
with GitHub, those who can read the repository need no key.

`GET /runs/RUN/events` sends what is new as server-sent events; see `live_runs`.
"""

import hmac
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, ValidationError

from resolver.config.templates import render
from resolver.entrypoints.webhook.bounded_cache import BoundedCache
from resolver.entrypoints.webhook.github_oauth import Level
from resolver.entrypoints.webhook.live_runs import FOLLOW_SECONDS, LiveRuns
from resolver.entrypoints.webhook.log_window import LogWindow
from resolver.entrypoints.webhook.login_pages import PageLogin
from resolver.entrypoints.webhook.openapi import (
    PAGE_KEY,
    error_responses,
    page_response,
    requires,
)
from resolver.entrypoints.webhook.page_headers import page_headers
from resolver.entrypoints.webhook.page_links import page_key
from resolver.entrypoints.webhook.page_readers import SessionEnded
from resolver.entrypoints.webhook.page_sessions import PageSession, form_token, new_form_id
from resolver.entrypoints.webhook.run_notices import REFRESH_SECONDS, page_notices
from resolver.entrypoints.webhook.update_stream import UpdateStream
from resolver.errors import LogError, ResolverError
from resolver.models.run import PullRequest, Trigger
from resolver.runs.output import PATCH, REQUEST, StoredRequest, read_diff
from resolver.storage.run_folders import RunFolders, is_run_id
from resolver.storage.run_store import EVENTS, OUTCOME
from resolver.trace.html import LiveStream, RunControls, content_policy, render_html

MAX_RENDERING = 2
"""Pages that are rendered at a time. They have their own threads, so that deliveries are not
delayed."""

MAX_WAITING = 20
"""Maximum number of requests that wait for a page; further ones are answered with 503."""

MAX_CACHED_PAGES = 4
"""Number of rendered pages that are cached in memory."""

MAX_REQUEST_BYTES = 5_000_000
"""Maximum size in bytes of the stored request of a run."""

MAX_EVENT_ID = 10**12


@dataclass(frozen=True)
class _Stamp:
    """Identifies the state of a log: a page with the same stamp is up to date."""

    size: int
    changed: int
    ended: bool


@dataclass(frozen=True)
class RunReader:
    """Somebody who may read the page of a run. session: None for a reader who has the link only.
    level: what a person who has logged in may do in the repository."""

    session: PageSession | None = None
    level: Level = "none"


class Pages:
    """Renders and caches the pages of runs, and decides who may read them.

    login: the login with GitHub; None if there is none. follow_seconds: interval at which the log
    of a run in progress is read for its viewers.
    """

    def __init__(
        self,
        folders: RunFolders,
        secret: str,
        login: PageLogin | None = None,
        follow_seconds: float = FOLLOW_SECONDS,
    ) -> None:
        self._folders = folders
        self._secret = secret
        self.login = login
        # Without a login, only the operator's link opens the list.
        self._list_url = "" if login is None else f"{login.public_url}/"
        self.live = LiveRuns(folders, follow_seconds)
        self._cache = BoundedCache[str, tuple[_Stamp, str]](MAX_CACHED_PAGES)

    def is_page_key(self, run: str, key: str) -> bool:
        """Return True if `run` has the form of a run's id and `key` is the key to its page."""
        given_key, expected_key = key.encode(errors="replace"), page_key(self._secret, run).encode()
        return hmac.compare_digest(given_key, expected_key) and is_run_id(run)

    def reader(self, run: str, key: str, session: PageSession | None) -> RunReader | None:
        """Return who reads the page of a run; None if they may not.

        Raises SessionEnded, and ForgeError if GitHub does not answer.
        """
        has_valid_key = self.is_page_key(run, key)
        if session is None or self.login is None or not is_run_id(run):
            return RunReader() if has_valid_key else None
        try:
            trigger = self.trigger_of(run)
            level = self.login.access.level(session, trigger.repository) if trigger else "none"
        except (SessionEnded, ResolverError):
            if not has_valid_key:
                raise
            return RunReader()
        return RunReader(session, level) if has_valid_key or level != "none" else None

    def trigger_of(self, run: str) -> Trigger | None:
        """Return the trigger of a run; None if there is no such run or its request can't be
        read."""
        folder = self._folders.folder_of(run)
        if folder is None:
            return None
        try:
            with open(folder / REQUEST, "rb") as file:
                data = file.read(MAX_REQUEST_BYTES + 1)
            return StoredRequest.model_validate_json(data).trigger
        except (OSError, ValidationError):
            return None

    def page(self, run: str, reader: RunReader = RunReader(), sent: str = "") -> str | None:
        """Return the current page; None if there is no such run. run: must have passed
        `is_page_key`.

        sent: the command that the reader has just sent.
        """
        folder = self._folders.folder_of(run)
        if folder is None:
            return None
        try:
            stamp = self._stamp(folder)
        except OSError:
            return None
        sent = sent if sent in {"stop", "pause", "resume", "message"} else ""
        controls = None if stamp.ended else self._controls(run, reader)
        if controls is not None or sent:
            return self._render(folder / EVENTS, stamp, controls, sent)
        cached = self._cache.get(run)
        if cached is not None and cached[0] == stamp:
            return cached[1]
        html = self._render(folder / EVENTS, stamp)
        self._cache.put(run, (stamp, html))
        return html

    def _controls(self, run: str, reader: RunReader) -> RunControls | None:
        if reader.session is None or reader.level != "write" or self.login is None:
            return None
        action = f"{self.login.public_url}/runs/{run}/commands"
        token = form_token(reader.session, run)
        return RunControls(action, token, new_form_id(), reader.session.login)

    def _render(
        self, log: Path, stamp: _Stamp, controls: RunControls | None = None, sent: str = ""
    ) -> str:
        window = LogWindow(log)
        try:
            window.read()
        except (LogError, OSError):
            window = LogWindow(log)
        notices: Sequence[str] = page_notices(
            bool(window.events), stamp.ended, window.skipped, window.unread
        )
        if sent:
            notices = (*render("trace/sent.txt.j2", command=sent).splitlines(), *notices)
        if stamp.ended:
            diff = read_diff(log.parent / PATCH)
            return render_html(
                window.events,
                notices=notices,
                diff=diff,
                list_url=self._list_url,
                pull_request=_pull_request_in(log.parent / OUTCOME),
            )
        live = LiveStream(window.last_id, window.start)
        return render_html(
            window.events,
            REFRESH_SECONDS,
            notices,
            live=live,
            controls=controls,
            list_url=self._list_url,
        )

    @staticmethod
    def _stamp(folder: Path) -> _Stamp:
        ended = (folder / OUTCOME).exists()
        try:
            log = (folder / EVENTS).lstat()
        except FileNotFoundError:
            return _Stamp(0, 0, ended)
        return _Stamp(log.st_size, log.st_mtime_ns, ended)


class _Publication(BaseModel):
    """The part of outcome.json that says what was published."""

    pull_request: PullRequest | None = None


def _pull_request_in(outcome: Path) -> PullRequest | None:
    """Return the pull request that outcome.json names; None if there is none on the web."""
    try:
        found = _Publication.model_validate_json(outcome.read_bytes()).pull_request
    except (OSError, ValidationError):
        return None
    is_link = found is not None and re.match(r"https?://", found.url or "")
    return found if is_link else None


FindReader = Callable[[Request, str, str], Awaitable["RunReader | Response"]]
"""Takes a request, a run and a key. Returns who reads the page, or where they log in."""


async def _find_reader(
    pages: Pages,
    limiter: CapacityLimiter,
    headers: Mapping[str, str],
    request: Request,
    run: str,
    key: str,
) -> RunReader | Response:
    """Return who reads the page, or where they log in. Raises HTTPException."""
    login = pages.login
    session = login.session(request) if login else None
    try:
        reader = await run_sync(
            pages.reader, run, key, session, limiter=login.limiter if login else limiter
        )
    except SessionEnded:
        reader, session = None, None
    except ResolverError:
        raise HTTPException(503, "GitHub can't be asked now; try again later") from None
    if reader is not None:
        return reader
    if login is not None and session is None and is_run_id(run):
        return RedirectResponse(login.login_url(f"/runs/{run}"), 303, headers)
    raise HTTPException(404)


def add_pages(app: FastAPI, pages: Pages) -> None:
    """Add the routes to `app`. A wrong key, a missing key and an unknown run get the same answer,
    which is the login where there is one."""
    limiter = CapacityLimiter(MAX_RENDERING)
    headers = page_headers(content_policy(is_live=True))
    waiting = 0

    async def find_reader(request: Request, run: str, key: str) -> RunReader | Response:
        return await _find_reader(pages, limiter, headers, request, run, key)

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
        request: Request,
        run: str,
        key: Annotated[str, Query(include_in_schema=False)] = "",
        sent: Annotated[str, Query(include_in_schema=False)] = "",
    ) -> Response:
        """The steps of a run so far, as a page."""
        nonlocal waiting
        if pages.login is None and not pages.is_page_key(run, key):
            raise HTTPException(404)
        if waiting >= MAX_WAITING:
            raise HTTPException(503, "too many requests", {"Retry-After": str(REFRESH_SECONDS)})
        waiting += 1
        try:
            reader = await find_reader(request, run, key)
            if isinstance(reader, Response):
                return reader
            html = await run_sync(pages.page, run, reader, sent, limiter=limiter)
        finally:
            waiting -= 1
        if html is None:
            raise HTTPException(404)
        return HTMLResponse(html, headers=headers)

    _add_updates(app, pages, find_reader, headers)


def _add_updates(
    app: FastAPI, pages: Pages, find_reader: FindReader, headers: Mapping[str, str]
) -> None:
    @app.get("/runs/{run}/events", include_in_schema=False)
    async def events(
        request: Request, run: str, key: str = "", after: str = "", start: str = ""
    ) -> Response:
        """The changes of a run's page as server-sent events."""
        if pages.login is None and not pages.is_page_key(run, key):
            raise HTTPException(404)
        reader = await find_reader(request, run, key)
        if isinstance(reader, Response):
            raise HTTPException(404)
        # The browser repeats the address when it connects again, and adds what it got since.
        ids = (parse_number(request.headers.get("last-event-id", "")), parse_number(after), -1)
        last = next(id for id in ids if id is not None)
        return UpdateStream(pages.live, run, last, parse_number(start) or 0, headers)


def parse_number(text: str) -> int | None:
    """Return the number of an event or a position; None if the text is none."""
    is_number = text.isascii() and text.isdigit() and len(text) <= 12
    return min(int(text), MAX_EVENT_ID) if is_number else None
