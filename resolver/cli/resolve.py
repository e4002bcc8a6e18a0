"""`resolver resolve`: resolves one issue, from GitHub or from a file for a local checkout."""

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from resolver.agents.built_in import READ_ONLY, REVIEWER
from resolver.cli.options import SettingsCommand, run_options
from resolver.cli.run_display import RunDisplay, display_options, take_display
from resolver.config.settings import Settings, load_settings
from resolver.errors import ResolverError, UsageError
from resolver.events.log import Event, read_log
from resolver.events.run_log import current_run, require_opening
from resolver.events.stream import utc_now
from resolver.github.github_forge import GitHubForge
from resolver.github.local_issue import local_trigger, parse_issue, read_issue_file
from resolver.models.run import Command, RunState
from resolver.runs.common import (
    command_line_trigger,
    default_output,
    filtered_log,
    github_forge,
    open_host,
    parse_target,
    read_login,
    require_model,
    run_id,
    stop_on_signals,
)
from resolver.runs.conversation.watch import watch_comments
from resolver.runs.output import Output, StoredRequest
from resolver.runs.pipeline import run_pipeline
from resolver.runs.reporting import print_result
from resolver.runs.stages import RunRequest, RunResult
from resolver.storage.earlier_runs import EVENTS, REQUEST
from resolver.trace.plain import for_terminal

IMPLIED_COMMANDS = {REVIEWER.name: Command.REVIEW, READ_ONLY.name: Command.QUESTION}
"""The command that an agent implies. Any other agent implies `Command.FIX`."""

RESUMABLE = frozenset({RunState.LIMIT, RunState.STOPPED, RunState.ERROR, RunState.STUCK})
"""States from which a run can be resumed without an answer from a person."""


@click.command(cls=SettingsCommand)
@click.argument("target", required=False)
@click.option(
    "--issue",
    type=click.Path(path_type=Path),
    help="Issue as a markdown file, for a local checkout: title on the first line.",
)
@click.option(
    "--resume",
    type=click.Path(file_okay=False, path_type=Path),
    help="Continue the killed or stopped run in this output directory. Needs no TARGET.",
)
@click.option(
    "--text",
    help="Issue as text on the command line, for a local checkout: title on the first line.",
)
@display_options
@run_options
@click.pass_obj
def command(
    environment: Mapping[str, str],
    /,
    target: str | None,
    issue: Path | None,
    text: str | None,
    resume: Path | None,
    output: Path | None,
    no_publish: bool,
    **options: Any,
) -> int:
    """Resolve the issue TARGET and open a pull request.

    TARGET is OWNER/NAME#N or the URL of a GitHub issue (uses GITHUB_TOKEN), or the PATH of a local
    git checkout together with --issue FILE.md or --text "...". On a local checkout the change
    becomes a new branch `agent/...`; working tree, index, hooks and configuration are not touched.

    With --agent ReviewerAgent, TARGET may be a pull request, which is reviewed; with --agent
    ReadOnlyAgent the question in it is answered.

    With --resume DIR, an interrupted run continues from its event log, with its options. Nothing is
    sent to the model or published twice. Limits apply to the run as a whole.
    """
    display = take_display(options, environment, read_earlier=partial(_earlier_events, resume))
    limits = given_limits(options)
    if resume is not None:
        _require_alone(resume, target, issue, text, output)
        folder, request = resumed_request(resume)
        options = request.settings_options(options)
        settings = load_settings(options, environment)
        if is_done(folder):
            display.console.print(Text(for_terminal(describe_result(folder))), soft_wrap=True)
            return 0
        require_model(settings)
    else:
        if text is not None and issue is not None:
            raise UsageError("--text and --issue both give the issue", "use one of them")
        settings = load_settings(options, environment)
        request = new_request(target, text if issue is None else issue, settings)
        require_model(settings)
        folder = Output(output or default_output(environment, request.run))
        if text is not None:  # in a file, a resumed run finds it
            request = request.model_copy(update={"issue": str(folder.write_issue(text))})
    run_request = run_request_from(
        request,
        folder,
        options,
        environment,
        publish=request.publish and not no_publish,
        resume=resume is not None,
        limit_overrides=limits,
        progress=display.progress,
    )
    forge = open_forge(run_request, settings)
    with watch_comments(run_request, settings):
        return run_displayed(run_request, forge, settings, display)


def run_request_from(
    request: StoredRequest,
    output: Output,
    options: Mapping[str, Any],
    environment: Mapping[str, str],
    **values: Any,
) -> RunRequest:
    """Return the request of the pipeline. values: its further fields."""
    return RunRequest(
        trigger=request.trigger,
        run=request.run,
        output=output,
        load_settings=lambda repository: load_settings(options, environment, repository),
        host=open_host(environment),
        continuation=request.continuation,
        issue=request.issue,
        source=request.source,
        options=options,
        **values,
    )


def run_displayed(
    request: RunRequest, forge: GitHubForge | None, settings: Settings, display: RunDisplay
) -> int:
    """Run the pipeline, show its progress and its result, and return its exit code."""
    with display.during(), stop_on_signals(), filtered_log(settings, request.host):
        result = run_pipeline(request, forge)
    print_result(result, display.console, resume_command(result))
    return result.exit_code


