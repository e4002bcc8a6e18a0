"""`resolver close`: the last step of a job of GitHub Actions, for a run that could not speak."""

import sys
from collections.abc import Mapping

import click
from rich.console import Console

from resolver.action import actions_run, read_event
from resolver.doors import app_login, filtered_log, github_forge, host_of, own_login, trigger_of
from resolver.events.stream import utc_now
from resolver.settings import load_settings
from resolver.triggers.dispatch import Arrival
from resolver.triggers.ignored import Ignored


@click.command()
@click.pass_obj
def command(environment: Mapping[str, str]) -> int:
    """Say on the thread that the run of this job died, where its comment still says that it works.

    For a step of a GitHub Actions job after the Action's own, with `if: always()`: a run that was
    killed could not say it itself. Reads GITHUB_EVENT_NAME, GITHUB_EVENT_PATH, GITHUB_RUN_ID,
    GITHUB_JOB, RUNNER_NAME and INPUT_*. Of a matrix each job speaks for itself
    alone. Where the run has said how it ended, nothing is done.
    """
    return close(environment, Console(file=sys.stdout))


def close(environment: Mapping[str, str], console: Console) -> int:
    """The exit code: 0, also where there is nothing to do. Raises UsageError and ForgeError."""
    host = host_of(environment)
    settings = load_settings(app_login(load_settings({}, environment), host), environment)
    name, payload = read_event(environment)
    own = own_login(settings, name, payload, host)
    arrival = Arrival(environment.get("GITHUB_RUN_ID", ""), utc_now())
    closed = 0
    with filtered_log(settings, host):
        trigger = trigger_of(settings, name, payload, own, arrival)
        if not isinstance(trigger, Ignored) and trigger.number is not None:
            comments = github_forge(settings, trigger.repository, host).run_comments
            closed = comments.close_job(trigger, actions_run(environment), settings.mention)
    said = (
        "The run of this job could not say how it ended; its comment says now what is known."
        if closed
        else "Nothing to close."
    )
    console.print(said, markup=False)
    return 0
