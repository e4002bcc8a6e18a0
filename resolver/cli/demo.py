"""`resolver demo`: resolves an issue in a bundled repository, recorded or with a live model."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from resolver.cli.options import SettingsCommand, settings_options
from resolver.cli.resolve import run_request_from
from resolver.cli.run_display import RunDisplay, display_options, take_display
from resolver.config.settings import load_settings
from resolver.config.templates import render
from resolver.demo.repository_maker import HERE, make_repository
from resolver.errors import SandboxError
from resolver.events.stream import utc_now
from resolver.github.comments.report import failure_from_error
from resolver.github.local_issue import local_trigger
from resolver.runs.common import filtered_log, require_model, run_id, stop_on_signals
from resolver.runs.output import Output, StoredRequest
from resolver.runs.pipeline import run_pipeline
from resolver.runs.reporting import print_result
from resolver.runs.stages import RunResult
from resolver.runs.wiring.sandbox import engine_environment
from resolver.runtime.engine import has_image
from resolver.trace.plain import clean_diff, for_terminal, one_line

RECORDING = HERE / "recording.jsonl"


@click.command(cls=SettingsCommand)
@click.option("--live", is_flag=True, help="Ask a live model (LLM_MODEL, LLM_API_KEY).")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("resolver-demo"),
    show_default=True,
    help="Directory for the demo's repository and output.",
)
@display_options
@settings_options
@click.pass_obj
def command(environment: Mapping[str, str], /, live: bool, folder: Path, **options: Any) -> int:
    """Resolve a bundled issue in a bundled repository, without GitHub.

    The model's replies come from a recording. Everything else is real: the commands run, the edits
    are made, and the tests pass or fail. With --live, a live model does the work.
    """
    display = take_display(options, environment, uses_stdout=True)
    if not live:
        options = {**options, "model": f"replay:{RECORDING}"}
    settings = load_settings(options, environment)
    require_model(settings)
    now = utc_now()
    engine = engine_environment(settings, environment)
    if settings.runtime == "auto" and not has_image(engine, settings.image):
        options = {**options, "runtime": "local"}
    folder = folder.resolve() / f"{now:%Y%m%d-%H%M%S}"
    repository, issue = make_repository(folder)
    trigger = local_trigger(repository, run=f"{now:%Y%m%d%H%M%S%f}", login="ada", at=now)
    console = display.console
    if not display.is_quiet:
        text = render("run/demo.txt.j2", live=live, model=settings.model, repository=repository)
        console.print(Text(text.rstrip()), soft_wrap=True)
    stored = StoredRequest(run=run_id(trigger.key, now), trigger=trigger, issue=str(issue))
    output = Output(folder / "output")
    request = run_request_from(stored, output, options, environment, progress=display.progress)
    with display.during(), stop_on_signals(), filtered_log(settings, request.host):
        result = run_pipeline(request, None)
    failure = None if live else _replay_failure(result)
    if failure is not None:
        result = replace(result, failure=failure_from_error(failure), exit_code=failure.exit_code)
    if not display.is_quiet:
        _print_diff(display, request.output)
        console.print()
    print_result(result, console)
    return result.exit_code


def _print_diff(display: RunDisplay, output: Output) -> None:
    """Print the change that the run made, if it made one."""
    diff = output.patch.read_text(errors="replace") if output.patch.is_file() else ""
    lines = for_terminal(clean_diff(diff)).splitlines()
    lines = [line for line in lines if not line.startswith("index ")]
    if lines:
        display.console.print()
        display.console.print(Text("\n".join(lines)), soft_wrap=True)


def _replay_failure(result: RunResult) -> SandboxError | None:
    """Return an error if an action of the recording did not run as recorded, else None.

    Outputs may differ, because other versions of Python have other messages.
    """
    divergences = result.log.state.divergences if result.log else []
    failures = [divergence for divergence in divergences if divergence.field != "content"]
    if not failures:
        return None
    first = failures[0]
    return SandboxError(
        f"{len(failures)} of the demo's actions did not run as recorded, first event "
        f"{first.recorded_id} of the recording: its {first.field} was "
        f"{one_line(first.recorded, 100)!r} and is now {one_line(first.found, 200)!r}",
        "the lines above show what failed on this machine; try --runtime docker",
    )
