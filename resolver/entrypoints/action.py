"""The entry point of the GitHub Action: reads the event that started the job and writes the
runner's files.

Source: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from resolver.config.settings import EVENT_SETTINGS, Settings, load_settings
from resolver.config.templates import render
from resolver.config.temporary_directory import temporary_directory
from resolver.errors import ResolverError, UsageError
from resolver.events.stream import utc_now
from resolver.github.comments import comment_text
from resolver.github.comments.report import Report
from resolver.github.events.dispatches import DispatchSource
from resolver.github.events.payloads import parse_payload
from resolver.github.events.permission import IgnoredEvent, MalformedEvent
from resolver.github.events.quota_decision import QuotaUse
from resolver.github.github_forge import GitHubForge
from resolver.models.run import Publication, Trigger, TriggerKind
from resolver.runs.common import (
    filtered_log,
    github_forge,
    open_host,
    own_login,
    run_id,
    stop_on_signals,
    trigger_for_target,
)
from resolver.runs.conversation.command_handler import (
    CommandHandler,
    HandledCommand,
    RunsOfOtherJobs,
)
from resolver.runs.conversation.commands import (
    archive_run_log,
    continue_from_archive,
    issue_of_command,
    locate_dispatch,
)
from resolver.runs.conversation.watch import STARTING_COMMANDS, watch_comments
from resolver.runs.output import Output, read_diff
from resolver.runs.pipeline import run_pipeline
from resolver.runs.reporting import print_result
from resolver.runs.stages import RunRequest, RunResult
from resolver.runs.wiring.sandbox import RunHost
from resolver.storage.earlier_runs import EVENTS, OUTCOME
from resolver.trace import markdown
from resolver.trace.plain import for_terminal
from resolver.trace.text import TerminalProgress

logger = logging.getLogger("resolver.entrypoints.action")

OUTPUT_FOLDER = "resolver-output"
"""Name of the output folder in the job's workspace, from where a later step can upload it."""


def run_action(environment: Mapping[str, str], console: Console) -> int:
    """Execute what the job's event asks for and return the exit code.

    Raises UsageError if the set-up is wrong, after reporting that in the conversation.
    """
    host = open_host(environment)
    try:
        return _run(environment, console, host)
    except UsageError as error:
        try:
            _report_setup_error(environment, host, error)
        except ResolverError as comment_error:
            logger.warning("the result could not be posted on GitHub: %s", comment_error.what)
            write_outputs(environment, {"state": "error"})
        raise


def _run(environment: Mapping[str, str], console: Console, host: RunHost) -> int:
    """Execute the event with valid settings."""
    settings = load_settings({}, environment)
    trigger = event_from_environment(settings, environment, host)
    if isinstance(trigger, MalformedEvent):
        raise UsageError(
            trigger.reason,
            "set the input `issue` to a number, or leave all inputs empty for a sweep",
        )
    if isinstance(trigger, IgnoredEvent):
        console.print(f"Nothing to do: {trigger.reason}.", markup=False, soft_wrap=True)
        write_outputs(environment, {"state": "ignored"})
        return 0
    summary = f"{trigger.repository}#{trigger.number}, requested by {trigger.actor.login}"
    console.print(Text(for_terminal(summary)), soft_wrap=True)
    forge = github_forge(settings, trigger.repository, host)
    if trigger.command not in STARTING_COMMANDS:
        handled = _handle_command(trigger, settings, host, forge)
        if isinstance(handled, HandledCommand):
            console.print(Text(for_terminal(handled.message)), soft_wrap=True)
            write_outputs(environment, {"state": handled.state})
            return handled.exit_code
        trigger = handled
    return _resolve(trigger, environment, settings, host, forge, console)


