"""`resolver publish`: publishes the change of a finished run, without a model or a sandbox."""

import shlex
from collections.abc import Mapping
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from resolver.cli.resolve import describe_result, open_forge, resumed_request, run_request_from
from resolver.config.settings import load_settings
from resolver.errors import UsageError
from resolver.events.log import read_log
from resolver.events.run_log import DONE_STATES
from resolver.events.state import State
from resolver.runs.common import filtered_log, stop_on_signals
from resolver.runs.output import Output
from resolver.runs.pipeline import run_pipeline
from resolver.runs.reporting import print_result
from resolver.trace.plain import for_terminal
from resolver.trace.text import TerminalProgress


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--draft/--no-draft", default=None, help="Open the pull request as a draft, or not.")
@click.pass_obj
def command(environment: Mapping[str, str], /, folder: Path, draft: bool | None) -> int:
    """Publish the change of the run in the output folder FOLDER.

    This is for a run whose publishing failed, and for one with --no-publish whose change has been
    inspected. The settings are those of the run. The change is checked again, and nothing is
    published twice. If publishing fails, FOLDER keeps it.
    """
    output, request = resumed_request(folder)
    draft_option = {"draft": None if draft is None else "always" if draft else "never"}
    options = request.settings_options(draft_option)
    settings = load_settings(options, environment)
    console = Console(stderr=True)
    if _is_published(output):
        console.print(Text(for_terminal(describe_result(output))), soft_wrap=True)
        return 0
    _check_finished(output)
    run_request = run_request_from(
        request,
        output,
        options,
        environment,
        by_operator=True,
        resume=True,
        progress=TerminalProgress(console),
    )
    with stop_on_signals(), filtered_log(settings, run_request.host):
        result = run_pipeline(run_request, open_forge(run_request, settings))
    print_result(result, console)
    return result.exit_code


def _is_published(output: Output) -> bool:
    outcome = output.outcome or {}
    return outcome.get("exit_code") == 0 and bool(outcome.get("branch"))


def _check_finished(output: Output) -> None:
    """Raise UsageError unless the run has finished and its change exists."""
    state = State.fold(read_log(output.log)) if output.has_events else State()
    resume_command = shlex.join(["resolver", "resolve", "--resume", str(output.folder)])
    if state.run_state not in DONE_STATES:
        raise UsageError(
            f"the run in {output.folder} is not finished", f"continue it: {resume_command}"
        )
    if output.change is None:
        raise UsageError(
            f"{output.folder} contains no change that can be published",
            f"recreate it from the log: {resume_command}",
        )
