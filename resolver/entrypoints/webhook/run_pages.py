"""`GET /runs/RUN`: shows a run's log as a page, while the run is active and afterwards, to people
who have logged in and can read its repository.

`GET /runs/RUN/events` sends what is new as server-sent events, each with the id of the newest log
event that it shows: a browser that connects again goes on after the last one that it has. Those who
can write to the repository can stop, pause and resume the run and send it messages
(`POST /runs/RUN/commands`).
"""

import asyncio
import hmac
import logging
import re
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import ValidationError
from sse_starlette import EventSourceResponse, ServerSentEvent

from resolver.config.templates import render
from resolver.entrypoints.webhook.login import Level, PageLogin, Person
from resolver.entrypoints.webhook.page_responses import page_headers
from resolver.errors import LogError
from resolver.events.log import Event
from resolver.events.stream import Clock, utc_now
from resolver.models.run import Actor, Command, PullRequest, Trigger, TriggerKind
from resolver.runs.outcome_file import EarlierPublication
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

MAX_VIEWERS = 50
"""Maximum number of people who follow runs in progress. Further ones are answered with 503."""

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


class RunFeed:
    """The events of a run as far as they were read. A damaged log ends before the damage."""

    def __init__(self, store: RunStore, run: str) -> None:
        self.events: list[Event] = []
        self.is_damaged = False
        self._store, self._run = store, run

    @property
    def last_id(self) -> int:
        """The id of the last event; -1 if there is none."""
        return self.events[-1].id if self.events else -1

    def read(self) -> None:
        """Read what was appended. Raises RunStoreError."""
        try:
            self.events.extend(self._store.events(self._run, self.last_id))
        except LogError:
            self.is_damaged = True

    def notices(self, has_ended: bool) -> list[str]:
        """Return sentences for the page about what it shows."""
        text = render(
            "trace/live.txt.j2",
            is_active=not has_ended,
            events=bool(self.events),
            seconds=REFRESH_SECONDS,
            is_damaged=self.is_damaged,
        )
        return [line for line in text.splitlines() if line]

    def update_since(self, after: int) -> ServerSentEvent | None:
        """Return what a viewer does not have yet, with the id of its newest log event; None if that
        is nothing. after: id of the last event that they have."""
        if OUTCOME in self._store.files(self._run):
            return RELOAD
        self.read()
        if self.last_id <= after:
            return None
        earlier = build_view(event for event in self.events if event.id <= after)
        html = render_update(earlier, build_view(self.events), self.notices(False))
        return ServerSentEvent(event="update", id=str(self.last_id), data=html)


@dataclass(frozen=True)
class RunPages:
    """Renders the pages of runs, for those who may read them.

    follow_seconds: interval at which the log of a run in progress is read for a viewer.
    """

    store: RunStore
    login: PageLogin
    follow_seconds: float = FOLLOW_SECONDS

    async def open(self, request: Request, run: str) -> tuple[Person, Trigger, Level]:
        """Return who reads the page of a run, the run's trigger, and what they may do there.

        Raises HTTPException if there is no such run for them, LoginNeeded, and ForgeError if GitHub
        does not answer.
        """
        person = self.login.require_person(request)
        trigger = await run_sync(self._trigger_of, run) if is_run_id(run) else None
        level: Level = "none"
        if trigger is not None:
            level = await self.login.users.level(person, trigger.repository)
        if trigger is None or level == "none":
            raise HTTPException(404, "there is no such run that you can read")
        return person, trigger, level

    def _trigger_of(self, run: str) -> Trigger | None:
        """Return the trigger of a run; None if there is no such run or its request can't be
        read."""
        data = self.store.file(run, REQUEST)
        try:
            return StoredRequest.model_validate_json(data or b"").trigger
        except ValidationError:
            return None

    def page(self, run: str, person: Person, level: Level, sent: str | None = None) -> str:
        """Return the current page. sent: the command that the person has just sent."""
        # Looked for first: everything that a run logs is there before its outcome.
        outcome = self.store.file(run, OUTCOME)
        feed = RunFeed(self.store, run)
        feed.read()
        notices: Sequence[str] = feed.notices(has_ended=outcome is not None)
        if sent in COMMANDS:
            notices = (*render("trace/sent.txt.j2", command=sent).splitlines(), *notices)
        list_url = f"{self.login.public_url}/"
        if outcome is not None:
            patch = (self.store.file(run, PATCH) or b"")[:MAX_SHOWN_DIFF_BYTES]
            return render_html(
                feed.events,
                notices=notices,
                diff=patch.decode(errors="replace"),
                list_url=list_url,
                pull_request=_pull_request_in(outcome),
            )
        action = f"{self.login.public_url}/runs/{run}/commands"
        form = RunControls(action, person.form_key, secrets.token_urlsafe(18), person.login)
        return render_html(
            feed.events,
            REFRESH_SECONDS,
            notices,
            live=LiveStream(feed.last_id),
            controls=form if level == "write" else None,
            list_url=list_url,
        )