def _handle_command(
    trigger: Trigger, settings: Settings, host: RunHost, forge: GitHubForge
) -> HandledCommand | Trigger:
    """Execute a command that concerns other runs, such as `stop`.

    Return the trigger of the run that is to be started for it, if any.
    """
    with stop_on_signals(), filtered_log(settings, host):
        trigger = issue_of_command(trigger, forge)
        handler = CommandHandler(forge, settings)
        run = run_id(trigger.key, trigger.at)
        return handler.handle(trigger, run, RunsOfOtherJobs(forge, settings, host, run))


def _resolve(
    trigger: Trigger,
    environment: Mapping[str, str],
    settings: Settings,
    host: RunHost,
    forge: GitHubForge,
    console: Console,
) -> int:
    """Execute the run that the trigger asks for, report it to the runner, return its exit code."""
    workspace = Path(environment.get("GITHUB_WORKSPACE", "."))
    if workspace.resolve() == Path.cwd():
        workspace = Path()  # so that the log shows the paths that later steps use
    request = RunRequest(
        trigger=trigger,
        run=run_id(trigger.key, trigger.at),
        output=open_output(workspace),
        load_settings=lambda repository: load_settings({}, environment, repository),
        host=host,
        progress=TerminalProgress(console),
        log_url=job_url(environment, trigger.repository),
        actions_run=actions_run(environment),
        archives_log=True,
        can_be_continued=True,
    )
    with stop_on_signals(), filtered_log(settings, host):
        request = continue_from_archive(request, settings)
        with watch_comments(request, settings):
            result = run_pipeline(request, forge)
        archive_run_log(result, settings)
    print_result(result, console)
    console.print(Text(annotation(result)), soft_wrap=True)
    write_outputs(environment, outputs_of(result))
    write_summary(environment, result)
    change_owner(workspace / OUTPUT_FOLDER, workspace)
    return result.exit_code


def _report_setup_error(environment: Mapping[str, str], host: RunHost, error: UsageError) -> None:
    """Report wrong settings or a wrong workspace in the conversation, if an authorized person asked
    for work.

    Only the settings that are needed to understand the event and to comment are loaded, so that
    errors in other settings do not prevent the report.
    """
    settings = load_settings({}, environment, only=EVENT_SETTINGS)
    trigger = event_from_environment(settings, environment, host)
    if isinstance(trigger, IgnoredEvent):
        write_outputs(environment, {"state": "error"})
        return
    forge = github_forge(settings, trigger.repository, host)
    with filtered_log(settings, host), temporary_directory() as temporary:
        request = RunRequest(
            trigger=trigger,
            run=run_id(trigger.key, trigger.at),
            output=Output(temporary / OUTPUT_FOLDER),
            load_settings=lambda _: settings,
            host=host,
            ended_by=error,
            log_url=job_url(environment, trigger.repository),
            actions_run=actions_run(environment),
        )
        result = run_pipeline(request, forge)
        no_files = {"output": "", "outcome": "", "events": ""}
        write_outputs(environment, {**outputs_of(result), **no_files})
        write_summary(environment, result)


def trigger_of_event(
    settings: Settings, environment: Mapping[str, str], host: RunHost
) -> Trigger | IgnoredEvent:
    """Return the trigger of the job's event, without what GitHub has to be asked for."""
    name, payload = read_event(environment)
    arrival = DispatchSource(environment.get("GITHUB_RUN_ID", ""), utc_now())
    login = own_login(settings, name, payload, host)
    return trigger_for_target(settings, name, payload, login, arrival)


