"""Prints the result of a run and the location of its files on the terminal."""

from rich.console import Console
from rich.text import Text

from resolver.config.templates import render
from resolver.runs.stages import RunResult
from resolver.trace.plain import for_terminal


def print_result(result: RunResult, console: Console, resume_command: str = "") -> None:
    """Print how the run ended. Control sequences in text from outside are removed.

    resume_command: the command line that resumes the run; "" if it can't be resumed.
    """
    output = result.request.output
    text = render(
        "run/result.txt.j2",
        result=result,
        outcome=result.outcome,
        publication=result.publication,
        failure=result.failure,
        output=output,
        dry=not result.request.publish,
        resume_command=resume_command,
    )
    for line in text.strip().splitlines():
        console.print(Text(for_terminal(line)), soft_wrap=True)