def _pull_request_in(outcome: bytes) -> PullRequest | None:
    """Return the pull request that outcome.json names; None if there is none on the web."""
    try:
        found = EarlierPublication.model_validate_json(outcome, extra="ignore").pull_request
    except ValidationError:
        return None
    return found if found is not None and re.match(r"https?://", found.url or "") else None


def add_run_pages(app: FastAPI, pages: RunPages, enqueue: Enqueue, now: Clock = utc_now) -> None:
    """Add the routes to `app`."""
    limiter, viewers = CapacityLimiter(MAX_RENDERING), 0

    @app.get("/runs/{run}")
    async def page(request: Request, run: str, sent: str | None = None) -> Response:
        """The steps of a run so far, as a page."""
        person, _, level = await pages.open(request, run)
        html = await run_sync(pages.page, run, person, level, sent, limiter=limiter)
        return HTMLResponse(html, headers=page_headers(content_policy(is_live=True)))

    async def follow(run: str, after: int) -> AsyncIterator[ServerSentEvent]:
        """Yield the updates of a run until it has ended."""
        nonlocal viewers
        viewers += 1
        feed = RunFeed(pages.store, run)
        try:
            # Tells the browser that the stream is open, and ends the buffering of some proxies.
            yield ServerSentEvent(comment="open")
            update = None
            while update is not RELOAD:
                update = await run_sync(feed.update_since, after, limiter=limiter)
                if update is not None:
                    yield update
                    after = feed.last_id
                await asyncio.sleep(pages.follow_seconds)
        finally:
            viewers -= 1

    @app.get("/runs/{run}/events")
    async def events(request: Request, run: str, after: str = "") -> Response:
        """The changes of a run's page as server-sent events."""
        await pages.open(request, run)
        if viewers >= MAX_VIEWERS:
            raise HTTPException(503, "too many viewers", {"Retry-After": "10"})
        # The browser repeats the address when it connects again, and adds what it got since.
        last = _number(request.headers.get("last-event-id", after))
        headers = page_headers("default-src 'none'")
        return EventSourceResponse(follow(run, last), headers=headers, send_timeout=SEND_SECONDS)

    @app.post("/runs/{run}/commands")
    async def send(request: Request, run: str) -> Response:
        """Takes a command for a run from the form on its page. It is stored like that of a comment
        and executed by the same rules."""
        person, trigger, level = await pages.open(request, run)
        if level != "write" or trigger.number is None:
            raise HTTPException(404)
        fields = await _read_form(request)
        if not hmac.compare_digest(fields.get("token", "").encode(), person.form_key.encode()):
            raise HTTPException(403, "the form has expired; load the page again")
        id, command = _command_of(fields, trigger, person, now)
        await run_sync(enqueue, id, command)
        name = fields["command"]
        logger.info("%s asks on the page of run %s: %s", person.login, run, name)
        address = f"{pages.login.public_url}/runs/{run}?sent={name}"
        return RedirectResponse(address, 303, page_headers())


def _number(text: str) -> int:
    return int(text) if re.fullmatch(r"[0-9]{1,12}", text, re.ASCII) else -1


async def _read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form. Raises HTTPException if it is too large."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            raise HTTPException(413, "the form is too large", {"Connection": "close"})
    return dict(parse_qsl(body.decode(errors="replace")))


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