def event_from_environment(
    settings: Settings, environment: Mapping[str, str], host: RunHost
) -> Trigger | IgnoredEvent:
    """Return the trigger of the job's event with its conversation, or the reason why there is
    nothing to do. Raises UsageError and ForgeError."""
    trigger = trigger_of_event(settings, environment, host)
    if isinstance(trigger, IgnoredEvent):
        return trigger
    with filtered_log(settings, host):
        forge = github_forge(settings, trigger.repository, host)
        trigger = _with_request_time(trigger, forge, environment.get("GITHUB_RUN_ID", ""))
        is_rerun = environment.get("GITHUB_RUN_ATTEMPT", "1") not in {"", "1"}
        located = locate_dispatch(trigger, forge, is_rerun=is_rerun)
        # Every comment of a review and every check of a commit starts a job. One of these jobs does
        # the run, whatever its result. A person who wants it done again re-runs that job.
        one_of_many = trigger.review_id is not None or trigger.kind is TriggerKind.CHECK_FAILED
        if (
            isinstance(located, Trigger)
            and one_of_many
            and not is_rerun
            and forge.has_run_comment(located)
        ):
            return IgnoredEvent("another event has already made the same request")
        return located


def _with_request_time(trigger: Trigger, forge: GitHubForge, actions_run_id: str) -> Trigger:
    """Return the trigger with the time at which a dispatch was made.

    Its job may have waited for others for hours, and text that was written meanwhile is not part of
    the request.
    """
    if trigger.kind is not TriggerKind.DISPATCHED:
        return trigger
    requested_at = forge.requested_at(actions_run_id)
    started_at = trigger.at if requested_at is None else min(requested_at, trigger.at)
    return trigger.model_copy(update={"at": started_at})


def read_event(environment: Mapping[str, str]) -> tuple[str, Mapping[str, Any]]:
    """Return the name and the payload of the event.

    Raises UsageError outside of a GitHub Actions job.
    """
    name, path = environment.get("GITHUB_EVENT_NAME", ""), environment.get("GITHUB_EVENT_PATH", "")
    if not name or not path:
        raise UsageError(
            "GITHUB_EVENT_NAME and GITHUB_EVENT_PATH are not set",
            "run this in a GitHub Actions job, or use `resolver resolve OWNER/NAME#N`",
        )
    try:
        payload = parse_payload(Path(path).read_bytes())
    except (OSError, ValueError) as error:  # ValueError: the path contains a NUL
        raise UsageError(f"the event {path} can't be read: {error}", "check the workflow") from None
    if payload is None:
        raise UsageError(
            f"the event {path} is not a JSON object, or is nested too deeply", "check the workflow"
        )
    return name, payload


def job_url(environment: Mapping[str, str], repository: str) -> str | None:
    """Return the URL of the job's run, None if it is unknown."""
    server, run = environment.get("GITHUB_SERVER_URL", ""), environment.get("GITHUB_RUN_ID", "")
    return f"{server}/{repository}/actions/runs/{run}" if server and run else None


def actions_run(environment: Mapping[str, str]) -> str | None:
    """Return the id and the attempt of the GitHub Actions run in the form of `ActiveRunMarker.job`;
    None if they are unknown."""
    run, attempt = environment.get("GITHUB_RUN_ID", ""), environment.get("GITHUB_RUN_ATTEMPT", "1")
    return f"{run}.{attempt}" if run.isdecimal() and attempt.isdecimal() else None


def outputs_of(result: RunResult) -> dict[str, str]:
    """Return the outputs of the Action, by their names in action.yml."""
    publication, outcome = result.publication, result.outcome
    pull = publication.pull_request
    return {
        # "" if there is no final comment, so that the job `close` writes one
        "state": "" if result.comment_failed else result.outcome_file.state.value,
        "branch": publication.branch or "",
        "pull-request-number": str(pull.number) if pull and pull.number else "",
        "pull-request-url": (pull.url or "") if pull else "",
        "cost": f"{outcome.cost:.4f}" if outcome and outcome.cost is not None else "",
        "iterations": str(outcome.iterations if outcome else 0),
        "output": OUTPUT_FOLDER,
        "outcome": f"{OUTPUT_FOLDER}/{OUTCOME}",
        "events": f"{OUTPUT_FOLDER}/{EVENTS}" if result.log else "",
    }


