"""The parts that `resolver serve`, the process of its runs, and `resolver worker` have in common:
the stores, the executor with its lease, the worker, and the orderly end of the process."""

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

from resolver.config.settings import Settings, load_settings
from resolver.entrypoints.http_server import log_to_stderr
from resolver.entrypoints.log_format import logging_run
from resolver.entrypoints.webhook.commands import CommentCommands
from resolver.entrypoints.webhook.data_folder import (
    ONLY_PROCESS,
    RUNS_PROCESS,
    WEB_PROCESS,
    DataFolder,
    lock_file,
)
from resolver.entrypoints.webhook.executors import (
    DEFAULT_TIMES,
    ExecutorKind,
    LeaseTimes,
    RegisteredExecutor,
)
from resolver.entrypoints.webhook.metrics import Observation, ServerMetrics, serve_metrics
from resolver.entrypoints.webhook.pause_notices import post_pause_notices
from resolver.entrypoints.webhook.request_queue import StartedRequest
from resolver.entrypoints.webhook.request_runner import RequestRunner, measure_progress
from resolver.entrypoints.webhook.retention import RetentionTask
from resolver.entrypoints.webhook.run_indexer import RunIndexer
from resolver.entrypoints.webhook.run_restore import ArchivedRunFolders
from resolver.entrypoints.webhook.sql_request_queue import SqlRequestQueue
from resolver.entrypoints.webhook.worker import RequestHandlers, RequestResult, Worker
from resolver.entrypoints.webhook.worker_supervisor import LEASE_LOST_EXIT, WorkerSupervisor
from resolver.errors import UsageError
from resolver.events.stream import utc_now
from resolver.models.run import Trigger
from resolver.runs.common import open_host, require_model, run_id, server_login
from resolver.runs.pipeline import run_pipeline
from resolver.runs.wiring.sandbox import ForgeTokens, RunHost
from resolver.security.redaction import Redactor
from resolver.storage.blob_store import BlobStore, open_blob_store
from resolver.storage.database import DatabaseError, ServerDatabase, parse_database_url
from resolver.storage.issue_history import IssueHistories
from resolver.storage.quota_table import QuotaTable
from resolver.storage.run_archive import RunArchive
from resolver.storage.run_index import RunIndex

logger = logging.getLogger("resolver.entrypoints.webhook")

PAUSE_NOTICE_SECONDS = 3.0
"""Maximum time for writing the notices that active runs pause."""

HAND_OVER_SECONDS = 6.0
"""Maximum time for handing the claims of this process back when it is asked to end."""

CHILD_HAND_OVER_SECONDS = 5.0
"""The same for the process of the runs. Its parent waits for it."""

Forward = Callable[[Observation], None]

LEASE_VARIABLE = "TEST_LEASE_SECONDS"
"""Environment variable with another duration of the lease, for tests. It is no setting: all
processes of a database need the same."""


@dataclass(frozen=True)
class ExecutorProcess:
    """A process that is registered as an executor.

    settings: with Resolver's own login, and the options that they were made of. machine: its tokens
    are refused when the lease has ended. retention: removes old runs. child: executes the runs of
    `resolver serve`, so that this process starts no worker. is_child: True in that process.
    """

    settings: Settings
    options: Mapping[str, Any]
    machine: RunHost
    database: ServerDatabase
    folder: DataFolder
    queue: SqlRequestQueue
    executor: RegisteredExecutor
    worker: Worker
    runs: RequestRunner
    index: RunIndex
    metrics: ServerMetrics
    retention: RetentionTask
    child: WorkerSupervisor | None = None
    is_child: bool = False

    def start(self) -> None:
        """Keep the lease, and start to process requests. Raises UsageError."""
        self.executor.start_heartbeat(self._restart)
        if self.child is None:
            self.worker.start()
        if not self.is_child:
            self.retention.start()

    def _restart(self) -> None:
        """Start this program again in this process, as a new executor, because the lease is lost.

        Nothing of the old executor remains: no thread, no connection and no sandbox. Its id is
        never used again. The process of the runs only ends, and its parent starts another one.
        """
        logger.error(
            "this process could not renew its lease in the database; its runs end here and continue"
            " in other processes; it starts again as a new one"
        )
        self.executor.wait_for_database()
        self.folder.note_stop()
        if self.child is not None:
            self.child.kill()
        logging.shutdown()
        if self.is_child:
            os._exit(LEASE_LOST_EXIT)
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - the program itself


