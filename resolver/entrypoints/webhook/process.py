"""The parts that `resolver serve` and `resolver worker` have in common: the stores, the executor
with its lease, the worker, and the orderly end of the process."""

import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from sqlalchemy.engine import URL

from resolver.config.server_variables import ServerVariables, read_server_variables
from resolver.config.settings import Settings, load_settings
from resolver.entrypoints.http_server import log_to_stderr
from resolver.entrypoints.webhook.background_threads import BackgroundThreads
from resolver.entrypoints.webhook.commands import CommentCommands
from resolver.entrypoints.webhook.data_folder import lock_file, open_data_folder
from resolver.entrypoints.webhook.executors import LEASE_SECONDS, LeasedExecutor
from resolver.entrypoints.webhook.metrics import count_run, serve_metrics
from resolver.entrypoints.webhook.request_queue import RequestQueue
from resolver.entrypoints.webhook.request_runner import RequestRunner
from resolver.entrypoints.webhook.retention import remove_daily
from resolver.entrypoints.webhook.worker import RequestIntake, Worker
from resolver.errors import UsageError
from resolver.llm.library import preload_litellm
from resolver.runs.common import open_host, require_model, server_login
from resolver.runs.wiring.models import preload_models
from resolver.runs.wiring.sandbox import ForgeTokens
from resolver.security.redaction import Redactor
from resolver.storage.database import DatabaseError, ServerDatabase, parse_database_url
from resolver.storage.quota_table import QuotaTable
from resolver.storage.run_index import RunIndex
from resolver.storage.run_store import open_run_store

logger = logging.getLogger("resolver.entrypoints.webhook")

HAND_OVER_SECONDS = 3.5
"""Maximum time for returning the requests of this process to the queue when it is asked to end."""


@dataclass(frozen=True)
class ProcessOptions:
    """The options of a process that are no settings of its runs.

    concurrency: maximum number of runs at a time; 0 to execute none. metrics_address: host and port
    of the metrics; None to serve none. lease_seconds: None for `LEASE_SECONDS`; all processes of a
    database need the same.
    """

    concurrency: int
    metrics_address: tuple[str, int] | None = None
    lease_seconds: float | None = None