def write_outputs(environment: Mapping[str, str], outputs: Mapping[str, str]) -> None:
    """Append the outputs to the runner's GITHUB_OUTPUT file. A value is written on one line,
    because a line break would start another output."""
    path = environment.get("GITHUB_OUTPUT")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(
                f"{name}={' '.join(value.split())}\n" for name, value in outputs.items()
            )


def write_summary(environment: Mapping[str, str], result: RunResult) -> None:
    """Append the result, the change and the steps to the summary of the job's page."""
    if not environment.get("GITHUB_STEP_SUMMARY"):
        return
    text = render_job_summary(
        result.report,
        result.publication,
        state=result.outcome_file.state.value,
        server=environment.get("GITHUB_SERVER_URL", ""),
        diff=read_diff(result.request.output.patch),
        quota_use=result.quota_use,
    )
    append_summary(environment, text)


def append_summary(environment: Mapping[str, str], text: str) -> None:
    """Append text to the runner's GITHUB_STEP_SUMMARY file, which is limited to 1 MiB, if there is
    one."""
    path = environment.get("GITHUB_STEP_SUMMARY")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)


def annotation(result: RunResult) -> str:
    """Return the workflow command that shows on the job's page, in one line, how the run ended."""
    text = render(
        "run/annotation.j2",
        failure=result.failure,
        publication=result.publication,
        outcome=result.outcome,
        exit_code=result.exit_code,
        is_comment_missing=result.comment_failed,
    )
    return format_annotation("error" if result.exit_code else "notice", text)


def format_annotation(level: str, text: str) -> str:
    """Return the workflow command that shows the text on the job's page, in one line."""
    line = for_terminal(" ".join(text.split())).replace("%", "%25")
    return f"::{level} title=Resolver::{line}"


def open_output(workspace: Path) -> Output:
    """Return the output folder in the workspace.

    Raises UsageError if the checkout contains a symbolic link in its place, through which files
    would be written elsewhere.
    """
    folder = workspace / OUTPUT_FOLDER
    for path in (folder, *folder.glob("*")):
        if path.is_symlink():
            raise UsageError(f"{path} is a link", f"remove {OUTPUT_FOLDER} from the checkout")
    return Output(folder, shared=True)


def change_owner(folder: Path, workspace: Path) -> None:
    """Give the files to the owner of the workspace.

    The Action is root in its container; the runner, which reads the files and removes them after
    the job, is not.
    """
    owner = workspace.stat()
    if owner.st_uid == os.geteuid():
        return
    with suppress(PermissionError):  # not root: the owner stays as it is
        for path in (folder, *folder.rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


MAX_TRACE_LENGTH = 120_000
"""Maximum length of the trace and of the change, in UTF-16 units. A summary has at most 1 MiB, and
a unit takes three bytes at most."""


def render_job_summary(
    report: Report,
    publication: Publication,
    *,
    state: str,
    server: str,
    diff: str,
    quota_use: Sequence[QuotaUse] = (),
) -> str:
    """Return the summary that GitHub shows on the page of a job: the result, the change, the steps.

    It is Markdown, made of the run's final comment and of the parts of the trace, which may be
    longer than in a comment. See
    https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#adding-a-job-summary

    state: state that the run ended in. server: GitHub's address.
    diff: the change as `git diff` prints it. It is shown only if it was pushed: a change that was
        refused may hold what nobody should see.
    quota_use: what today's runs have used of the quotas.
    """
    trace = report.render_trace(MAX_TRACE_LENGTH) if report.render_trace else ""
    changes = markdown.render_changed_files(diff, MAX_TRACE_LENGTH) if publication.branch else ""
    # The summary is shown on the job's page, so it needs no link to it.
    without = {"log_url": None, "render_trace": None}
    comment = comment_text.comment_body(report.model_copy(update=without))
    return render(
        "run/summary.md.j2",
        trigger=report.trigger,
        server=server,
        state=state,
        publication=publication,
        report=comment.strip(),
        changes=changes,
        trace=trace.strip(),
        quota_use=quota_use,
    )
