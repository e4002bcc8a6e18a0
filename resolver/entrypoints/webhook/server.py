"""The process of `resolver serve`: the webhook of the GitHub App."""

import gc
import logging
import socket
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from resolver.config.server_variables import ServerVariables, read_server_variables
from resolver.config.settings import Settings, load_settings
from resolver.entrypoints.http_server import (
    address_of,
    allow_open_files,
    listen,
    server_settings,
)
from resolver.entrypoints.webhook.app_setup import delivery_poll_seconds, needs_app, run_app_setup
from resolver.entrypoints.webhook.data_folder import DataFolder
from resolver.entrypoints.webhook.health import ReadinessCheck
from resolver.entrypoints.webhook.login import open_users
from resolver.entrypoints.webhook.missed_deliveries import MissedDeliveries
from resolver.entrypoints.webhook.page_links import operator_url
from resolver.entrypoints.webhook.process import ProcessOptions, ServerProcess
from resolver.entrypoints.webhook.request_queue import RequestState
from resolver.entrypoints.webhook.site import add_site
from resolver.entrypoints.webhook.stored_app import with_stored_app
from resolver.entrypoints.webhook.webhook import HandleDelivery, create_webhook_app
from resolver.entrypoints.webhook.worker import RequestIntake
from resolver.errors import ForgeError, UsageError
from resolver.events.stream import utc_now
from resolver.github.client.access import FixedToken
from resolver.github.client.hook_deliveries import HookDeliveries, repository_hooks
from resolver.github.events.dispatches import DispatchSource
from resolver.github.events.permission import IgnoredEvent
from resolver.runs.common import (
    require_model,
    trigger_for_target,
)
from resolver.runs.wiring.sandbox import RunHost, access_of
from resolver.storage.run_index import RunIndex

logger = logging.getLogger("resolver.entrypoints.webhook")

MAX_CONNECTIONS = 4000
"""Maximum number of open connections; requests on further ones are answered with status 503."""

MAX_REPOSITORIES = 100
"""Maximum number of repositories whose webhooks are asked for missed deliveries."""

DRAIN_SECONDS = 1
"""Time in seconds for responses in progress to finish when the server is stopped."""


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
    environment, secret, listening = _prepare(environment, options, host, port)
    try:
        process = ServerProcess(environment, options, process_options)
    except BaseException:
        listening.close()
        raise
    settings, machine = process.settings, process.machine
    handle_delivery = _delivery_handler(settings, process.intake)
    process.start()
    public_url = process.variables.public_url
    sources = partial(_delivery_sources, settings, machine, process.index, public_url)
    interval = delivery_poll_seconds(settings, machine, public_url)
    missed = MissedDeliveries(sources, handle_delivery, interval=interval)
    process.threads.start("missed-deliveries", missed.poll_forever)
    app = _open_app(secret, handle_delivery, process)
    process.preload()
    logger.info("listening on http://%s/webhook", address_of(listening))
    database, folder = process.database.url, process.folder.path
    logger.info("deliveries are stored in %s, runs in %s", database, folder)
    _serve(app, listening)


def _prepare(
    environment: Mapping[str, str], options: Mapping[str, Any], host: str, port: int
) -> tuple[Mapping[str, str], str, socket.socket]:
    """Return the environment with the App's credentials, the webhook's secret, and the listening
    socket. Serves the setup page first if there is no App.

    Raises UsageError.
    """
    environment = with_stored_app(environment)
    settings = load_settings(options, environment)
    server = read_server_variables(environment)
    is_new = needs_app(settings, server)
    if is_new:
        # Nobody should create an App for a server that can't start afterwards.
        require_model(settings)
    secret = "" if is_new else _require_secret(server)
    listening = listen(host, port)
    if is_new:
        folder = DataFolder(Path(server.data_dir))
        run_app_setup(settings, server, folder.path, listening)
        folder.close()
        environment = with_stored_app(environment)
        secret = _require_secret(read_server_variables(environment))
    return environment, secret, listening


def _open_app(secret: str, handle_delivery: HandleDelivery, process: ServerProcess) -> FastAPI:
    """Return the web application: deliveries, probes, and pages if the server has a public URL."""
    check = ReadinessCheck(process.queue, process.folder.path, threads=process.threads)
    count = process.metrics.count_delivery
    app = create_webhook_app(secret, handle_delivery, check=check, count=count)
    if public_url := process.variables.public_url:
        users = open_users(process.settings, process.machine)
        waiting = partial(process.queue.recent, (RequestState.WAITING,))
        store, enqueue = process.runs.store, process.intake.enqueue
        add_site(app, public_url, secret, store, process.index, enqueue, users, waiting)
        logger.info("runs are listed on %s", operator_url(public_url, secret))
    return app


def _delivery_sources(
    settings: Settings, machine: RunHost, index: RunIndex, public_url: str | None
) -> Iterator[HookDeliveries]:
    """Yield the webhooks that deliver to this server.

    That is the App's webhook. Without an App, if the server's public URL is set, these are the
    webhooks of the repositories that it has had requests from. Raises ForgeError.
    """
    if settings.has_app:
        yield machine.tokens.app(settings).deliveries()
    elif public_url and settings.github_token is not None:
        access = access_of(settings, FixedToken(settings.github_token.get_secret_value()), True)
        for repository in index.repositories(MAX_REPOSITORIES):
            try:
                yield from repository_hooks(access, repository, f"{public_url}/webhook")
            except ForgeError as error:
                if error.cause not in {"not_found", "permission"}:
                    raise
                logger.debug("%s", error.what)  # the token may not read the webhooks there


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
