"""The server of `resolver serve`: the webhook of the GitHub App and its worker, in one process."""

import logging
import os
import signal
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from sqlalchemy.engine import URL

from resolver.config.lazy_module import import_lazy_modules
from resolver.config.settings import Settings, load_settings
from resolver.entrypoints.listening import (
    ShortRequestConnection,
    address_of,
    allow_open_files,
    listen,
    log_to_stderr,
    server_settings,
)
from resolver.entrypoints.log_format import logging_run
from resolver.entrypoints.webhook.commands import CommentCommands
from resolver.entrypoints.webhook.costs import SpendingLedger
from resolver.entrypoints.webhook.data_folder import DataFolder, lock_file
from resolver.entrypoints.webhook.database import parse_database_url
from resolver.entrypoints.webhook.deliveries import DeliveryRunner, measure_progress
from resolver.entrypoints.webhook.health import ReadinessCheck
from resolver.entrypoints.webhook.issue_history import IssueHistories
from resolver.entrypoints.webhook.metrics import ServerMetrics, serve_metrics
from resolver.entrypoints.webhook.missed_deliveries import MissedDeliveries
from resolver.entrypoints.webhook.outcome_pages import add_outcome_pages
from resolver.entrypoints.webhook.outcomes import (
    OutcomeRefresher,
    OutcomeStore,
    closed_pull_request,
)
from resolver.entrypoints.webhook.own_login import OwnLogin, login_from_github
from resolver.entrypoints.webhook.pages import Pages
from resolver.entrypoints.webhook.queue_notices import QueueNotices
from resolver.entrypoints.webhook.request_queue import RequestQueue, StartedRequest
from resolver.entrypoints.webhook.run_archive import RunArchive
from resolver.entrypoints.webhook.run_restore import ArchivedRunFolders
from resolver.entrypoints.webhook.sql_request_queue import SqlRequestQueue
from resolver.entrypoints.webhook.webhook import Accept, create_webhook_app
from resolver.entrypoints.webhook.worker import Handlers, Worker, WorkResult
from resolver.errors import ForgeError, UsageError
from resolver.events.stream import utc_now
from resolver.github.client.access import FixedToken
from resolver.github.client.hook_deliveries import HookDeliveries, repository_hooks
from resolver.github.events.parse import DispatchSource, needs_own_login
from resolver.github.events.permission import IgnoredEvent
from resolver.models.outcome import PullRequestOutcome
from resolver.models.run import Trigger
from resolver.runs.common import (
    app_login,
    github_forge,
    open_host,
    own_login,
    require_model,
    run_id,
    trigger_for_target,
)
from resolver.runs.pipeline import run_pipeline
from resolver.runs.quotas.dashboard import Dashboard
from resolver.runs.quotas.outcomes import open_outcome_reader, refresh_outcomes
from resolver.runs.wiring.models import preload_models
from resolver.runs.wiring.sandbox import RunHost, access_of
from resolver.security.redaction import Redactor

logger = logging.getLogger("resolver.entrypoints.webhook")

MAX_CONNECTIONS = 4000
"""Maximum number of open connections.

From half of it on, connections without a complete request are closed to make room for new ones.
Only complete requests can therefore use up the limit, and they are answered with status 503.
"""

DRAIN_SECONDS = 3
"""Time in seconds for responses in progress to finish when the server is stopped."""


