"""`resolver sweep`: resolves the labeled issues of a repository that are not done."""

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import click

from resolver.cli.options import SettingsCommand, settings_options
from resolver.cli.run_display import display_options, take_display
from resolver.entrypoints.sweep import SweepLimits, run_sweep
from resolver.errors import UsageError


@click.command(cls=SettingsCommand)
@click.argument("repository")
@click.option(
    "--max-issues",
    type=click.IntRange(min=1),
    default=SweepLimits.runs,
    show_default=True,
    help="Maximum number of runs to start.",
)
@click.option(
    "--max-total",
    type=click.FloatRange(min=0, min_open=True, max=1e9),
    default=SweepLimits.cost,
    show_default=True,
    help="Maximum cost of all runs in US dollars.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder with a subfolder issue-N for each run. Default: resolver-output in a job of "
    "GitHub Actions, otherwise a new folder below ~/.local/state/resolver.",
)
@display_options
@settings_options
@click.pass_obj
def command(
    environment: Mapping[str, str],
    /,
    repository: str,
    max_issues: int,
    max_total: float,
    dry_run: bool,
    output: Path | None,
    **options: Any,
) -> int:
    """Resolve the open issues of REPOSITORY (OWNER/NAME) that have the label, oldest first.

    An issue is handled as if it had just been labeled by the person who added the label: with the
    text that it had then, and only if that person may start work. It is skipped if Resolver has an
    open pull request for it or has answered it already, or if it was edited after it was labeled.

    The report has one line per issue; in a job of GitHub Actions it also goes into the job summary.
    The exit code is 0 if no run failed, 1 if one did.
    """
    # click's range lets infinity and NaN through
    if not isfinite(max_total):
        raise UsageError("--max-total is not an amount", "use US dollars, for example 10")
    display = take_display(options, environment)
    report: list[str] = []
    with display.during():
        exit_code = run_sweep(
            environment,
            options,
            repository,
            report.append,
            limits=SweepLimits(max_issues, max_total),
            console=display.console,
            progress=display.progress,
            dry_run=dry_run,
            output=output,
        )
    # After the live view has cleared its lines.
    for line in report:
        click.echo(line, err=display.is_json)
    return exit_code
