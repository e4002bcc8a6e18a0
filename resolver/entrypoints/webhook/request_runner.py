"""Executes the queued requests that start a run, through the same pipeline as every other entry
point.

A run that was stopped while the server was down, or was interrupted too often, ends without being
started again. Its outcome is written here, because its page shows it as active until then.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from resolver.config.server_variables import read_server_variables
from resolver.config.settings import Settings, load_settings
from resolver.config.temporary_directory import temporary_directory
from resolver.controller.control import Control
from resolver.controller.limits import derive_outcome
from resolver.entrypoints.webhook.active_runs import ActiveRuns
from resolver.entrypoints.webhook.metrics import Pipeline
from resolver.entrypoints.webhook.page_links import page_url
from resolver.entrypoints.webhook.request_queue import StartedRequest, retry_end
from resolver.entrypoints.webhook.worker import RequestResult
from resolver.errors import LeaseLost, Refused, ResolverError
from resolver.events.log import read_log
from resolver.events.run_log import cost_of_run, is_resumable
from resolver.events.state import State
from resolver.events.stream import Clock, utc_now
from resolver.git.clone_cache import CLONES_FOLDER
from resolver.github.comments.report import Report, RunFailure
from resolver.github.events.permission import IgnoredEvent, authorize
from resolver.github.forge import Forge
from resolver.github.github_forge import GitHubForge
from resolver.models.known_failures import OUTAGES
from resolver.models.run import Trigger
from resolver.runs.common import github_forge, open_host, run_id
from resolver.runs.conversation.command_handler import (
    applies_to_run,
    concerns_earlier_run,
    report_no_active_run,
)
from resolver.runs.conversation.commands import (
    LOG_COMMANDS,
    as_new_request,
    find_run_to_continue,
    locate_dispatch,
    prepare_continuation,
)
from resolver.runs.output import OutcomeFile, Output, build_outcome_file
from resolver.runs.pipeline import run_pipeline
from resolver.runs.quotas.admission import end_entry, ledger_key
from resolver.runs.stages import RunRequest, RunResult, StageValues
from resolver.runs.wiring.sandbox import ForgeTokens, RequireLease, RunHost
from resolver.security.redaction import IssuedTokens
from resolver.storage.database import DatabaseError
from resolver.storage.earlier_runs import EVENTS, OUTCOME, EarlierRun
from resolver.storage.quota_table import QuotaTable
from resolver.storage.run_index import IndexedRunStore, RunIndex
from resolver.storage.run_store import RunStore, RunWriter

logger = logging.getLogger("resolver.entrypoints.webhook")


def write_cancelled_outcome(folder: Path, report: Report) -> None:
    """Write outcome.json into the run's folder, if there is one and the run is not over.

    report: with the failure that ends the run. Errors are logged.
    """
    if not folder.is_dir():
        return
    try:
        output = Output(folder, resume=True)
        try:
            if output.outcome is None:
                output.write_outcome(_outcome(output, report))
        finally:
            output.close()
    except (ResolverError, OSError) as error:
        logger.error("the end of run %s could not be recorded: %s", report.run, error)


def _outcome(output: Output, report: Report) -> OutcomeFile:
    state = State.fold(read_log(output.log)) if is_resumable(output.log) else None
    request = output.request
    continuation = request.continuation if request else None
    return build_outcome_file(
        run=report.run,
        trigger=report.trigger,
        model=report.model,
        exit_code=1,
        outcome=derive_outcome(state) if state else None,
        failure=report.failure,
        log_state=state,
        earlier=continuation.publication if continuation else None,
    )


@dataclass(frozen=True)
class RequestRunner:
    """Executes queued requests that start a run.

    environment, options: sources of the settings, which are loaded again for each run.
    store: has the logs and files of all runs. A run works in a temporary folder.
    index: the runs of each conversation.
    active_runs: the active runs, where comments find them.
    quota_table: the quotas and the cost of runs; with None they are kept in the repositories.
    issued_tokens: learns the tokens that are issued for runs, so that the server's log is redacted.
    outage_retry: how long a run is repeated during an outage.
    pipeline: executes a run.
    require_lease: raises LeaseLost when this process may not write any more.
    """

    environment: Mapping[str, str]
    options: Mapping[str, Any]
    store: RunStore
    index: RunIndex
    active_runs: ActiveRuns = field(default_factory=ActiveRuns)
    quota_table: QuotaTable | None = None
    issued_tokens: IssuedTokens = field(default_factory=IssuedTokens)
    now: Clock = utc_now
    outage_retry: timedelta = timedelta(0)
    pipeline: Pipeline = run_pipeline
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

    def _page_of(self, run: str) -> str:
        server = read_server_variables(self.environment)
        secret = server.webhook_secret
        return page_url(server.public_url, secret.get_secret_value(), run) if secret else ""

    def host(self) -> RunHost:
        """Return the description of this machine for one run, which gets tokens of its own."""
        tokens = ForgeTokens(self.issued_tokens, self.now, self.require_lease)
        machine = replace(open_host(self.environment), tokens=tokens)
        return replace(machine, clones=machine.cache / CLONES_FOLDER)

    def execute(self, started: StartedRequest) -> RequestResult:
        """Execute one request and return its result. Executing it again returns what was done
        before.

        Raises ResolverError with a cause in `OUTAGES` if the request is to be repeated later.

        The run's id is derived from the event, so that an interrupted run is resumed under the same
        id and from its own log. A run with a damaged log starts from the beginning.
        """
        trigger = started.trigger
        settings = self.settings()
        run = run_id(trigger.key, trigger.at)
        host = self.host()
        forge = github_forge(settings, trigger.repository, host)
        located = _locate(trigger, forge, started.attempt)
        if isinstance(located, IgnoredEvent):
            logger.info("run %s is not started: %s", run, located.reason)
            return RequestResult(run, 0, "ignored")
        trigger = located
        with temporary_directory() as temporary:
            # Nothing else is in the folder of a run.
            folder = temporary / run
            writer = self.store.open_writer(run, folder, host.require_lease)
            try:
                return self._execute(trigger, started, settings, forge, host, folder, writer)
            finally:
                writer.try_to_save_files()

    def _execute(
        self,
        trigger: Trigger,
        started: StartedRequest,
        settings: Settings,
        forge: GitHubForge,
        host: RunHost,
        folder: Path,
        writer: RunWriter,
    ) -> RequestResult:
        run = run_id(trigger.key, trigger.at)
        where, attempt = f"{trigger.repository}#{trigger.number}", started.attempt
        logger.info("run %s starts for %s, attempt %d", run, where, attempt)
        if _is_done(folder, trigger, forge):
            logger.info("run %s was handled before", run)
            self._record_cost(trigger, run, folder)
            return RequestResult(run, 0, "repeated")
        if self._has_no_subject(trigger, folder):
            report_no_active_run(trigger, forge, settings)
            return RequestResult(run, 0, "nothing")
        report = _empty_report(trigger, run, settings)
        control = Control()
        self.active_runs.register(trigger, control)
        try:
            # A stop is stored before `CommentCommands` looks for an active run, and this run
            # becomes active before it looks for a stop. Whatever the order of the two threads, one
            # of them sees the other.
            login = self.index.stop_after(trigger)
            if login is not None:
                return _cancel(folder, report, login, forge, settings, started.outages > 0)
            result = self._start_run(
                report, started, settings, forge, control, host, folder, writer
            )
        finally:
            late_commands = self.active_runs.unregister(trigger)
            self._record_cost(trigger, run, folder)
        return replace(result, follow_ups=tuple(late_commands))

    def _start_run(
        self,
        report: Report,
        started: StartedRequest,
        settings: Settings,
        forge: Forge,
        control: Control,
        host: RunHost,
        folder: Path,
        writer: RunWriter,
    ) -> RequestResult:
        """Start the run, resume an interrupted attempt or continue an earlier run."""
        trigger, run = report.trigger, report.run
        if started.failure:
            return _give_up(folder, report, started.failure, forge, settings)
        try:
            output = Output(folder, resume=True)
            self.index.record_run(run, trigger)
            request = self._build_request(trigger, run, output, settings, host)
        except DatabaseError:
            raise  # the request is repeated when the database is back
        except (ResolverError, OSError) as error:
            logger.error("run %s can't be recorded: %s", run, error)
            cause = "the server could not open the log of this run"
            return _give_up(folder, report, cause, forge, settings)
        retry_until = retry_end(started.request, self.outage_retry, self.now())
        request = replace(
            request,
            control=control,
            can_be_continued=True,
            retry_until=retry_until if retry_until > self.now() else None,
        )
        observe = _stage_observer(self.index, trigger, writer)
        request = replace(request, log_copy=writer, observe=observe)
        result = self.pipeline(request, forge)
        pull = result.publication.pull_request
        if pull is not None and pull.number is not None:
            self.index.record_pull_request(run, trigger, pull.number)
        # An outage is raised instead of returned, so that the worker defers the request and repeats
        # it. Any other failure is a result: it was reported in the conversation, and the request is
        # done.
        if result.outage and request.retry_until is not None:
            reason = result.failure.what if result.failure else "the model provider did not respond"
            raise ResolverError(f"run {run}: {reason}", cause=result.outage)
        _log_end(trigger, result)
        return RequestResult(run, result.exit_code, result.outcome_file.state.value)

    def _build_request(
        self, trigger: Trigger, run: str, output: Output, settings: Settings, host: RunHost
    ) -> RunRequest:
        """Return the request for the pipeline: resumed, new, or continuing the conversation's last
        run."""
        page, table = self._page_of(run), self.quota_table
        request = RunRequest(
            trigger, run, output, self.settings, host, quota_table=table, page=page
        )
        stored, continues = output.request, trigger.command in LOG_COMMANDS
        # The log of an earlier run is copied before request.json is written, so a log without
        # request.json can be such a copy. It is not yet an interrupted run.
        if is_resumable(output.log) and (stored is not None or not continues):
            return replace(
                request, resume=True, continuation=stored.continuation if stored else None
            )
        output.move_earlier_files()
        if not continues:
            return request
        with temporary_directory() as earlier_runs:
            trigger, earlier = self._last_run(trigger, run, earlier_runs)
            continuation, notices = prepare_continuation(trigger, earlier, settings, output.log)
        subject = trigger if continuation else as_new_request(trigger)
        return replace(request, trigger=subject, continuation=continuation, notices=notices)

    def _has_no_subject(self, trigger: Trigger, folder: Path) -> bool:
        """Return True if the request is about something that an earlier run left (an action that
        waits for approval, an unpublished change) and that is no longer there."""
        if not concerns_earlier_run(trigger) or is_resumable(folder / EVENTS):
            return False
        return not self.applies_to_run(trigger)

    def applies_to_run(self, trigger: Trigger) -> bool:
        """Return True if a run of the conversation left something for such a command to act on."""
        run = run_id(trigger.key, trigger.at)
        with temporary_directory() as folder:
            return applies_to_run(*self._last_run(trigger, run, folder))

    def _record_cost(self, trigger: Trigger, run: str, folder: Path) -> None:
        """Record what the run has cost so far, whatever its outcome. Never raises."""
        if self.quota_table is not None and _has_lease(self.host()):
            _record_log(self.quota_table, folder / EVENTS, trigger, run, self.now())

    def _last_run(
        self, trigger: Trigger, run: str, folder: Path
    ) -> tuple[Trigger, EarlierRun | None]:
        """Return the result of `find_run_to_continue` for the runs before this one. folder: gets
        the files of the runs that are searched."""
        runs = IndexedRunStore(trigger.repository, self.index, self.store, folder)
        return find_run_to_continue(trigger, run, runs)


def _log_end(trigger: Trigger, result: RunResult) -> None:
    """Write to the operator's log how a run ended: what it published, or why it failed."""
    outcome, pull = result.outcome_file, result.publication.pull_request
    place = f"{trigger.repository}#{trigger.number}"
    if result.exit_code in (0, 3):
        published = (pull and pull.url) or outcome.branch or outcome.reason
        logger.info("run %s for %s is done: %s", outcome.run, place, published)
    else:
        logger.warning("run %s for %s: %s: %s", outcome.run, place, outcome.state, outcome.reason)


