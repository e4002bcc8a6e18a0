"""The parts that `resolver serve` and `resolver worker` have in common: the stores, the executor
with its lease, the worker, and the orderly end of the process."""

import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from sqlalchemy.engine import URL

from resolver.config.lazy_module import import_lazy_modules
from resolver.config.settings import Settings, load_settings
from resolver.entrypoints.listening import log_to_stderr
from resolver.entrypoints.log_format import logging_run
from resolver.entrypoints.webhook.commands import CommentCommands
from resolver.entrypoints.webhook.costs import SpendingLedger
from resolver.entrypoints.webhook.data_folder import DataFolder, lock_file
from resolver.entrypoints.webhook.database import DatabaseError, parse_database_url
from resolver.entrypoints.webhook.deliveries import DeliveryRunner, measure_progress
from resolver.entrypoints.webhook.executors import (
    DEFAULT_TIMES,
    ExecutorKind,
    LeaseTimes,
    RegisteredExecutor,
)
from resolver.entrypoints.webhook.issue_history import IssueHistories
from resolver.entrypoints.webhook.metrics import ServerMetrics, serve_metrics
from resolver.entrypoints.webhook.pause_notices import announce_pauses
from resolver.entrypoints.webhook.queue_notices import QueueNotices
from resolver.entrypoints.webhook.request_queue import RequestQueue, StartedRequest
from resolver.entrypoints.webhook.run_archive import RunArchive
from resolver.entrypoints.webhook.run_index import RunIndex, RunIndexer
from resolver.entrypoints.webhook.run_restore import ArchivedRunFolders
from resolver.entrypoints.webhook.sql_request_queue import SqlRequestQueue
from resolver.entrypoints.webhook.worker import Handlers, Worker, WorkResult
from resolver.errors import UsageError
from resolver.events.stream import utc_now
from resolver.models.run import Trigger
from resolver.runs.common import app_login, open_host, require_model, run_id
from resolver.runs.pipeline import run_pipeline
from resolver.runs.wiring.models import preload_models
from resolver.runs.wiring.sandbox import ForgeTokens, RunHost
from resolver.security.redaction import Redactor

logger = logging.getLogger("resolver.entrypoints.webhook")

PAUSE_NOTICE_SECONDS = 3.0
"""Maximum time for telling all conversations of active runs that this process ends."""

HAND_OVER_SECONDS = 6.0
"""Maximum time for handing the claims of this process back when it is told to end."""

LEASE_VARIABLE = "TEST_LEASE_SECONDS"
"""Environment variable with another duration of the lease, for tests. It is no setting: all
processes of a database need the same."""


@dataclass(frozen=True)
class ExecutorProcess:
    """A process that is registered as an executor.

    settings: with Resolver's own login, as far as it is known. machine: its tokens are refused when
    the lease has ended.
    """

    settings: Settings
    machine: RunHost
    url: URL
    folder: DataFolder
    queue: RequestQueue
    executor: RegisteredExecutor
    worker: Worker
    runs: DeliveryRunner
    index: RunIndex
    metrics: ServerMetrics

    def start(self) -> None:
        """Keep the lease, and start to process requests. Raises UsageError."""
        self.executor.start_heartbeat(self._restart)
        self.worker.start()

    def load_modules(self) -> None:
        """Import what runs need. They are threads of this process, and the first one then finds the
        modules loaded."""
        import_lazy_modules()
        preload_models(self.settings)

    def _restart(self) -> None:
        """Start this program again in this process, as a new executor, because the lease is lost.

        Nothing of the old executor remains: no thread, no connection and no sandbox. Its id is
        never used again.
        """
        logger.error(
            "this process could not renew its lease in the database; its runs end here and continue"
            " in other processes; it starts again as a new one"
        )
        self.executor.wait_for_database()
        self.folder.note_stop()
        logging.shutdown()
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - the program itself


def open_process(
    environment: Mapping[str, str],
    options: Mapping[str, Any],
    kind: ExecutorKind,
    concurrency: int,
    metrics_address: tuple[str, int] | None = None,
) -> ExecutorProcess:
    """Return the process, registered as an executor, with its signal handlers installed.

    environment, options: sources of the settings. concurrency: maximum number of runs at a time.
    metrics_address: host and port of the metrics; None to serve none.

    Raises UsageError if a setting, the database or the data folder can't be used.
    """
    settings = load_settings(options, environment)
    require_credentials(settings)
    url, folder = _open_stores(settings, kind, concurrency)
    machine = open_host(environment)
    secrets = (*settings.secrets, *machine.secrets, str(url.password or ""))
    redactor = Redactor(secrets, machine.tokens.issued_tokens)
    log_to_stderr(redactor, settings.server.log_format)
    options = {**options, **app_login(settings, machine)}
    settings = load_settings(options, environment)
    ending = _Ending(folder)
    # Here the next start finds and removes the clones and local sandboxes of interrupted runs.
    tempfile.tempdir = str(folder.empty_scratch())
    executor = RegisteredExecutor(url, kind, concurrency, _lease_times(environment))
    queue = SqlRequestQueue(url, executor.id)
    metrics = _open_metrics(queue, metrics_address)
    issued_tokens, retry = machine.tokens.issued_tokens, _outage_retry(settings)
    index = RunIndex(url)
    indexer = RunIndexer(index, executor.id)
    runs = DeliveryRunner(
        environment,
        options,
        folder.path,
        _open_histories(url, folder.path),
        ledger=SpendingLedger(url),
        issued_tokens=issued_tokens,
        outage_retry=retry,
        waiting=QueueNotices(metrics.observe_comment),
        execute=metrics.counting(indexer.recording(run_pipeline)),
        archived=_open_archive(url, folder.path),
        require_lease=executor.fence.require_valid,
    )
    progress = partial(measure_progress, runs.folders)
    predecessor = folder.take_predecessor(executor.id)
    try:
        executor.register()
        queue.recover(folder.take_stop_note(), progress, utc_now(), predecessor)
    except DatabaseError as error:
        raise UsageError(error.what, error.next_step) from error
    handlers = _handlers(runs, indexer, retry, progress)
    worker = Worker(url, queue, handlers, executor, concurrency)
    ending.drain = partial(worker.drain, partial(_announce_pauses, runs))
    tokens = ForgeTokens(issued_tokens, require_lease=executor.fence.require_valid)
    machine = replace(machine, tokens=tokens)
    return ExecutorProcess(
        settings, machine, url, folder, queue, executor, worker, runs, index, metrics
    )


