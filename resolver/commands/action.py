"""`resolver action`: the door of the GitHub Action."""

import sys
from collections.abc import Mapping

import click
from rich.console import Console

from resolver.action import run_action


@click.command()
@click.pass_obj
def command(environment: Mapping[str, str]) -> int:
    """Run as a GitHub Action: reads GITHUB_EVENT_NAME, GITHUB_EVENT_PATH and INPUT_*.

    An event that asks for nothing ends with exit code 0 and the output `state=ignored`.
    """
    return run_action(environment, Console(file=sys.stdout))