class ServerProcess:
    """A process of the server: it is registered as an executor, with its signal handlers installed.

    environment, options: sources of the settings. is_worker: True for `resolver worker`. Raises
    UsageError if a setting, the database, the store of runs or the data folder can't be used.

    settings: with Resolver's own login. machine: its tokens are refused when the lease has ended.
    worker: None if the process executes no requests. threads: of the tasks that this process has
    until it ends.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        options: Mapping[str, Any],
        process: ProcessOptions,
        is_worker: bool = False,
    ) -> None:
        settings = load_settings(options, environment)
        _require_credentials(settings)
        self.variables = read_server_variables(environment)
        url = _checked_database(self.variables, bool(process.concurrency) and not is_worker)
        self.folder = open_data_folder(Path(self.variables.data_dir))
        if url.get_backend_name() == "sqlite":
            lock_file(Path(f"{url.database}.lock"))
        machine = open_host(environment)
        # Without the secrets of this process.
        secrets = (*settings.secrets, *machine.secrets, str(url.password or ""))
        log_to_stderr(Redactor(secrets, machine.tokens.issued_tokens))
        store = open_run_store(self.variables.run_store, self.folder / "runs", environment)
        store.check()
        self.database = ServerDatabase(url)
        options = {**options, "bot_login": server_login(settings, machine)}
        self.settings = load_settings(options, environment)
        tempfile.tempdir = str(self.folder / "tmp")
        executor = LeasedExecutor(self.database, process.lease_seconds or LEASE_SECONDS)
        self.queue = RequestQueue(self.database)
        if process.metrics_address is not None:
            address = serve_metrics(self.queue.backlog, *process.metrics_address)
            logger.info("metrics are on %s", address)
        self.index = RunIndex(self.database)
        require_lease = executor.require_valid if process.concurrency else None
        tokens = ForgeTokens(machine.tokens.issued_tokens, require_lease=require_lease)
        self.machine = replace(machine, tokens=tokens)
        self.runs = RequestRunner(
            environment,
            options,
            store,
            self.index,
            quota_table=QuotaTable(self.database),
            issued_tokens=tokens.issued_tokens,
            outage_retry=timedelta(seconds=self.settings.pace.outage),
            on_result=count_run,
            require_lease=require_lease,
        )
        self.intake = RequestIntake(self.queue, self.runs.acknowledge)
        self.threads = BackgroundThreads()
        self._remove_daily = partial(remove_daily, self.database, self.queue, store)
        self._executor = executor
        self.worker: Worker | None = None
        if process.concurrency:
            executor.register()
            commands = CommentCommands(self.runs, self.queue)
            parts = (url, self.queue, self.runs, commands, executor)
            self.worker = Worker(*parts, process.concurrency)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)

    def start(self) -> None:
        """Keep the lease, and start to execute requests. Raises UsageError."""
        self.threads.start("retention", self._remove_daily)
        if self.worker is not None:
            self.threads.start("heartbeat", partial(self._executor.keep_lease, _restart))
            self.worker.start()
            self.threads.start("recovery", self.worker.look_forever)

    def preload(self) -> None:
        """Import what a run needs, and wait for it: while it is imported, nothing is answered."""
        if self.worker is not None:
            preload_models(self.settings, lambda: preload_litellm().join())

    def _end(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - signal handler
        """End this process at the first signal. A regular exit would wait for the threads of the
        runs, which can take an hour."""
        for ignored in (signal.SIGTERM, signal.SIGINT):
            signal.signal(ignored, signal.SIG_IGN)
        logger.info(
            "stopped by %s; unfinished runs continue at the next start, or in another process",
            signal.Signals(number).name,
        )
        # In a thread, because the interrupted one may hold a lock that is needed.
        thread = threading.Thread(target=self._drain, name="drain", daemon=True)
        thread.start()
        thread.join(HAND_OVER_SECONDS)
        logging.shutdown()
        os._exit(0)

    def _drain(self) -> None:
        try:
            if self.worker is not None:
                self.worker.drain()
        except DatabaseError as error:
            logger.warning("other processes take over later: %s", error.what)


def _restart() -> None:
    """Start this program again in this process, as a new executor, because the lease is lost.

    Nothing of the old executor remains: no thread, no connection and no sandbox. Its id is never
    used again.
    """
    logger.error(
        "this process could not renew its lease in the database; its runs end here and continue in"
        " other processes; it starts again as a new one"
    )
    logging.shutdown()
    os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - the program itself


def run_worker_process(
    environment: Mapping[str, str], options: Mapping[str, Any], process: ProcessOptions
) -> None:
    """Execute requests, without accepting deliveries, until a signal arrives. See `ServerProcess`
    for the arguments and errors."""
    worker = ServerProcess(environment, options, process, is_worker=True)
    worker.start()
    logger.info("works for %s, its runs are in %s", worker.database.url, worker.folder)
    worker.preload()
    threading.Event().wait()


def _require_credentials(settings: Settings) -> None:
    """Raise UsageError if there is no model or no token for GitHub."""
    require_model(settings)
    if not settings.github_token and settings.app_id is None:
        raise UsageError(
            "there is no GitHub token",
            "set RESOLVER_APP_ID and RESOLVER_APP_PRIVATE_KEY, or GITHUB_TOKEN",
        )


def _checked_database(server: ServerVariables, is_alone: bool) -> URL:
    """Return the database. is_alone: True if the process can do without another one.

    Raises UsageError if the processes of the server would not have everything in common.
    """
    url = parse_database_url(server.database_url)
    if url.get_backend_name() == "sqlite" and not is_alone:
        raise UsageError(
            f"{url} is a SQLite database, which only one server can use",
            "run `resolver serve` alone, which executes runs itself, or let all processes use one "
            "PostgreSQL: RESOLVER_DATABASE_URL=postgresql://HOST/NAME",
        )
    if url.get_backend_name() == "postgresql" and not server.run_store:
        raise UsageError(
            "with PostgreSQL, several processes need one store of runs",
            "set RESOLVER_RUN_STORE to s3://BUCKET/PREFIX, or to a folder that all of them have",
        )
    return url
