"""`GET /runs/RUN?key=...`: shows a run's log as a page, while the run is active and afterwards.

Anybody with the link may read it. The key is derived from the webhook's secret and the run's id, so
nothing is stored, and the link of one run does not reveal that of another. Where people can log in
with GitHub, those who can read the repository need no key, and those who can write to it can stop,
pause and resume the run and send it messages (`POST /runs/RUN/commands`).

`GET /runs/RUN/events` sends what is new as server-sent events, each with the id of the newest log
event that it shows: a browser that connects again goes on after the last one that it has.
"""

import asyncio
import hmac
import logging
import re
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, ValidationError
from sse_starlette import EventSourceResponse, ServerSentEvent

from resolver.config.templates import render
from resolver.entrypoints.webhook.login import Level, PageLogin, Person, SessionEnded
from resolver.entrypoints.webhook.page_links import page_key
from resolver.entrypoints.webhook.page_responses import page_headers, site_headers
from resolver.errors import LogError, ResolverError
from resolver.events.log import Event, parse_line
from resolver.events.stream import Clock, utc_now
from resolver.models.run import Actor, Command, PullRequest, Trigger, TriggerKind
from resolver.runs.output import MAX_SHOWN_DIFF_BYTES, StoredRequest
from resolver.storage.earlier_runs import OUTCOME, PATCH, REQUEST
from resolver.storage.run_store import RunStore, is_run_id
from resolver.trace.html import (
    LiveStream,
    RunControls,
    content_policy,
    render_html,
    render_update,
)
from resolver.trace.steps import build_view

logger = logging.getLogger("resolver.entrypoints.webhook")

MAX_RENDERING = 2
"""Pages and updates that are rendered at a time. They have their own threads, so that deliveries
are not delayed."""

MAX_VIEWERS = 100
"""Maximum number of people who follow runs in progress. Further ones are answered with 503."""

MAX_LOG_BYTES = 20_000_000
"""Number of bytes of a log that its page shows. Runs are bounded, so that hardly any has more."""

REFRESH_SECONDS = 10
"""Interval in seconds at which a browser without JavaScript reloads the page of an active run."""

FOLLOW_SECONDS = 1.0
"""Interval in seconds at which the log of a followed run is read."""

SEND_SECONDS = 30.0
"""Time in seconds in which a viewer has to take an update; then its connection is closed."""

MAX_FORM_BYTES = 32_000
MAX_MESSAGE_LENGTH = 4_000

COMMANDS = {
    "stop": Command.STOP,
    "pause": Command.PAUSE,
    "resume": Command.RESUME,
    "message": Command.CONTINUE,
}
"""The commands of the form. A message goes to the run in progress, as that of `continue` does."""

_REQUEST = re.compile(r"[A-Za-z0-9_-]{20,40}", re.ASCII)

RELOAD = ServerSentEvent(event="reload", data="")
"""Tells a browser to load the page again, because the run has ended."""

Enqueue = Callable[[str, Trigger], None]
"""Stores a request under an id, once. Raises ResolverError."""


@dataclass(frozen=True)
class RunReader:
    """Somebody who may read the page of a run. person: None for a reader who has the link only.
    level: what the person may do in the repository."""

    person: Person | None = None
    level: Level = "none"


