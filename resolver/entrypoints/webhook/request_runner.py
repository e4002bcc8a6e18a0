"""Executes the queued requests that start a run, through the same pipeline as every other entry
point.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from resolver.config.server_variables import read_server_variables
from resolver.config.settings import Settings, load_settings
from resolver.config.temporary_directory import temporary_directory
from resolver.entrypoints.http_server import logging_run
from resolver.entrypoints.webhook.request_queue import QueuedRequest, retry_end
from resolver.entrypoints.webhook.run_commands import RunCommands
from resolver.entrypoints.webhook.run_indexer import is_deferred, row_of_result, row_of_stage
from resolver.errors import LeaseLost, Refused, ResolverError
from resolver.events.run_log import is_resumable
from resolver.events.stream import Clock, utc_now
from resolver.git.clone_cache import CLONES_FOLDER
from resolver.github.events.permission import IgnoredEvent, authorize
from resolver.github.github_forge import GitHubForge
from resolver.models.known_failures import OUTAGES
from resolver.models.run import RunState, Trigger
from resolver.runs.common import github_forge, open_host, run_id
from resolver.runs.conversation.command_handler import (
    applies_to_run,
    concerns_earlier_run,
    report_no_active_run,
)
from resolver.runs.conversation.commands import (
    LOG_COMMANDS,
    continue_earlier_run,
    find_run_to_continue,
    locate_dispatch,
)
from resolver.runs.output import Output
from resolver.runs.pipeline import run_pipeline
from resolver.runs.stages import RunRequest, RunResult, StageValues
from resolver.runs.wiring.sandbox import ForgeTokens, RequireLease, RunHost
from resolver.security.redaction import IssuedTokens
from resolver.storage.database import DatabaseError
from resolver.storage.earlier_runs import OUTCOME, EarlierRun
from resolver.storage.quota_table import QuotaTable
from resolver.storage.run_index import IndexedRunStore, RunIndex
from resolver.storage.run_store import RunStore, RunWriter

logger = logging.getLogger("resolver.entrypoints.webhook")


Pipeline = Callable[[RunRequest, GitHubForge], RunResult]
"""Executes a run, like `run_pipeline`. Raises nothing but LeaseLost."""


@dataclass(frozen=True)
class RequestResult:
    """The result of an executed request."""

    run: str
    exit_code: int
    state: str


@dataclass(frozen=True)
class RequestRunner:
    """Executes queued requests that start a run.

    environment, options: sources of the settings, which are loaded again for each run.
    store: has the logs and files of all runs. A run works in a temporary folder.
    index: the runs of each conversation.
    quota_table: the quotas and the cost of runs; with None they are kept in the repositories.
    issued_tokens: learns the tokens that are issued for runs, so that the server's log is redacted.
    outage_retry: how long a run is repeated during an outage.
    pipeline: executes a run. on_result: is called with the result of each attempt.
    require_lease: raises LeaseLost when this process may not write any more.
    """

    environment: Mapping[str, str]
    options: Mapping[str, Any]
    store: RunStore
    index: RunIndex
    quota_table: QuotaTable | None = None
    issued_tokens: IssuedTokens = field(default_factory=IssuedTokens)
    now: Clock = utc_now
    outage_retry: timedelta = timedelta(0)
    pipeline: Pipeline = run_pipeline
    on_result: Callable[[RunResult], None] = lambda _: None
    require_lease: RequireLease | None = None

    def acknowledge(self, trigger: Trigger) -> None:
        """React to the request of a run that waits, so that people see it was received. Never
        raises."""
        if trigger.number is None:
            return
        settings = self.settings()
        try:
            forge = github_forge(settings, trigger.repository, self.host())
            authorize(trigger, forge, settings.access_policy)
            forge.acknowledge(trigger)
        except Refused:
            pass  # the run will be refused and report it
        except ResolverError as error:
            logger.warning("a waiting request got no reaction: %s", error.what)

    def settings(self, file: Mapping[str, Any] | None = None) -> Settings:
        """Return the settings. file: those that the repository has itself."""
        return load_settings(self.options, self.environment, file)

    def _page_of(self, run: str, settings: Settings) -> str:
        server = read_server_variables(self.environment)
        has_pages = server.public_url and server.app_client_secret and settings.has_app
        return f"{server.public_url}/runs/{run}" if has_pages else ""

    def host(self) -> RunHost:
        """Return the description of this machine for one run, which gets tokens of its own."""
        tokens = ForgeTokens(self.issued_tokens, self.now, self.require_lease)
        machine = replace(open_host(self.environment), tokens=tokens)
        return replace(machine, clones=machine.cache / CLONES_FOLDER)

    def execute(
        self,
        queued: QueuedRequest,
        failure: str | None = None,
        commands: RunCommands | None = None,
    ) -> RequestResult:
        """Execute one request and return its result. Executing it again returns what was done
        before.

        failure: why the run is given up, which its conversation is told; None to execute it.
        commands: those for the run.

        Raises ResolverError with a cause in `OUTAGES` if the request is to be repeated later.

        The run's id is derived from the event, so that an interrupted run is resumed under the same
        id and from its own log. A run with a damaged log starts from the beginning.
        """
        commands = commands or RunCommands()
        settings, host = self.settings(), self.host()
        run = run_id(queued.trigger.key, queued.trigger.at)
        forge = github_forge(settings, queued.trigger.repository, host)
        trigger = _locate(queued.trigger, forge, queued.attempts)
        if isinstance(trigger, IgnoredEvent):
            logger.info("run %s is not started: %s", run, trigger.reason)
            return RequestResult(run, 0, "ignored")
        where = f"{trigger.repository}#{trigger.number}"
        logger.info("run %s starts for %s, attempt %d", run, where, queued.attempts)
        retry_until = retry_end(queued, self.outage_retry, self.now())
        with temporary_directory() as temporary:
            # Nothing else is in the folder of a run.
            writer = self.store.open_writer(run, temporary / run, host.require_lease)
            request = RunRequest(
                trigger,
                run,
                Output(temporary / run, resume=True),
                self.settings,
                host,
                control=commands.control,
                can_be_continued=True,
                retry_until=retry_until if retry_until > self.now() else None,
                quota_table=self.quota_table,
                page=self._page_of(run, settings),
                log_copy=writer,
                observe=partial(self._store_stage, writer),
            )
            if failure is not None:
                logger.error("giving up on run %s: %s", run, failure)
                next_step = "see the operator's log for details, then ask again"
                request = replace(request, ended_by=ResolverError(failure, next_step))
            try:
                with logging_run(run):
                    return self._execute(request, settings, forge, commands)
            finally:
                writer.try_to_save_files()

    def _store_stage(self, writer: RunWriter, values: StageValues) -> None:
        """Store what a run has reached. The index lacks it while the database can't be used."""
        writer.try_to_save_files()
        try:
            self.index.put(values.request.run, values.request.trigger, row_of_stage(values))
        except DatabaseError as error:
            logger.warning("the index of runs can't be written: %s", error.what)

    def _execute(
        self,
        request: RunRequest,
        settings: Settings,
        forge: GitHubForge,
        commands: RunCommands,
    ) -> RequestResult:
        """Execute the run unless that was done before, or there is nothing for it to act on."""
        trigger, run = request.trigger, request.run
        if _is_done(request.output.folder, trigger, forge):
            logger.info("run %s was handled before", run)
            return RequestResult(run, 0, "repeated")
        if self._has_no_subject(request):
            report_no_active_run(trigger, forge, settings)
            return RequestResult(run, 0, "nothing")
        commands.pass_on()  # a stop has to be found before the first step
        return self._start_run(request, settings, forge)

    def _start_run(
        self, request: RunRequest, settings: Settings, forge: GitHubForge
    ) -> RequestResult:
        """Start the run, resume an interrupted attempt or continue an earlier run."""
        trigger, run = request.trigger, request.run
        row = {
            "state": RunState.RUNNING.value,
            "reason": "",
            "ended": None,
            # A row from before an outage may be of a trigger whose issue was not known yet.
            "number": trigger.number,
            "subject": trigger.subject,
        }
        self.index.put(run, trigger, row)
        try:
            request = self._with_earlier_work(request, settings)
        except (DatabaseError, LeaseLost):
            raise  # the request is repeated when the database is back, or in another process
        except ResolverError as error:
            request = replace(request, ended_by=error)
        result = self.pipeline(request, forge)
        self.on_result(result)
        self.index.put(run, trigger, row_of_result(result, self.now().timestamp()))
        # An outage is raised instead of returned, so that the worker defers the request and repeats
        # it. Any other failure is a result: it was reported in the conversation, and the request is
        # done.
        if is_deferred(result):
            reason = result.failure.what if result.failure else "the model provider did not respond"
            raise ResolverError(f"run {run}: {reason}", cause=result.outage)
        outcome, pull = result.outcome_file, result.publication.pull_request
        is_success = result.exit_code in (0, 3)
        logger.log(
            logging.INFO if is_success else logging.WARNING,
            "run %s for %s#%s: %s: %s",
            run,
            trigger.repository,
            trigger.number,
            outcome.state,
            (is_success and pull and pull.url) or outcome.reason,
        )
        return RequestResult(run, result.exit_code, outcome.state.value)

    def _with_earlier_work(self, request: RunRequest, settings: Settings) -> RunRequest:
        """Return the request: resumed, new, or continuing the conversation's last run."""
        output, trigger = request.output, request.trigger
        stored, continues = output.request, trigger.command in LOG_COMMANDS
        # The log of an earlier run is copied before request.json is written, so a log without
        # request.json can be such a copy. It is not yet an interrupted run.
        if is_resumable(output.log) and (stored is not None or not continues):
            continuation = stored.continuation if stored else None
            return replace(request, resume=True, continuation=continuation)
        output.move_earlier_files()
        if not continues or request.ended_by is not None:
            return request
        with temporary_directory() as earlier_runs:
            trigger, earlier = self._last_run(trigger, request.run, earlier_runs)
            return continue_earlier_run(request, trigger, earlier, settings)

    def _has_no_subject(self, request: RunRequest) -> bool:
        """Return True if the request is about something that an earlier run left (an action that
        waits for approval, an unpublished change) and that is no longer there."""
        if not concerns_earlier_run(request.trigger) or is_resumable(request.output.log):
            return False
        return not self.applies_to_run(request.trigger)

    def applies_to_run(self, trigger: Trigger) -> bool:
        """Return True if a run of the conversation left something for such a command to act on."""
        run = run_id(trigger.key, trigger.at)
        with temporary_directory() as folder:
            return applies_to_run(*self._last_run(trigger, run, folder))

    def _last_run(
        self, trigger: Trigger, run: str, folder: Path
    ) -> tuple[Trigger, EarlierRun | None]:
        """Return the result of `find_run_to_continue` for the runs before this one. folder: gets
        the files of the runs that are searched."""
        runs = IndexedRunStore(trigger.repository, self.index, self.store, folder)
        return find_run_to_continue(trigger, run, runs)


def _locate(trigger: Trigger, forge: GitHubForge, attempt: int) -> Trigger | IgnoredEvent:
    """Return the trigger with its conversation, or the reason why there is nothing to do.

    A trigger whose conversation can't be determined is ignored, since nobody waits for it. Raises
    ResolverError in an outage.
    """
    try:
        return locate_dispatch(trigger, forge, is_rerun=attempt > 1)
    except ResolverError as error:
        if error.cause in OUTAGES:
            raise
        return IgnoredEvent(error.what)


def _is_done(folder: Path, trigger: Trigger, forge: GitHubForge) -> bool:
    """Return True if the run of this folder has ended and its final comment exists: then the folder
    stays as it is."""
    if not (folder / OUTCOME).exists():
        return False
    try:
        publication = forge.find_publication(trigger)
    except ResolverError:
        return False  # the run will meet the same error and report it
    return publication is not None and publication.comment_url is not None
