"""`resolver action`: the door of the GitHub Action."""

import sys

import click
from rich.console import Console

from resolver.action import run_action
from resolver.doors import current_environment


@click.command()
def command() -> int:
    """Run as a GitHub Action: reads GITHUB_EVENT_NAME, GITHUB_EVENT_PATH and INPUT_*.

    An event that asks for nothing ends with exit code 0 and the output `state=ignored`.
    """
    return run_action(current_environment(), Console(file=sys.stdout))