def open_process(
    environment: Mapping[str, str],
    options: Mapping[str, Any],
    kind: ExecutorKind,
    concurrency: int,
    metrics_address: tuple[str, int] | None = None,
    child: WorkerSupervisor | None = None,
    forward: Forward | None = None,
) -> ExecutorProcess:
    """Return the process, registered as an executor, with its signal handlers installed.

    environment, options: sources of the settings. concurrency: maximum number of runs at a time in
    this process. metrics_address: host and port of the metrics; None to serve none. child: executes
    the runs in its place. forward: in that child, gets what its metrics observe. Raises UsageError
    if a setting, the database, the object store or the data folder can't be used.
    """
    settings = _checked_settings(options, environment)
    is_child = forward is not None
    url, folder = _open_stores(settings, kind, concurrency, child is not None, is_child)
    machine = open_host(environment)
    _start_log(settings, machine, url)
    blobs = _open_blobs(settings, url, environment)
    database = ServerDatabase(url)
    options = {**options, "bot_login": server_login(settings, machine)}
    settings = load_settings(options, environment)
    termination = _TerminationHandler(folder, is_child)
    # Here the next start finds and removes the clones and local sandboxes of interrupted runs.
    tempfile.tempdir = str(folder.empty_scratch())
    executor = RegisteredExecutor(url, kind, concurrency, _lease_times(environment))
    queue = SqlRequestQueue(url, executor.id, settings.run_quotas.user_active)
    metrics = _open_metrics(queue, metrics_address, child, forward)
    stores = _RunStores(database, folder, _open_archive(database, folder.path, blobs))
    indexer = RunIndexer(RunIndex(database), executor.id)
    runs = _open_runs(environment, options, stores, machine, executor, metrics, indexer)
    handlers = _handlers(runs, indexer, _outage_retry(settings))
    _register(executor, queue, folder, handlers.measure_progress, child is not None)
    on_added = None if child is None else child.wake
    worker = Worker(url, queue, handlers, executor, concurrency, executor.database_now, on_added)
    termination.drain = partial(_drain, worker, runs, child)
    tokens = ForgeTokens(machine.tokens.issued_tokens, require_lease=executor.fence.require_valid)
    machine = replace(machine, tokens=tokens)
    return ExecutorProcess(
        settings,
        options,
        machine,
        database,
        folder,
        queue,
        executor,
        worker,
        runs,
        indexer.index,
        metrics,
        RetentionTask(url, folder.path, settings.server.retention_days, blobs),
        child,
        is_child,
    )


@dataclass(frozen=True)
class _RunStores:
    """Where the data of runs are stored."""

    database: ServerDatabase
    folder: DataFolder
    archived: ArchivedRunFolders | None


def _open_runs(
    environment: Mapping[str, str],
    options: Mapping[str, Any],
    stores: _RunStores,
    machine: RunHost,
    executor: RegisteredExecutor,
    metrics: ServerMetrics,
    indexer: RunIndexer,
) -> RequestRunner:
    """Return the object that executes runs and finds earlier ones."""
    database, path = stores.database, stores.folder.path
    return RequestRunner(
        environment,
        options,
        path,
        IssueHistories(database),
        quota_table=QuotaTable(database),
        issued_tokens=machine.tokens.issued_tokens,
        outage_retry=_outage_retry(load_settings(options, environment)),
        pipeline=metrics.instrument(indexer.wrap_pipeline(run_pipeline)),
        archived=stores.archived,
        require_lease=executor.fence.require_valid,
    )


def _register(
    executor: RegisteredExecutor,
    queue: SqlRequestQueue,
    folder: DataFolder,
    progress: Callable[..., int],
    has_child: bool,
) -> None:
    """Store the executor, and recover the claims of those that died. Raises UsageError.

    has_child: this process claims nothing, and its child recovers the claims of the child before
    it. In SQLite, where leases never end, only the child is an executor.
    """
    predecessor = folder.take_predecessor(executor.id)
    try:
        if not has_child:
            executor.register()
            queue.recover(folder.take_stop_note(), progress, predecessor)
        elif executor.expires:
            executor.register(replaced=predecessor)
    except DatabaseError as error:
        raise UsageError(error.what, error.next_step) from error


def _drain(worker: Worker, runs: RequestRunner, child: WorkerSupervisor | None) -> None:
    """Let the child hand its runs over, and then do so here. Raises DatabaseError."""
    if child is not None:
        child.stop(HAND_OVER_SECONDS)
    worker.drain(partial(_post_pause_notices, runs))


def _post_pause_notices(runs: RequestRunner, triggers: Collection[Trigger]) -> None:
    """Write into the comments of active runs that they pause, because this process ends."""
    # The runs themselves may not write any more.
    host = replace(runs.host(), tokens=ForgeTokens(runs.issued_tokens))
    post_pause_notices(triggers, runs.settings(), host, utc_now(), PAUSE_NOTICE_SECONDS)


def _start_log(settings: Settings, machine: RunHost, url: URL) -> None:
    """Write the log to stderr, without the secrets of this process."""
    secrets = (*settings.secrets, *machine.secrets, str(url.password or ""))
    redactor = Redactor(secrets, machine.tokens.issued_tokens)
    log_to_stderr(redactor, settings.server.log_format)