def _stage_observer(
    index: RunIndex, trigger: Trigger, writer: RunWriter
) -> Callable[[StageValues], None]:
    """Return the observer of a run's stages. It stores their files, and records the pull request
    before the final comment names it: somebody may answer there at once."""

    def observe(values: StageValues) -> None:
        writer.try_to_save_files()
        pull = values.publication.pull_request
        if pull is not None and pull.number is not None:
            try:
                index.record_pull_request(values.request.run, trigger, pull.number)
            except DatabaseError as error:  # it is recorded again at the end of the run
                logger.warning("the pull request of a run is not recorded yet: %s", error.what)

    return observe


def _cancel(
    folder: Path, report: Report, login: str, forge: Forge, settings: Settings, deferred: bool
) -> RequestResult:
    """End a run because somebody stopped it before it started, or before it was resumed after a
    crash.

    folder: of the run. deferred: True if an outage interrupted the run, so that its comment
    announces a retry that has to be withdrawn.
    """
    logger.info("run %s is not started: stopped by %s", report.run, login)
    if deferred or not (folder / OUTCOME).exists():
        failure = RunFailure(kind="stopped", what=f"{login} stopped it before it could continue")
        is_kept = is_resumable(folder / EVENTS)
        report = report.model_copy(update={"failure": failure, "continues": is_kept})
        _post_comment(report, forge, settings)
        write_cancelled_outcome(folder, report)
    return RequestResult(report.run, 1, "stopped")


