"""`resolver replay`: repeats the actions of an event log in a fresh sandbox, or forks a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from resolver.cli.options import SettingsCommand, settings_options
from resolver.cli.resolve import given_limits, open_forge, run_displayed, run_request_from
from resolver.cli.run_display import RunDisplay, display_options, take_display
from resolver.config.settings import Settings, load_settings
from resolver.config.templates import render
from resolver.config.temporary_directory import temporary_directory
from resolver.controller.control import Control
from resolver.errors import UsageError
from resolver.events.lifecycle import ModelReplied, RunStarted, roots_of
from resolver.events.log import Event
from resolver.events.run_log import RunLog, current_run, require_opening
from resolver.events.stream import Subscriber, utc_now
from resolver.git.clone import is_url
from resolver.git.git import Credential
from resolver.git.workspace import Workspace
from resolver.github.local_issue import local_trigger
from resolver.models.run import Continuation
from resolver.runs.common import (
    command_line_trigger,
    default_output,
    filtered_log,
    open_host,
    read_login,
    require_model,
    run_id,
    stop_on_signals,
)
from resolver.runs.execute import open_sandbox
from resolver.runs.output import Output, StoredRequest
from resolver.runs.resuming.rebuild import Reexecution, RelocatedExecutor, reexecute
from resolver.runs.wiring.sandbox import RunHost, runtime_kind
from resolver.storage.log_location import open_log
from resolver.trace.plain import for_terminal, one_line
from resolver.trace.steps import step_of


@dataclass(frozen=True)
class ReplayLog:
    """An event log. `source` is the path or URL that its repository is cloned from."""

    events: Sequence[Event]
    opening: RunStarted
    source: str


@click.command(cls=SettingsCommand)
@click.argument("log")
@click.option("--source", help="Clone from this path or URL instead of the one in the log.")
@click.option(
    "--fork",
    "event",
    metavar="ID",
    type=click.IntRange(min=0),
    help="Fork: keep the log up to this event, and let the agent continue from there.",
)
@click.option("--say", default="", help="Fork: message to the agent before it continues.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Fork: folder of the new run.",
)
@click.option("--publish", is_flag=True, help="Fork: publish the change as a separate run.")
@display_options
@settings_options
@click.pass_obj
def command(
    environment: Mapping[str, str],
    /,
    log: str,
    source: str | None,
    event: int | None,
    say: str,
    output: Path | None,
    publish: bool,
    **options: Any,
) -> int:
    """Repeat the actions of the event log LOG in a fresh sandbox and report the first difference.

    LOG is an events.jsonl, or the output folder that holds one. No model is called and nothing is
    published. The exit code is 0 if all results are as recorded, 1 if any result differs.

    With --fork ID, a new run begins with the log up to the event ID: its sandbox is rebuilt to that
    point, and the agent continues live with --model and the instruction of --say.
    """
    events = list(open_log(log, environment))
    opening = require_opening(events, Path(log))
    kept_count = len(events) if event is None else fork_boundary(events, event)
    display = take_display(
        options, environment, read_earlier=lambda: () if event is None else events[:kept_count]
    )
    recorded = ReplayLog(events, opening, _source(source or opening.task.source))
    if event is not None:
        if kept_count != event + 1:
            click.echo(
                f"Event {event} does not end a step: the fork keeps events 0 to {kept_count - 1}.",
                err=True,
            )
        fork = partial(_fork, recorded, events[:kept_count], message=say.strip())
        return fork(environment, options, display, publish=publish, output=output)
    if say or output or publish:
        raise UsageError("--say, --output and --publish are only valid for a fork", "add --fork ID")
    settings = load_settings(options, environment)
    host = open_host(environment)
    with display.during(), stop_on_signals(), filtered_log(settings, host):
        result = replay_log(recorded, settings, host, display.progress)
    summary = for_terminal(_render_result(recorded, result)).rstrip()
    click.echo(summary, err=display.is_json)
    return 1 if result.differences else 0


def fork_boundary(events: Sequence[Event], event: int) -> int:
    """Return how many events a fork at `event` keeps.

    A fork keeps whole steps: those that had ended by then, and at least what precedes the first
    step. Raises UsageError if the log has no such event.
    """
    if event >= len(events):
        raise UsageError(
            f"the log ends with event {len(events) - 1}", "use the id of one of its events"
        )
    if event == len(events) - 1:
        return len(events)
    replies = [e.id for e in events if isinstance(e, ModelReplied)] or [len(events)]
    return max((id for id in replies if id <= event + 1), default=replies[0])


def replay_log(
    log: ReplayLog, settings: Settings, host: RunHost, progress: Subscriber | None = None
) -> Reexecution:
    """Repeat the log's actions in a fresh sandbox. Raises WorkspaceError and SandboxError.

    progress: gets the events of the set-up, and one for each difference.
    """
    run = run_id(f"replay:{log.opening.run}", utc_now())
    with temporary_directory() as folder:
        redactor = host.redactor(settings)
        workspace = Workspace.clone(
            log.source,
            folder / "clone.git",
            commit=log.opening.base,
            credential=_credential(log.source, settings, host),
        )
        kind = runtime_kind(settings, host)
        with RunLog(folder / "events.jsonl", redactor, utc_now) as replay_run_log:
            stream = replay_run_log.stream
            if progress is not None:
                stream.subscribe("progress", progress)
            with open_sandbox(run, settings, host, kind, workspace, replay_run_log, Control()) as (
                runtime,
                _,
            ):
                executor = RelocatedExecutor(runtime, roots_of(log.events), runtime.root)
                result = reexecute(log.events, executor, include_views=True)
                for _, difference in result.differences:
                    stream.add(difference)
                return result


def _render_result(log: ReplayLog, result: Reexecution) -> str:
    recorded, difference = result.differences[0] if result.differences else (None, None)
    step = step_of(recorded.action, 0, None, roots_of(log.events)) if recorded else None
    return render(
        "run/replayed.txt.j2",
        run=current_run(list(log.events)),
        base=log.opening.base,
        actions=result.actions,
        differences=len(result.differences),
        skipped=result.skipped,
        recorded=recorded,
        what=one_line(step.plain_title, 200) if step else None,
        difference=difference,
    )


def _fork(
    log: ReplayLog,
    kept: Sequence[Event],
    environment: Mapping[str, str],
    options: Mapping[str, Any],
    display: RunDisplay,
    *,
    message: str,
    publish: bool,
    output: Path | None,
) -> int:
    """Start a new run with a copy of the events that it keeps, and return its exit code.

    Its trigger is a new request, so that nothing that the original run published is changed.
    """
    settings = load_settings(options, environment)
    require_model(settings)
    now, original = utc_now(), log.opening.task.trigger
    if is_url(log.source) and original.number is not None:
        trigger = command_line_trigger(original.repository, original.number, now)
    else:
        time = f"{now:%Y%m%d%H%M%S%f}"
        trigger = local_trigger(Path(log.source), run=time, login=read_login(), at=now)
    run = run_id(trigger.key, trigger.at)
    folder = Output(output or default_output(environment, run))
    folder.begin_with(kept)
    stored = StoredRequest(
        run=run,
        trigger=trigger,
        continuation=Continuation(run=current_run(list(kept)), message=message, by=read_login()),
        source=log.source,
    )
    request = run_request_from(
        stored,
        folder,
        options,
        environment,
        publish=publish,
        limit_overrides=given_limits(options),
        progress=display.progress,
    )
    return run_displayed(request, open_forge(request, settings), settings, display)


def _source(source: str) -> str:
    if is_url(source):
        return source
    if not Path(source).is_dir():
        raise UsageError(
            f"the repository of the log is not at {source}",
            "set its location with --source PATH or --source URL",
        )
    return str(Path(source).resolve())


def _credential(source: str, settings: Settings, host: RunHost) -> Credential | None:
    """Return the forge's token if `source` is on that forge, else None. Raises ForgeError.

    A log may name any URL, and no other server may get the token.
    """
    server = f"{settings.github_server_url.rstrip('/')}/"
    if not source.startswith(server):
        return None
    repository = source.removeprefix(server).rstrip("/").removesuffix(".git")
    return host.tokens.credential(settings, repository)