def _open_blobs(settings: Settings, url: URL, environment: Mapping[str, str]) -> BlobStore | None:
    """Return the object store, if there is one. Raises UsageError if it refuses to be used."""
    blobs = open_blob_store(settings.server.blob_store, url, environment)
    if blobs is not None:
        blobs.check()
    return blobs


def _outage_retry(settings: Settings) -> timedelta:
    return timedelta(seconds=settings.retry_seconds.outage)


def _checked_settings(options: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
    """Return the settings of the server.

    Raises UsageError if they can't be used, and if there is no model or no token for GitHub.
    """
    settings = load_settings(options, environment)
    require_model(settings)
    has_token = settings.github_token is not None and settings.github_token.get_secret_value()
    if not has_token and settings.app_id is None:
        raise UsageError(
            "there is no GitHub token",
            "set RESOLVER_APP_ID and RESOLVER_APP_PRIVATE_KEY, or GITHUB_TOKEN",
        )
    return settings


def _lease_times(environment: Mapping[str, str]) -> LeaseTimes:
    seconds = environment.get(LEASE_VARIABLE, "")
    return LeaseTimes.lasting(float(seconds)) if seconds else DEFAULT_TIMES


def _open_stores(
    settings: Settings, kind: ExecutorKind, concurrency: int, has_child: bool, is_child: bool
) -> tuple[URL, DataFolder]:
    """Return the database and the data folder, which no other process uses, except for a
    `resolver serve` and its child. Raises UsageError."""
    url = parse_database_url(settings.server.database_url)
    is_sqlite = url.get_backend_name() == "sqlite"
    is_alone = not has_child and not is_child
    if is_sqlite and is_alone and (kind is ExecutorKind.WORKER or not concurrency):
        raise UsageError(
            f"{url} is a SQLite database, which only one server can use",
            "run `resolver serve` alone, which executes runs itself, or let all processes use one "
            "PostgreSQL: RESOLVER_DATABASE_URL=postgresql://HOST/NAME",
        )
    names = WEB_PROCESS if has_child else RUNS_PROCESS if is_child else ONLY_PROCESS
    folder = DataFolder(Path(settings.server.data_dir), names)
    if is_sqlite:
        lock_file(Path(f"{url.database}{names.lock}"), names.lock_seconds)
    return url, folder


def _open_archive(
    database: ServerDatabase, folder: Path, blobs: BlobStore | None
) -> ArchivedRunFolders | None:
    """Return the folders of runs with their archive in PostgreSQL, which several machines can use.

    With SQLite there is one machine, which has the files already.
    """
    is_shared = database.url.get_backend_name() == "postgresql"
    return ArchivedRunFolders(RunArchive(database, blobs=blobs), folder) if is_shared else None


def _open_metrics(
    queue: SqlRequestQueue,
    address: tuple[str, int] | None,
    child: WorkerSupervisor | None,
    forward: Forward | None,
) -> ServerMetrics:
    """Return the metrics, and serve them if they have an address. Raises UsageError."""
    metrics = ServerMetrics(queue.backlog, forward=forward)
    if child is not None:
        metrics.watch_process(child)
    if address is not None:
        logger.info("metrics are on %s", serve_metrics(metrics, *address))
    return metrics


def _handlers(runs: RequestRunner, indexer: RunIndexer, retry: timedelta) -> RequestHandlers:
    """Return the functions that the worker calls for its requests."""
    commands = CommentCommands(runs)

    def execute_run(started: StartedRequest) -> RequestResult:
        trigger = started.request.trigger
        with logging_run(run_id(trigger.key, trigger.at)):
            return runs.execute(started)

    return RequestHandlers(
        indexer.wrap_execute_run(execute_run),
        commands.execute,
        runs.acknowledge,
        partial(measure_progress, runs.folders),
        retry,
    )


class _TerminationHandler:
    """Ends this process at the first SIGTERM or SIGINT.

    drain: hands its claims back; None if it has none. is_child: True in the child process, whose
    parent logs that the server ends.

    A regular exit would wait for the threads of the runs, which can take an hour.
    """

    def __init__(self, folder: DataFolder, is_child: bool) -> None:
        self._folder, self._is_child, self._has_begun = folder, is_child, False
        self.drain: Callable[[], None] | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)

    def _end(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - signal handler
        if self._has_begun:
            return
        self._has_begun = True
        logger.log(
            logging.DEBUG if self._is_child else logging.INFO,
            "stopped by %s; unfinished runs continue at the next start, or in another process",
            signal.Signals(number).name,
        )
        self._folder.note_stop()
        if self.drain is not None:
            # In a thread, because the interrupted one may hold a lock that is needed.
            thread = threading.Thread(target=self._drain, name="drain", daemon=True)
            thread.start()
            thread.join(CHILD_HAND_OVER_SECONDS if self._is_child else HAND_OVER_SECONDS)
        logging.shutdown()
        os._exit(0)

    def _drain(self) -> None:
        assert self.drain is not None
        try:
            self.drain()
        except DatabaseError as error:
            logger.warning("other processes take over later: %s", error.what)
