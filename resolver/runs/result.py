"""The last lines of a run on the terminal: what came of it and where everything is."""

from rich.console import Console
from rich.text import Text

from resolver.config.templates import render
from resolver.runs.stages import RunResult
from resolver.trace.plain import for_terminal


def print_result(result: RunResult, console: Console, resume_command: str = "") -> None:
    """Print how the run ended. Text from outside can't control the terminal.

    resume_command: what a person types to resume the run, "" where there is nothing to type.
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
