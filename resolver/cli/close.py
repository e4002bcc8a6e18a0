"""`resolver close`: closes the comment of a killed run in the last step of its job."""

import sys
from collections.abc import Mapping

import click
from rich.console import Console

from resolver.config.settings import HEARING, Settings, load_settings
from resolver.entrypoints.action import actions_run, read_event
from resolver.events.stream import utc_now
from resolver.github.events.parse import DispatchSource, asks_for_sweep
from resolver.github.events.permission import IgnoredEvent
from resolver.models.run import Trigger, TriggerKind
from resolver.runs.common import (
    app_login,
    filtered_log,
    github_forge,
    open_host,
    own_login,
    trigger_for_target,
)
from resolver.runs.conversation.commands import conversation_for_dispatch
from resolver.runs.wiring.sandbox import RunHost


@click.command()
@click.pass_obj
def command(environment: Mapping[str, str]) -> int:
    """Complete the comment of this job's run if it still says that the run is in progress.

    This is for a step with `if: always()` after the step of the Action: a run that was killed could
    not write its final comment. The command reads GITHUB_EVENT_NAME, GITHUB_EVENT_PATH,
    GITHUB_REPOSITORY, GITHUB_RUN_ID, GITHUB_JOB, RUNNER_NAME and INPUT_*; its step needs the inputs
    by which the Action interprets events. Each job of a matrix closes only its own comments. If the
    run has written its final comment, nothing is done.
    """
    return close(environment, Console(file=sys.stdout))


def close(environment: Mapping[str, str], console: Console) -> int:
    """Close the comments of this job's runs and return exit code 0, also if there are none.

    Raises UsageError and ForgeError.
    """
    host = open_host(environment)
    # The run may have failed because of another setting, so only those for events are read.
    settings = load_settings({}, environment, only=HEARING)
    settings = load_settings(app_login(settings, host), environment, only=HEARING)
    name, payload = read_event(environment)
    with filtered_log(settings, host):
        if asks_for_sweep(name, payload):
            closed = _of_sweep(settings, environment, host)
        else:
            own = own_login(settings, name, payload, host)
            arrival = DispatchSource(environment.get("GITHUB_RUN_ID", ""), utc_now())
            trigger = trigger_for_target(settings, name, payload, own, arrival)
            closed = _of_request(trigger, settings, environment, host)
    said = (
        "The run of this job ended without a result. Its comment was completed."
        if closed
        else "Nothing to close."
    )
    console.print(said, markup=False)
    return 0


def _of_request(
    trigger: Trigger | IgnoredEvent,
    settings: Settings,
    environment: Mapping[str, str],
    host: RunHost,
) -> int:
    """Close the comments of the request's run and return how many there were."""
    if isinstance(trigger, IgnoredEvent):
        return 0
    forge = github_forge(settings, trigger.repository, host)
    number = trigger.number
    if trigger.kind is TriggerKind.CHECK_FAILED:
        number = conversation_for_dispatch(trigger, forge.check_places())
    if number is None:
        return 0
    trigger = trigger.model_copy(update={"number": number})
    return forge.run_comments.close_job(trigger, actions_run(environment), settings.mention)


def _of_sweep(settings: Settings, environment: Mapping[str, str], host: RunHost) -> int:
    """Close the comments of a sweep's active run and return how many there were.

    A sweep has one active run at a time, so the first issue with such a comment is the only one.
    """
    forge = github_forge(settings, environment.get("GITHUB_REPOSITORY", ""), host)
    job = actions_run(environment)
    for issue in forge.labelled(settings.label).oldest_first():
        closed = forge.run_comments.close_comments_of_job(issue.number, job, settings.mention)
        if closed:
            return closed
    return 0