def _announce_pauses(runs: DeliveryRunner, triggers: Collection[Trigger]) -> None:
    """Tell the conversations of active runs that they pause, because this process ends."""
    # The runs themselves may not write any more.
    host = replace(runs.host(), tokens=ForgeTokens(runs.issued_tokens))
    announce_pauses(triggers, runs.settings(), host, utc_now(), PAUSE_NOTICE_SECONDS)


def _outage_retry(settings: Settings) -> timedelta:
    return timedelta(seconds=settings.retry_seconds.outage)


def require_credentials(settings: Settings) -> None:
    """Raise UsageError if there is no model, or no token for GitHub."""
    require_model(settings)
    has_token = settings.github_token is not None and settings.github_token.get_secret_value()
    if not has_token and settings.app_id is None:
        raise UsageError(
            "there is no GitHub token",
            "set RESOLVER_APP_ID and RESOLVER_APP_PRIVATE_KEY, or GITHUB_TOKEN",
        )


def _lease_times(environment: Mapping[str, str]) -> LeaseTimes:
    seconds = environment.get(LEASE_VARIABLE, "")
    return LeaseTimes.lasting(float(seconds)) if seconds else DEFAULT_TIMES


def _open_stores(
    settings: Settings, kind: ExecutorKind, concurrency: int
) -> tuple[URL, DataFolder]:
    """Return the database and the data folder, which no other process uses. Raises UsageError."""
    url = parse_database_url(settings.server.database_url)
    is_sqlite = url.get_backend_name() == "sqlite"
    if is_sqlite and (kind is ExecutorKind.WORKER or not concurrency):
        raise UsageError(
            f"{url} is a SQLite database, which only one process can use",
            "run `resolver serve` alone, which executes runs itself, or let all processes use one "
            "PostgreSQL: RESOLVER_DATABASE_URL=postgresql://HOST/NAME",
        )
    folder = DataFolder(Path(settings.server.data_dir))
    if is_sqlite:
        lock_file(Path(f"{url.database}.lock"))
    return url, folder


def _open_histories(url: URL, folder: Path) -> IssueHistories:
    """Return the histories, with those that an earlier release kept as files."""
    histories = IssueHistories(url)
    histories.import_files(folder)
    return histories


def _open_archive(url: URL, folder: Path) -> ArchivedRunFolders | None:
    """Return the folders of runs with their archive in PostgreSQL, which several machines can use.

    With SQLite there is one machine, which has the files already.
    """
    is_shared = url.get_backend_name() == "postgresql"
    return ArchivedRunFolders(RunArchive(url), folder) if is_shared else None


def _open_metrics(queue: RequestQueue, address: tuple[str, int] | None) -> ServerMetrics:
    """Return the metrics, and serve them if they have an address. Raises UsageError."""
    metrics = ServerMetrics(queue.backlog)
    if address is not None:
        logger.info("metrics are on %s", serve_metrics(metrics, *address))
    return metrics


def _handlers(
    runs: DeliveryRunner, indexer: RunIndexer, retry: timedelta, progress: Callable[..., int]
) -> Handlers:
    """Return the functions that the worker calls for its requests."""
    commands = CommentCommands(runs, runs.at_work, runs.threads)

    def work(started: StartedRequest) -> WorkResult:
        trigger = started.request.trigger
        with logging_run(run_id(trigger.key, trigger.at)):
            return runs.work_on(started)

    return Handlers(
        indexer.recording_work(work), commands.obey, runs.announce, runs.is_for_us, progress, retry
    )


class _Ending:
    """Ends this process on SIGTERM and SIGINT. drain: hands its claims back; None if it has none.

    A regular exit would wait for the threads of the runs, which can take an hour.
    """

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self.drain: Callable[[], None] | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)

    def _end(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - signal handler
        logger.info(
            "stopped by %s; unfinished runs continue at the next start, or in another process",
            signal.Signals(number).name,
        )
        self._folder.note_stop()
        if self.drain is not None:
            # In a thread, because the interrupted one may hold a lock that is needed.
            thread = threading.Thread(target=self._drain, name="drain", daemon=True)
            thread.start()
            thread.join(HAND_OVER_SECONDS)
        logging.shutdown()
        os._exit(0)

    def _drain(self) -> None:
        assert self.drain is not None
        try:
            self.drain()
        except DatabaseError as error:
            logger.warning("other processes take over later: %s", error.what)