def _give_up(
    folder: Path, report: Report, cause: str, forge: Forge, settings: Settings
) -> RequestResult:
    """Report in the conversation that there will be no run, unless an earlier attempt has
    published."""
    logger.error("giving up on run %s: %s", report.run, cause)
    failure = RunFailure(
        kind="error", what=cause, next_step="see the operator's log for details, then ask again"
    )
    report = report.model_copy(update={"failure": failure})
    _post_comment(report, forge, settings)
    write_cancelled_outcome(folder, report)
    return RequestResult(report.run, 1, "error")


def _post_comment(report: Report, forge: Forge, settings: Settings) -> None:
    try:
        authorize(report.trigger, forge, settings.access_policy)
        if forge.find_publication(report.trigger) is None:
            forge.comment(report)
    except ResolverError as error:
        logger.error("the result of run %s could not be posted: %s", report.run, error.what)


def _has_lease(host: RunHost) -> bool:
    """Return False if another process continues the run, and records its cost."""
    try:
        host.require_lease()
    except LeaseLost:
        return False
    return True


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


def _empty_report(trigger: Trigger, run: str, settings: Settings) -> Report:
    """Return the report of a run of which nothing is known yet."""
    return Report(trigger=trigger, run=run, model=settings.model, mention=settings.mention)


def _is_done(folder: Path, trigger: Trigger, forge: Forge) -> bool:
    """Return True if the run of this folder has ended and its final comment exists: then the folder
    stays as it is."""
    if not (folder / OUTCOME).exists():
        return False
    try:
        publication = forge.find_publication(trigger)
    except ResolverError:
        return False  # the run will meet the same error and report it
    return publication is not None and publication.comment_url is not None


def _record_log(table: QuotaTable, log: Path, trigger: Trigger, run: str, now: datetime) -> None:
    """Record what the run has cost according to its log, and that it has ended. Never raises."""
    try:
        has_events = log.exists() and log.stat().st_size > 0
        cost, unpriced = cost_of_run(list(read_log(log)), run) if has_events else (0.0, 0)
        key = ledger_key(trigger.key)
        table.change(
            trigger.repository,
            now,
            lambda ledger: (end_entry(ledger, key, run, cost, unpriced, "ended"), None),
        )
    except (ResolverError, OSError) as error:
        logger.error("the cost of run %s is not recorded: %s", run, error)
