"""The setup page of a server without a GitHub App: one button that creates the App on GitHub.

The page opens only with the setup token, which is in the server's log, so that a stranger who finds
the address first can't connect the server to an App of their own. The button sends the manifest to
GitHub, which redirects the browser back with a code. The state in that redirect is known only to
the person who opened the page, and is valid once.
"""

import hmac
import json
import logging
import secrets
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

import uvicorn
from anyio.to_thread import run_sync
from fastapi import BackgroundTasks, FastAPI, HTTPException
from fastapi.responses import HTMLResponse

from resolver.config.server_variables import ServerVariables
from resolver.config.settings import Settings
from resolver.config.templates import render
from resolver.entrypoints.http_server import address_of, log_to_stderr, server_settings
from resolver.entrypoints.webhook.health import add_health
from resolver.entrypoints.webhook.missed_deliveries import POLL_INTERVAL_SECONDS
from resolver.entrypoints.webhook.page_responses import (
    add_error_pages,
    page_headers,
    static_page_policy,
)
from resolver.entrypoints.webhook.stored_app import APP_FILE, store_app
from resolver.errors import ForgeError, ResolverError, UsageError
from resolver.github.events.app_manifest import (
    AppCredentials,
    app_registration_page,
    build_app_manifest,
    convert_manifest_code,
)
from resolver.runs.wiring.sandbox import RunHost
from resolver.security.redaction import Redactor

logger = logging.getLogger("resolver.entrypoints.webhook")

APP_NAME = "resolver"

UNREACHABLE_HOOK = "https://resolver.invalid/webhook"
"""Webhook of an App whose server GitHub can't reach. The name never resolves (RFC 2606), so that
nobody gets the deliveries; the server reads them from GitHub's list of failed ones."""

UNREACHABLE_POLL_SECONDS = 10.0
"""Interval between two polls for the deliveries of such an App. GitHub allows an App some thousand
requests an hour."""

MAX_STATES = 16
"""Number of opened pages whose button can be used. The oldest one is forgotten first."""

MAX_SETUP_CONNECTIONS = 200

_STYLE = "trace/setup.css.j2"

Convert = Callable[[str], AppCredentials]
"""Exchanges a code for the App's credentials. Raises ForgeError."""

Store = Callable[[AppCredentials], object]
"""Stores the credentials durably. Raises ResolverError."""


class AppSetup:
    """The state of the setup.

    github: address of the GitHub server. address: at which browsers reach this server. hook: URL of
    the App's webhook.
    """

    def __init__(
        self, github: str, address: str, hook: str, convert: Convert, store: Store
    ) -> None:
        self.token = secrets.token_urlsafe(32)
        self.github = github.rstrip("/")
        self._address, self._hook = address, hook
        self._convert, self._store = convert, store
        self._states: list[str] = []

    @property
    def link(self) -> str:
        """Address of the setup page, with the token."""
        return f"{self._address}/app/new?token={self.token}"

    def is_setup_token(self, token: str) -> bool:
        """Return True if this is the setup token."""
        return hmac.compare_digest(token.encode(errors="replace"), self.token.encode())

    def render_page(self, owner: str) -> str:
        """Return the page with the button. Raises UsageError if `owner` is no account's name."""
        page = app_registration_page(self.github, owner)
        state = secrets.token_urlsafe(32)
        self._states = [*self._states[-MAX_STATES + 1 :], state]
        manifest = build_app_manifest(APP_NAME, self._hook)
        manifest["redirect_url"] = f"{self._address}/app/created"
        return render(
            "trace/setup.html.j2",
            form=f"{page}?state={state}",
            manifest=json.dumps(manifest),
            permissions=manifest["default_permissions"],
            events=manifest["default_events"],
            hook=None if self._hook == UNREACHABLE_HOOK else self._hook,
            style=render(_STYLE),
        )

    def create(self, code: str, state: str) -> str | None:
        """Store the App's credentials, and return the address at which the App is installed.

        Returns None if the state is unknown or was used. Raises ResolverError.
        """
        if state not in self._states:
            return None
        self._states.remove(state)
        credentials = self._convert(code)
        self._store(credentials)
        self._states.clear()
        return f"{self.github}/apps/{credentials.slug}/installations/new"