def serve_webhook(
    environment: Mapping[str, str],
    options: Mapping[str, Any],
    host: str,
    port: int,
    concurrency: int,
    metrics_address: tuple[str, int] | None = None,
) -> None:
    """Serve deliveries and execute their requests until a signal arrives.

    environment, options: sources of the settings.
    concurrency: maximum number of runs at a time.
    metrics_address: host and port of the metrics; None to serve none.

    Raises UsageError if a setting, the address, the database or the data folder can't be used.
    """
    settings = load_settings(options, environment)
    secret = _check(settings)
    url, folder = _open_stores(settings)
    listening = listen(host, port)
    machine = open_host(environment)
    secrets = (*settings.secrets, *machine.secrets, str(url.password or ""))
    redactor = Redactor(secrets, machine.tokens.issued_tokens)
    log_to_stderr(redactor, settings.server.log_format)
    options = {**options, **app_login(settings, machine)}
    settings = load_settings(options, environment)
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, partial(_end, folder))
    # Here the next start finds and removes the clones and local sandboxes of interrupted runs.
    tempfile.tempdir = str(folder.empty_scratch())
    retry = timedelta(seconds=settings.retry_seconds.outage)
    queue = SqlRequestQueue(url)
    metrics = _open_metrics(queue, metrics_address)
    runs = DeliveryRunner(
        environment,
        options,
        folder.path,
        _open_histories(url, folder.path),
        ledger=SpendingLedger(url),
        issued_tokens=machine.tokens.issued_tokens,
        outage_retry=retry,
        waiting=QueueNotices(metrics.observe_comment),
        execute=metrics.counting(run_pipeline),
        archived=_open_archive(url, folder.path),
    )
    queue.recover(folder.take_stop_note(), partial(measure_progress, runs.folders), utc_now())
    worker = Worker(url, queue, _handlers(runs, retry), concurrency)

    store = OutcomeStore(url)
    outcomes = OutcomeRefresher(store, partial(_read_outcomes, settings, machine))
    accept = _accepting(settings, machine, worker, outcomes)
    worker.start()
    sources = partial(_delivery_sources, settings, machine, queue)
    MissedDeliveries(url, sources, accept).start()
    outcomes.start()
    _announce(listening, url, folder)
    # runs are threads of this process, so that the first one finds the modules loaded
    import_lazy_modules()
    preload_models(settings)
    _serve(_open_app(settings, secret, accept, queue, folder, store, metrics), listening)


def _open_app(
    settings: Settings,
    secret: str,
    accept: Accept,
    queue: RequestQueue,
    folder: DataFolder,
    store: OutcomeStore,
    metrics: ServerMetrics,
) -> FastAPI:
    """Return the web application: deliveries, probes, and pages if the server has a public URL."""
    has_pages = bool(settings.server.public_url)
    app = create_webhook_app(
        secret,
        accept,
        pages=Pages(folder.path, secret) if has_pages else None,
        check=ReadinessCheck(queue, folder.path),
        count=metrics.count_delivery,
    )
    if has_pages:
        add_outcome_pages(app, store, secret)
    return app


def _open_stores(settings: Settings) -> tuple[URL, DataFolder]:
    """Return the database and the data folder, which no other server uses. Raises UsageError."""
    url = parse_database_url(settings.server.database_url)
    folder = DataFolder(Path(settings.server.data_dir))
    if url.get_backend_name() == "sqlite":
        lock_file(Path(f"{url.database}.lock"))
    return url, folder


def _open_archive(url: URL, folder: Path) -> ArchivedRunFolders | None:
    """Return the folders of runs with their archive in PostgreSQL, which several machines can use.

    With SQLite there is one machine, which has the files already.
    """
    is_shared = url.get_backend_name() == "postgresql"
    return ArchivedRunFolders(RunArchive(url), folder) if is_shared else None


def _open_histories(url: URL, folder: Path) -> IssueHistories:
    """Return the histories, with those that an earlier release kept as files."""
    histories = IssueHistories(url)
    histories.import_files(folder)
    return histories


def _read_outcomes(
    settings: Settings, machine: RunHost, repository: str
) -> Sequence[PullRequestOutcome]:
    """Read, record and return the outcomes of a repository. Raises ForgeError and
    WorkspaceError."""
    forge = github_forge(settings, repository, machine)
    reader = open_outcome_reader(settings, repository, machine, forge)
    now = utc_now()
    run = run_id(f"outcomes of {repository}", now)
    dashboard = Dashboard(forge.board(), reader.ledger_ref, run, settings.mention)
    return refresh_outcomes(reader, dashboard if settings.dashboard else None, now)


def _delivery_sources(
    settings: Settings, machine: RunHost, queue: RequestQueue
) -> Iterator[HookDeliveries]:
    """Yield the webhooks that deliver to this server.

    That is the App's webhook. Without an App, if the server's public URL is set, these are the
    webhooks of the repositories that it has had requests from. Raises ForgeError.
    """
    if settings.has_app:
        yield machine.tokens.app(settings).deliveries()
    elif settings.server.public_url and settings.github_token is not None:
        access = access_of(settings, FixedToken(settings.github_token.get_secret_value()), True)
        for repository in queue.repositories():
            try:
                yield from repository_hooks(
                    access, repository, f"{settings.server.public_url}/webhook"
                )
            except ForgeError as error:
                if error.cause not in {"not_found", "permission"}:
                    raise
                logger.debug("%s", error.what)  # the token may not read the webhooks there


