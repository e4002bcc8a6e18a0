"""The last lines of a run on the terminal: what came of it and where everything is."""

from rich.console import Console
from rich.text import Text

from resolver.record import Record
from resolver.templates import render
from resolver.trace.plain import for_terminal


def print_result(record: Record, console: Console, resume_command: str = "") -> None:
    """Print how the run ended. Text from outside can't control the terminal.

    resume_command: what a person types to go on with the run, "" where there is nothing to type.
    """
    output = record.job.output
    text = render(
        "run/result.txt.j2",
        record=record,
        outcome=record.outcome,
        publication=record.publication,
        failure=record.failure,
        output=output,
        dry=not record.job.publish,
        resume_command=resume_command,
    )
    for line in text.strip().splitlines():
        console.print(Text(for_terminal(line)), soft_wrap=True)
