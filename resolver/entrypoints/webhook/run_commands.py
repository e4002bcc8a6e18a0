"""`POST /runs/RUN/commands`: stops, pauses and resumes a run from its page, or sends a message.

The command is stored like that of a comment and executed by the same rules. The request needs a
session, the token of a form on the run's page, and write access to the repository.
"""

import logging
import re
from collections.abc import Callable
from urllib.parse import parse_qs

from anyio.to_thread import run_sync
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import RedirectResponse, Response

from resolver.entrypoints.webhook.login_pages import PageLogin, read_form
from resolver.entrypoints.webhook.page_headers import site_headers
from resolver.entrypoints.webhook.page_readers import SessionEnded
from resolver.entrypoints.webhook.page_sessions import PageSession, is_form_token
from resolver.entrypoints.webhook.pages import Pages
from resolver.errors import ResolverError
from resolver.events.stream import Clock, utc_now
from resolver.models.run import Actor, Command, Trigger, TriggerKind
from resolver.storage.run_folders import is_run_id

logger = logging.getLogger("resolver.entrypoints.webhook")

COMMANDS = {
    "stop": Command.STOP,
    "pause": Command.PAUSE,
    "resume": Command.RESUME,
    "message": Command.CONTINUE,
}
"""The commands of the form. A message goes to the run in progress, as that of `continue` does."""

MAX_MESSAGE_LENGTH = 4_000

_REQUEST = re.compile(r"[A-Za-z0-9_-]{20,40}", re.ASCII)

Enqueue = Callable[[str, Trigger], None]
"""Stores a request under an id, once. Raises ResolverError."""


def command_trigger(
    run: Trigger, login: str, command: Command, message: str, request: str, clock: Clock
) -> Trigger:
    """Return the trigger of a command of this person to a run. request: identifies it."""
    return Trigger(
        key=f"page:{request}",
        kind=TriggerKind.DISPATCHED,
        repository=run.repository,
        number=run.number,
        is_pull_request=run.is_pull_request,
        issue=run.issue,
        actor=Actor(login=login),
        instruction=message,
        command=command,
        at=clock(),
    )


def add_run_commands(
    app: FastAPI, pages: Pages, login: PageLogin, enqueue: Enqueue, now: Clock = utc_now
) -> None:
    """Add the route to `app`."""

    def store(run: str, session: PageSession, fields: dict[str, str]) -> str:
        """Store the command and return its name. Raises HTTPException."""
        trigger = pages.trigger_of(run)
        if trigger is None or trigger.number is None:
            raise HTTPException(404)
        if login.access.level(session, trigger.repository, is_fresh=True) != "write":
            raise HTTPException(404)
        name, message = fields.get("command", ""), fields.get("message", "").strip()
        request = fields.get("request", "")
        if name not in COMMANDS or not _REQUEST.fullmatch(request):
            raise HTTPException(400, "the form is incomplete; load the page again")
        if name != "message":
            message = ""
        elif not message or len(message) > MAX_MESSAGE_LENGTH or "\0" in message:
            raise HTTPException(400, "the message is empty or too long")
        command = command_trigger(trigger, session.login, COMMANDS[name], message, request, now)
        enqueue(f"page-{request}", command)
        logger.info("%s asks on the page of run %s: %s", session.login, run, name)
        return name

    @app.post("/runs/{run}/commands", include_in_schema=False)
    async def send(request: Request, run: str) -> Response:
        """Takes a command for a run from the form on its page."""
        session = login.session(request)
        if session is None or not is_run_id(run):
            raise HTTPException(404)
        fields = _parse_form(await read_form(request))
        if not login.is_own_form(request) or not is_form_token(
            session, run, fields.get("token", "")
        ):
            raise HTTPException(403, "the form has expired; load the page again")
        try:
            name = await run_sync(store, run, session, fields, limiter=login.limiter)
        except SessionEnded:
            raise HTTPException(403, "log in again") from None
        except ResolverError as error:
            logger.error("a command for run %s could not be stored: %s", run, error.what)
            raise HTTPException(503, "the request could not be stored; send it again") from None
        return RedirectResponse(
            f"{login.public_url}/runs/{run}?sent={name}", 303, dict(site_headers())
        )


def _parse_form(body: bytes) -> dict[str, str]:
    """Return the fields of a form; of a field that is repeated, the first value."""
    try:
        values = parse_qs(body.decode(), max_num_fields=20, errors="strict")
    except ValueError:
        return {}
    return {name: texts[0] for name, texts in values.items()}