@dataclass(frozen=True)
class RunPages:
    """Renders the pages of runs, and decides who may read them.

    secret: that of the webhook. login: the login with GitHub; None if there is none.
    follow_seconds: interval at which the log of a run in progress is read for a viewer.
    """

    store: RunStore
    secret: str
    login: PageLogin | None = None
    follow_seconds: float = FOLLOW_SECONDS

    def is_page_key(self, run: str, key: str) -> bool:
        """Return True if `run` has the form of a run's id and `key` is the key to its page."""
        given_key, expected_key = key.encode(errors="replace"), page_key(self.secret, run).encode()
        return hmac.compare_digest(given_key, expected_key) and is_run_id(run)

    async def reader(self, request: Request, run: str, key: str) -> RunReader | None:
        """Return who reads the page of a run; None for somebody who has to log in first.

        Raises HTTPException for those who may not read it, SessionEnded, and ForgeError if GitHub
        does not answer.
        """
        has_valid_key = self.is_page_key(run, key)
        person = self.login.person(request) if self.login else None
        level: Level = "none"
        if self.login is not None and person is not None and is_run_id(run):
            trigger = await run_sync(self.trigger_of, run)
            try:
                if trigger is not None:
                    level = await self.login.users.level(person, trigger.repository)
            except (SessionEnded, ResolverError):
                if not has_valid_key:
                    raise
        if has_valid_key or level != "none":
            return RunReader(person, level)
        if self.login is not None and person is None and is_run_id(run):
            return None
        raise HTTPException(404)

    def trigger_of(self, run: str) -> Trigger | None:
        """Return the trigger of a run; None if there is no such run or its request can't be
        read."""
        data = self.store.file(run, REQUEST)
        try:
            return StoredRequest.model_validate_json(data or b"").trigger
        except ValidationError:
            return None

    def page(self, run: str, reader: RunReader, sent: str | None = None) -> str | None:
        """Return the current page; None if there is no such run. sent: the command that the reader
        has just sent."""
        if not self.store.exists(run):
            return None
        # Looked for first: everything that a run logs is there before its outcome.
        outcome = self.store.file(run, OUTCOME)
        has_ended = outcome is not None
        log = RunFeed(self.store, run)
        log.read()
        notices: Sequence[str] = log.notices(has_ended)
        if sent in COMMANDS:
            notices = (*render("trace/sent.txt.j2", command=sent).splitlines(), *notices)
        # Without a login, only the operator's link opens the list.
        list_url = f"{self.login.public_url}/" if self.login else None
        if outcome is not None:
            patch = (self.store.file(run, PATCH) or b"")[:MAX_SHOWN_DIFF_BYTES]
            return render_html(
                log.events,
                notices=notices,
                diff=patch.decode(errors="replace"),
                list_url=list_url,
                pull_request=_pull_request_in(outcome),
            )
        return render_html(
            log.events,
            REFRESH_SECONDS,
            notices,
            live=LiveStream(log.last_id),
            controls=self._controls(run, reader),
            list_url=list_url,
        )

    def _controls(self, run: str, reader: RunReader) -> RunControls | None:
        if reader.person is None or reader.level != "write" or self.login is None:
            return None
        action = f"{self.login.public_url}/runs/{run}/commands"
        person = reader.person
        return RunControls(action, person.form_key, secrets.token_urlsafe(18), person.login)


class _Publication(BaseModel):
    """The part of outcome.json that says what was published."""

    pull_request: PullRequest | None = None


def _pull_request_in(outcome: bytes) -> PullRequest | None:
    """Return the pull request that outcome.json names; None if there is none on the web."""
    try:
        found = _Publication.model_validate_json(outcome).pull_request
    except ValidationError:
        return None
    is_link = found is not None and re.match(r"https?://", found.url or "")
    return found if is_link else None


class RunFeed:
    """The events of a run as far as they were read, and what is new in them, rendered once for all
    viewers who have the same. `update_since` is thread-safe."""

    def __init__(self, store: RunStore, run: str) -> None:
        self.events: list[Event] = []
        self._store, self._run = store, run
        self._lock = threading.Lock()
        self._lines, self._size, self._skipped, self._unread = 0, 0, 0, 0
        self._updates: dict[int, ServerSentEvent] = {}

    @property
    def last_id(self) -> int:
        """The id of the last event; -1 if there is none."""
        return self.events[-1].id if self.events else -1

    def read(self) -> bool:
        """Read what was appended. Return True if that is anything. Raises RunStoreError."""
        before = self._lines
        for line in self._store.lines(self._run, self._lines - 1):
            self._lines += 1
            if self._size + len(line) > MAX_LOG_BYTES:
                self._skipped += len(line)
                continue
            self._size += len(line)
            try:
                self.events.append(parse_line(line))
            except LogError:
                self._unread += 1
        return self._lines > before

    def notices(self, has_ended: bool) -> list[str]:
        """Return sentences for the page about what it shows."""
        text = render(
            "trace/live.txt.j2",
            is_active=not has_ended,
            events=bool(self.events),
            seconds=REFRESH_SECONDS,
            skipped=f"{self._skipped / 1e6:,.1f} MB" if self._skipped else "",
            unread=self._unread,
        )
        return [line for line in text.splitlines() if line]

    def update_since(self, after: int) -> ServerSentEvent | None:
        """Return what a viewer does not have yet, with the id of its newest log event; None if that
        is nothing. after: id of the last event that they have."""
        with self._lock:
            if OUTCOME in self._store.files(self._run):
                return RELOAD
            if self.read():
                self._updates.clear()
            if self.last_id <= after:
                return None
            if after not in self._updates:
                earlier = build_view(event for event in self.events if event.id <= after)
                html = render_update(earlier, build_view(self.events), self.notices(False))
                update = ServerSentEvent(event="update", id=str(self.last_id), data=html)
                self._updates[after] = update
            return self._updates[after]


