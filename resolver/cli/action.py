"""`resolver action`: the entry point of the GitHub Action."""

import sys
from collections.abc import Mapping

import click
from rich.console import Console

from resolver.cli.close import close
from resolver.entrypoints.action import format_annotation, read_event, run_action
from resolver.entrypoints.sweep import SweepLimits, run_sweep
from resolver.errors import ResolverError
from resolver.github.events.dispatches import asks_for_sweep
from resolver.trace.text import TerminalProgress


@click.command()
@click.pass_obj
def command(environment: Mapping[str, str]) -> int:
    """Run as a GitHub Action: reads GITHUB_EVENT_NAME, GITHUB_EVENT_PATH and INPUT_*.

    A schedule, or a dispatch without any input, starts a sweep of the repository. An event that is
    not a request ends with exit code 0 and the output `state=ignored`; an invalid dispatch ends
    with exit code 2 and an error on the page of the job. With INPUT_CLOSE=true the command is
    `resolver close`.
    """
    try:
        return _handle_event(environment)
    except ResolverError as error:
        message = ". ".join(filter(None, (error.what, error.next_step)))
        click.echo(format_annotation("error", message))
        raise


def _handle_event(environment: Mapping[str, str]) -> int:
    if environment.get("INPUT_CLOSE", "") == "true":
        return close(environment, Console(file=sys.stdout))
    if asks_for_sweep(*read_event(environment)):
        console = Console(stderr=True)
        return run_sweep(
            environment,
            {},
            environment.get("GITHUB_REPOSITORY", ""),
            click.echo,
            limits=SweepLimits(),
            console=console,
            progress=TerminalProgress(console),
        )
    return run_action(environment, Console(file=sys.stdout))