def given_limits(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits that the options of a command set. They replace those of a log."""
    names = ("max_iterations", "max_budget", "max_time")
    return {name: options[name] for name in names if options[name] is not None}


def _require_alone(resume: Path, *others: object) -> None:
    """Raise UsageError if an option is given that says what a new run is about."""
    if any(others):
        raise UsageError(
            "--resume takes the request and the output folder from the run",
            f"use it alone: resolver resolve --resume {shlex.quote(str(resume))}",
        )


def _earlier_events(resume: Path | None) -> Sequence[Event]:
    """Return the events of the run to resume, which count for its limits. They are read before the
    folder of the run is opened.

    Nothing is returned of a log without an event, or of a damaged one, which the run reports.
    """
    try:
        return [] if resume is None else list(read_log(resume / EVENTS))
    except ResolverError:
        return []


def new_request(target: str | None, issue: Path | str | None, settings: Settings) -> StoredRequest:
    """Return the request that the command line describes. Raises UsageError.

    issue: the issue's file, or its text, which the caller stores.
    """
    now = utc_now()
    if target is None:
        raise UsageError(
            "no issue is given",
            "give OWNER/NAME#N, the URL of an issue, or PATH with --issue FILE.md or --text",
        )
    if issue is not None:
        path = _checkout(target)
        trigger = local_trigger(path, run=f"{now:%Y%m%d%H%M%S%f}", login=read_login(), at=now)
        if isinstance(issue, Path):
            read_issue_file(issue, trigger, "")
        else:
            parse_issue(issue, "the issue", trigger, "")
    else:
        implied_command = IMPLIED_COMMANDS.get(settings.agent, Command.FIX)
        trigger = command_line_trigger(*_number(target, settings), now, implied_command)
    run = run_id(trigger.key, trigger.at)
    path_of_issue = str(issue.resolve()) if isinstance(issue, Path) else None
    return StoredRequest(run=run, trigger=trigger, issue=path_of_issue)


def resumed_request(folder: Path) -> tuple[Output, StoredRequest]:
    """Return the output folder of an earlier run and the request of that run.

    Raises UsageError if the folder has no run or another process is using it, and LogError if its
    log cannot be continued.
    """
    if not any((folder / name).is_file() for name in (EVENTS, REQUEST)):
        raise UsageError(f"{folder} contains no run", "give the output folder of an earlier run")
    output = Output(folder, resume=True)
    request = output.request
    if output.has_events:
        events = list(read_log(output.log))
        opening = require_opening(events, output.log)
        request = request or StoredRequest(run=current_run(events), trigger=opening.task.trigger)
    if request is None:
        raise UsageError(
            f"the run in {folder} was interrupted before it was recorded, so it can't be resumed",
            "start a new run",
        )
    return output, request


def resume_command(result: RunResult) -> str | None:
    """Return the command that continues an interrupted run, None if the run cannot be continued.

    A limit that was reached is doubled, because it applies to the run as a whole. A run that failed
    before the model's first reply would only fail again.
    """
    state, outcome = result.log and result.log.state, result.outcome
    run_state = result.outcome_file.state
    has_failed_start = run_state is RunState.ERROR and not (state and state.iterations)
    if run_state not in RESUMABLE or result.report.publishable or has_failed_start:
        return None
    words = ["resolver", "resolve", "--resume", str(result.request.output.folder)]
    if state and outcome and outcome.limit:
        name = f"max_{outcome.limit}"
        amount_used = {
            "iterations": state.iterations, "budget": state.priced, "time": outcome.seconds
        }[outcome.limit]  # fmt: skip
        raised_limit = 2 * max(getattr(state.limits, name), amount_used)
        value = f"{raised_limit:g}" if outcome.limit == "budget" else str(ceil(raised_limit))
        words += [f"--{name.replace('_', '-')}", value]
    return shlex.join(words)


def is_done(output: Output) -> bool:
    """Return True if the run has ended and nothing is left to publish."""
    outcome = output.outcome
    return outcome is not None and outcome.get("exit_code") in (0, 3)


def describe_result(output: Output) -> str:
    """Return a message that the run is done already, with its result."""
    outcome = output.outcome or {}
    place = (outcome.get("pull_request") or {}).get("url") or outcome.get("branch")
    result = place or outcome.get("reason") or outcome.get("state")
    return f"The run {outcome.get('run')} has already finished: {result}."


def open_forge(request: RunRequest, settings: Settings) -> GitHubForge | None:
    """Return the forge that the request is read from and reported to, None for a checkout."""
    if request.is_local:
        return None
    return github_forge(settings, request.trigger.repository, request.host)


def _checkout(target: str) -> Path:
    if not Path(target).is_dir():
        raise UsageError(f"{target} is not a folder", "give the path of a git checkout")
    return Path(target).resolve()


def _number(target: str, settings: Settings) -> tuple[str, int]:
    if parsed := parse_target(target, settings.github_server_url):
        return parsed
    is_folder = Path(target).is_dir()
    raise UsageError(
        f"{target} is a folder and no issue is given"
        if is_folder
        else f"{target!r} is not an issue",
        "give OWNER/NAME#N, the URL of an issue, or PATH with --issue FILE.md or --text",
    )