def _open_metrics(queue: RequestQueue, address: tuple[str, int] | None) -> ServerMetrics:
    """Return the metrics, and serve them if they have an address. Raises UsageError."""
    metrics = ServerMetrics(queue.backlog)
    if address is not None:
        logger.info("metrics are on %s", serve_metrics(metrics, *address))
    return metrics


def _handlers(runs: DeliveryRunner, retry: timedelta) -> Handlers:
    """Return the functions that the worker calls for its requests."""
    commands = CommentCommands(runs, runs.at_work, runs.threads)

    def work(started: StartedRequest) -> WorkResult:
        trigger = started.request.trigger
        with logging_run(run_id(trigger.key, trigger.at)):
            return runs.work_on(started)

    return Handlers(work, commands.obey, runs.announce, runs.is_for_us, retry)


def _accepting(
    settings: Settings, machine: RunHost, worker: Worker, outcomes: OutcomeRefresher
) -> Accept:
    """Return the function that is called for a delivery before it is answered."""
    login = OwnLogin()

    def accept(delivery: str, event: str, payload: dict[str, Any]) -> str:
        if event == "ping":
            return "pong"
        closed_in = closed_pull_request(event, payload, settings.bot_login)
        if closed_in:
            outcomes.accept(closed_in)
            return "stored: the outcome of the pull request is read"
        # `workflow_dispatch` events are delivered too, but belong to the workflow's own job.
        arrival = DispatchSource(delivery, utc_now()) if event == "repository_dispatch" else None
        known_login, presumed = settings.bot_login, ""
        if not known_login and needs_own_login(event, payload):
            known_login = login.get(lambda: own_login(settings, event, payload, machine))
            presumed = "" if known_login else login_from_github(payload)
        trigger = trigger_for_target(settings, event, payload, known_login, arrival)
        if isinstance(trigger, IgnoredEvent) and presumed:
            # GitHub delivers once: while the own login is unknown, presume that the delivery is
            # meant for it, store it, and decide later.
            trigger = trigger_for_target(settings, event, payload, presumed, arrival)
            if isinstance(trigger, Trigger):
                worker.enqueue_undecided(delivery, trigger, presumed)
                logger.info("delivery %s asks something of %s", delivery, presumed)
                return "stored"
        if isinstance(trigger, IgnoredEvent):
            return f"ignored: {trigger.reason}"
        worker.enqueue(delivery, trigger)
        logger.info("delivery %s asks for %s#%s", delivery, trigger.repository, trigger.number)
        return "stored"

    return accept


def _check(settings: Settings) -> str:
    """Return the webhook's secret.

    Raises UsageError if a setting that deliveries need is missing.
    """
    require_model(settings)
    secret = settings.server.webhook_secret
    if secret is None or not secret.get_secret_value():
        raise UsageError(
            "there is no webhook secret, so requests can't be verified to come from GitHub",
            "set GITHUB_WEBHOOK_SECRET to the secret of the App's webhook",
        )
    has_token = settings.github_token is not None and settings.github_token.get_secret_value()
    if not has_token and settings.app_id is None:
        raise UsageError(
            "there is no GitHub token",
            "set RESOLVER_APP_ID and RESOLVER_APP_PRIVATE_KEY, or GITHUB_TOKEN",
        )
    return secret.get_secret_value()


def _announce(listening: socket.socket, url: URL, folder: DataFolder) -> None:
    logger.info("listening on http://%s/webhook", address_of(listening))
    logger.info("deliveries are stored in %s, runs in %s", url, folder.path)


def _serve(app: FastAPI, listening: socket.socket) -> None:
    """Serve until a signal arrives.

    uvicorn finishes its responses and then passes the signal to `_end`.
    """
    allow_open_files(2 * MAX_CONNECTIONS)
    config = server_settings(
        app,
        MAX_CONNECTIONS,
        ShortRequestConnection,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    uvicorn.Server(config).run(sockets=[listening])


def _end(folder: DataFolder, number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - signal handler
    """End this process now; the next start continues the runs that are interrupted.

    A regular exit would wait for the threads of the runs, which can take an hour.
    """
    logger.info(
        "stopped by %s; unfinished runs continue at the next start", signal.Signals(number).name
    )
    folder.note_stop()
    logging.shutdown()
    os._exit(0)
