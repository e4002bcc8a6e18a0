"""The process of `resolver serve`: the webhook of the GitHub App, and its pages."""

import gc
import logging
import socket
from collections.abc import Mapping
from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from resolver.config.server_variables import ServerVariables, read_server_variables
from resolver.config.settings import Settings, load_settings
from resolver.config.templates import render
from resolver.entrypoints.http_server import (
    address_of,
    allow_open_files,
    listen,
    log_to_stderr,
    server_settings,
)
from resolver.entrypoints.webhook.health import add_health, check_readiness
from resolver.entrypoints.webhook.login import PageLogin, open_users
from resolver.entrypoints.webhook.missed_deliveries import MissedDeliveries
from resolver.entrypoints.webhook.page_responses import page_headers
from resolver.entrypoints.webhook.process import ProcessOptions, ServerProcess
from resolver.entrypoints.webhook.request_queue import RequestState
from resolver.entrypoints.webhook.run_lists import RunLists, add_run_lists
from resolver.entrypoints.webhook.run_pages import RunPages, add_run_pages
from resolver.entrypoints.webhook.webhook import HandleDelivery, create_webhook_app
from resolver.entrypoints.webhook.worker import RequestIntake
from resolver.errors import ResolverError, UsageError
from resolver.events.stream import utc_now
from resolver.github.events.app_manifest import registration_form_url
from resolver.github.events.dispatches import DispatchSource
from resolver.github.events.permission import IgnoredEvent
from resolver.runs.common import trigger_for_target
from resolver.security.redaction import Redactor

logger = logging.getLogger("resolver.entrypoints.webhook")

MAX_CONNECTIONS = 4000
"""Maximum number of open connections; requests on further ones are answered with status 503."""

DRAIN_SECONDS = 1
"""Time in seconds for responses in progress to finish when the server is stopped."""

UNREACHABLE_SERVER = "https://resolver.invalid"
"""Address in the webhook of an App whose server GitHub can't reach. The name never resolves
(RFC 2606), so that nobody gets the deliveries; the server reads them from GitHub's list of failed
ones."""


def serve_webhook(
    environment: Mapping[str, str],
    options: Mapping[str, Any],
    host: str,
    port: int,
    process_options: ProcessOptions,
) -> None:
    """Serve deliveries and execute their requests until a signal arrives.

    Without concurrency, `resolver worker` processes execute them. The other arguments are those of
    `ServerProcess`.

    Raises UsageError if a setting, the address, the database or the data folder can't be used.
    """
    settings, server = load_settings(options, environment), read_server_variables(environment)
    is_new = not (settings.has_app or settings.github_token or server.webhook_secret)
    secret = "" if is_new else _require_secret(server)
    listening = listen(host, port)
    if is_new:
        _serve_setup_page(settings, server, listening)
        return
    try:
        process = ServerProcess(environment, options, process_options)
    except BaseException:
        listening.close()
        raise
    handle_delivery = _delivery_handler(process.settings, process.intake)
    process.start()
    if process.settings.has_app:
        app_of = partial(process.machine.tokens.app, process.settings)
        is_reached = server.public_url is not None
        missed = MissedDeliveries(app_of, handle_delivery, is_reached=is_reached)
        process.threads.start("missed-deliveries", missed.poll_forever)
    app = _open_app(secret, handle_delivery, process)
    process.preload()
    logger.info("listening on http://%s/webhook", address_of(listening))
    database, folder = process.database.url, process.folder
    logger.info("deliveries are stored in %s, runs in %s", database, folder)
    _serve(app, listening)


def _open_app(secret: str, handle_delivery: HandleDelivery, process: ServerProcess) -> FastAPI:
    """Return the web application: deliveries, probes, and pages if people can log in."""
    check = partial(check_readiness, process.queue, process.folder, process.threads)
    app = create_webhook_app(secret, handle_delivery, check)
    public_url = process.variables.public_url
    users = open_users(process.settings, process.machine)
    if public_url and users:
        login = PageLogin(users, public_url, secret)
        login.add_to(app)
        waiting = partial(process.queue.recent, (RequestState.WAITING,))
        add_run_lists(app, RunLists(process.index, public_url, waiting), login)
        add_run_pages(app, RunPages(process.runs.store, login), process.intake.enqueue)
        logger.info("runs are listed on %s", public_url)
    return app


def _serve_setup_page(
    settings: Settings, server: ServerVariables, listening: socket.socket
) -> None:
    """Answer requests with the steps to a GitHub App, until a signal arrives."""
    log_to_stderr(Redactor(settings.secrets))
    logger.warning(
        "this server has no GitHub App yet; http://%s/ says what to do", address_of(listening)
    )
    app = setup_app(setup_page(settings.github_server_url, server.public_url))
    uvicorn.Server(server_settings(app, MAX_CONNECTIONS)).run(sockets=[listening])


def setup_app(page: HTMLResponse) -> FastAPI:
    """Return the application of a server without a GitHub App: alive, not ready, and one page."""

    def check() -> None:
        raise ResolverError("this server has no GitHub App yet")

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    add_health(app, check)
    app.mount("/", page)
    return app


def setup_page(github: str, public_url: str | None) -> HTMLResponse:
    """Return the page with the steps to a GitHub App. github: address of the GitHub server."""
    hook = f"{public_url or UNREACHABLE_SERVER}/webhook"
    form = registration_form_url(github, None, "my-resolver", hook)
    steps = render("init/app.txt.j2", form=form, hook=hook)
    is_reachable = public_url is not None
    content = render("site/setup.html.j2", form=form, steps=steps, is_reachable=is_reachable)
    return HTMLResponse(content, 503, headers=page_headers())


def _delivery_handler(settings: Settings, intake: RequestIntake) -> HandleDelivery:
    """Return the function that is called for a delivery before it is answered."""

    def handle_delivery(delivery: str, event: str, payload: dict[str, Any]) -> str:
        if event == "ping":
            return "pong"
        # `workflow_dispatch` events are delivered too, but belong to the workflow's own job.
        arrival = DispatchSource(delivery, utc_now()) if event == "repository_dispatch" else None
        trigger = trigger_for_target(settings, event, payload, arrival=arrival)
        if isinstance(trigger, IgnoredEvent):
            return f"ignored: {trigger.reason}"
        intake.enqueue(delivery, trigger)
        logger.info("delivery %s asks for %s#%s", delivery, trigger.repository, trigger.number)
        return "stored"

    return handle_delivery


def _require_secret(server: ServerVariables) -> str:
    """Return the webhook's secret. Raises UsageError if there is none."""
    secret = server.webhook_secret
    if secret is None or not secret.get_secret_value():
        raise UsageError(
            "there is no webhook secret, so requests can't be verified to come from GitHub",
            "set GITHUB_WEBHOOK_SECRET to the secret of the App's webhook",
        )
    return secret.get_secret_value()


def _serve(app: FastAPI, listening: socket.socket) -> None:
    """Serve until a signal arrives.

    uvicorn finishes its responses and then passes the signal to the process's own handler.
    """
    allow_open_files(2 * MAX_CONNECTIONS)
    # A full collection would look at all modules again, and deliveries would wait for it.
    gc.collect()
    gc.freeze()
    config = server_settings(app, MAX_CONNECTIONS, timeout_graceful_shutdown=DRAIN_SECONDS)
    uvicorn.Server(config).run(sockets=[listening])