def add_run_pages(app: FastAPI, pages: RunPages) -> None:
    """Add the routes to `app`. A wrong key, a missing key and an unknown run get the same answer,
    which is the login where there is one."""
    limiter = CapacityLimiter(MAX_RENDERING)
    headers = page_headers(content_policy(is_live=True))

    @app.get("/runs/{run}")
    async def page(request: Request, run: str, key: str = "", sent: str | None = None) -> Response:
        """The steps of a run so far, as a page."""
        reader = await pages.reader(request, run, key)
        if reader is None:
            assert pages.login is not None
            return RedirectResponse(pages.login.login_url(f"/runs/{run}"), 303, headers)
        html = await run_sync(pages.page, run, reader, sent, limiter=limiter)
        if html is None:
            raise HTTPException(404)
        return HTMLResponse(html, headers=headers)

    _add_updates(app, pages, limiter)


def _add_updates(app: FastAPI, pages: RunPages, limiter: CapacityLimiter) -> None:
    viewers = 0
    feeds: WeakValueDictionary[str, RunFeed] = WeakValueDictionary()

    async def follow(run: str, after: int) -> AsyncIterator[ServerSentEvent]:
        """Yield the updates of a run until it has ended."""
        nonlocal viewers
        viewers += 1
        feed = feeds.setdefault(run, RunFeed(pages.store, run))
        try:
            # Tells the browser that the stream is open, and ends the buffering of some proxies.
            yield ServerSentEvent(comment="open")
            while True:
                update = await run_sync(feed.update_since, after, limiter=limiter)
                if update is not None:
                    yield update
                    if update is RELOAD:
                        return
                    after = int(update.id or after)
                await asyncio.sleep(pages.follow_seconds)
        finally:
            viewers -= 1

    @app.get("/runs/{run}/events")
    async def events(request: Request, run: str, key: str = "", after: str = "") -> Response:
        """The changes of a run's page as server-sent events."""
        if await pages.reader(request, run, key) is None:
            raise HTTPException(404)
        if viewers >= MAX_VIEWERS:
            raise HTTPException(503, "too many viewers", {"Retry-After": "10"})
        # The browser repeats the address when it connects again, and adds what it got since.
        ids = (_number(request.headers.get("last-event-id", "")), _number(after), -1)
        last = next(id for id in ids if id is not None)
        return EventSourceResponse(
            follow(run, last), headers=page_headers("default-src 'none'"), send_timeout=SEND_SECONDS
        )


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 12 else None


def add_run_commands(
    app: FastAPI, pages: RunPages, login: PageLogin, enqueue: Enqueue, now: Clock = utc_now
) -> None:
    """Add the route of the form on the page of a run. A command is stored like that of a comment
    and executed by the same rules."""

    @app.post("/runs/{run}/commands")
    async def send(request: Request, run: str) -> Response:
        """Takes a command for a run from the form on its page."""
        person = login.person(request)
        if person is None or not is_run_id(run):
            raise HTTPException(404)
        fields = await _read_form(request)
        if not hmac.compare_digest(fields.get("token", "").encode(), person.form_key.encode()):
            raise HTTPException(403, "the form has expired; load the page again")
        trigger = await run_sync(pages.trigger_of, run)
        if trigger is None or trigger.number is None:
            raise HTTPException(404)
        if await login.users.level(person, trigger.repository, is_fresh=True) != "write":
            raise HTTPException(404)
        id, command = _command_of(fields, trigger, person, now)
        await run_sync(enqueue, id, command)
        name = fields["command"]
        logger.info("%s asks on the page of run %s: %s", person.login, run, name)
        address = f"{login.public_url}/runs/{run}?sent={name}"
        return RedirectResponse(address, 303, site_headers())


async def _read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form. Raises HTTPException if it is too large."""
    # Browsers always say how long a form is, and the server reads no more than that.
    length = _number(request.headers.get("content-length", ""))
    if length is None or length > MAX_FORM_BYTES:
        raise HTTPException(413, "the form is too large", {"Connection": "close"})
    form = await request.form(max_files=0, max_fields=20)
    return {
        name: value.encode(errors="replace").decode()
        for name, value in form.items()
        if isinstance(value, str)
    }


def _command_of(
    fields: dict[str, str], run: Trigger, person: Person, now: Clock
) -> tuple[str, Trigger]:
    """Return the id and the trigger of a command to a run. Raises HTTPException."""
    name, message = fields.get("command", ""), fields.get("message", "").strip()
    request = fields.get("request", "")
    if name not in COMMANDS or not _REQUEST.fullmatch(request):
        raise HTTPException(400, "the form is incomplete; load the page again")
    if name != "message":
        message = ""
    elif not message or len(message) > MAX_MESSAGE_LENGTH or "\0" in message:
        raise HTTPException(400, "the message is empty or too long")
    trigger = Trigger(
        key=f"page:{request}",
        kind=TriggerKind.DISPATCHED,
        repository=run.repository,
        number=run.number,
        is_pull_request=run.is_pull_request,
        issue=run.issue,
        actor=Actor(login=person.login),
        instruction=message,
        command=COMMANDS[name],
        at=now(),
    )
    return f"page-{request}", trigger
