"""Closes the comment of a killed run in the last step of its job."""

from collections.abc import Mapping

from resolver.config.settings import EVENT_SETTINGS, Settings, load_settings
from resolver.entrypoints.action import (
    actions_run,
    read_event,
    trigger_of_event,
)
from resolver.github.events.dispatches import asks_for_sweep
from resolver.github.events.permission import IgnoredEvent
from resolver.models.run import TriggerKind
from resolver.runs.common import (
    filtered_log,
    github_forge,
    open_host,
)
from resolver.runs.conversation.commands import conversation_for_dispatch
from resolver.runs.wiring.sandbox import RunHost


def close_comments(environment: Mapping[str, str]) -> int:
    """Close the comments of this job's runs and return how many there were.

    Raises UsageError and ForgeError.
    """
    host = open_host(environment)
    # The run may have failed because of another setting, so only those for events are read.
    settings = load_settings({}, environment, only=EVENT_SETTINGS)
    with filtered_log(settings, host):
        if asks_for_sweep(*read_event(environment)):
            return _of_sweep(settings, environment, host)
        return _of_request(settings, environment, host)


def _of_request(settings: Settings, environment: Mapping[str, str], host: RunHost) -> int:
    """Close the comments of the request's run and return how many there were."""
    trigger = trigger_of_event(settings, environment, host)
    if isinstance(trigger, IgnoredEvent):
        return 0
    forge = github_forge(settings, trigger.repository, host)
    number = trigger.number
    if trigger.kind is TriggerKind.CHECK_FAILED:
        number = conversation_for_dispatch(trigger, forge)
    if number is None:
        return 0
    trigger = trigger.model_copy(update={"number": number})
    job, comments = actions_run(environment), forge.run_comments
    return comments.close_job(number, job, settings.mention, trigger)


def _of_sweep(settings: Settings, environment: Mapping[str, str], host: RunHost) -> int:
    """Close the comments of a sweep's active run and return how many there were.

    A sweep has one active run at a time, so the first issue with such a comment is the only one.
    """
    forge = github_forge(settings, environment.get("GITHUB_REPOSITORY", ""), host)
    job = actions_run(environment)
    for issue in forge.labeled(settings.label).oldest_first():
        closed = forge.run_comments.close_job(issue.number, job, settings.mention)
        if closed:
            return closed
    return 0
