"""`resolver close`: closes the comment of a killed run in the last step of its job."""

import sys
from collections.abc import Mapping

import click
from rich.console import Console

from resolver.entrypoints.close import close_comments


@click.command()
@click.pass_obj
def command(environment: Mapping[str, str]) -> int:
    """Complete the comment of this job's run if it still says that the run is in progress.

    This is for a step with `if: always()` after the step of the Action: a run that was killed could
    not write its final comment. The command reads GITHUB_EVENT_NAME, GITHUB_EVENT_PATH,
    GITHUB_REPOSITORY, GITHUB_RUN_ID and INPUT_*; its step needs the inputs by which the Action
    interprets events. If the run has written its final comment, nothing is done.
    """
    return close(environment, Console(file=sys.stdout))


def close(environment: Mapping[str, str], console: Console) -> int:
    """Close the comments of this job's runs and return exit code 0, also if there are none.

    Raises UsageError and ForgeError.
    """
    closed = close_comments(environment)
    message = (
        "The run of this job ended without a result. Its comment was completed."
        if closed
        else "Nothing to close."
    )
    console.print(message, markup=False)
    return 0