def create_setup_app(setup: AppSetup, finished: Callable[[], None]) -> FastAPI:
    """Return the web application. finished: is called when the credentials have been stored."""
    app = FastAPI(title="Resolver setup", docs_url=None, redoc_url=None, openapi_url=None)
    add_health(app, None)
    headers = {
        **page_headers(static_page_policy(_STYLE, setup.github)),
        # GitHub gets the origin of the page, but not the token in its address.
        "Referrer-Policy": "strict-origin",
    }

    @app.get("/")
    async def start() -> None:
        """Says what to do on a server that has no GitHub App yet."""
        raise HTTPException(503, f"this server has no GitHub App yet: {_WRONG_ADDRESS}")

    @app.get("/app/new")
    async def new(token: str = "", owner: str = "") -> HTMLResponse:
        """The page that creates the GitHub App, on a server that has none."""
        if not setup.is_setup_token(token):
            raise HTTPException(404, _WRONG_ADDRESS)
        try:
            return HTMLResponse(setup.render_page(owner), headers=headers)
        except UsageError as error:
            raise HTTPException(400, error.what) from None

    @app.get("/app/created")
    async def created(after: BackgroundTasks, code: str = "", state: str = "") -> HTMLResponse:
        """Stores the credentials of the App that GitHub has created."""
        try:
            install = await run_sync(setup.create, code, state)
        except ResolverError as error:
            logger.error("the GitHub App was not set up: %s; %s", error.what, error.next_step)
            raise HTTPException(502, "the App was not set up; the reason is in the log") from None
        if install is None:
            raise HTTPException(404, _WRONG_ADDRESS)
        after.add_task(finished)
        page = render("trace/setup_done.html.j2", install=install, style=render(_STYLE))
        return HTMLResponse(page, headers=headers)

    add_error_pages(app)
    return app


_WRONG_ADDRESS = "open the address that `resolver serve` has written to its log"


def needs_app(settings: Settings, server: ServerVariables) -> bool:
    """Return True if the settings have no credentials for GitHub and no webhook secret."""
    has_token = settings.github_token is not None
    return not (settings.has_app or has_token or server.webhook_secret)


def run_app_setup(
    settings: Settings, server: ServerVariables, folder: Path, listening: socket.socket
) -> None:
    """Serve the setup page until the App's credentials are stored in `folder`.

    The socket stays open. A signal ends the process.
    """
    public_url = server.public_url
    hook = f"{public_url}/webhook" if public_url else UNREACHABLE_HOOK
    setup = AppSetup(
        settings.github_server_url,
        public_url or f"http://{_local_address(listening)}",
        hook,
        partial(convert_manifest_code, settings.github_api_url),
        partial(store_app, folder),
    )
    stopping: list[uvicorn.Server] = []

    def finish() -> None:
        stopping[0].should_exit = True

    app = create_setup_app(setup, finish)
    config = server_settings(app, MAX_SETUP_CONNECTIONS)
    stopping.append(uvicorn.Server(config))
    handler = log_to_stderr(Redactor(settings.secrets))
    try:
        logger.info("this server has no GitHub App yet; create it at %s", setup.link)
        stopping[0].run(sockets=[listening.dup()])  # uvicorn closes the sockets that it gets
        logger.info("the GitHub App was created; its credentials are in %s", folder / APP_FILE)
    finally:
        # The next one redacts the new secrets, too.
        logging.getLogger().removeHandler(handler)


def delivery_poll_seconds(settings: Settings, machine: RunHost, public_url: str | None) -> float:
    """Return the interval at which missed deliveries are read.

    It is short if all are missed because GitHub can't reach the server.
    """
    if public_url or not settings.has_app:
        return POLL_INTERVAL_SECONDS
    try:
        hook = machine.tokens.app(settings).webhook().url
    except ForgeError:
        return POLL_INTERVAL_SECONDS
    return UNREACHABLE_POLL_SECONDS if hook == UNREACHABLE_HOOK else POLL_INTERVAL_SECONDS


def _local_address(listening: socket.socket) -> str:
    """Return HOST:PORT for a browser on this machine."""
    return address_of(listening).replace("0.0.0.0:", "127.0.0.1:").replace("[::]:", "[::1]:")
