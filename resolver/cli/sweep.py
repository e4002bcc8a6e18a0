"""`resolver sweep`: resolves the labeled issues of a repository that are not done."""

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from resolver.cli.options import settings_options
from resolver.config.settings import load_settings
from resolver.entrypoints.action import (
    OUTPUT_FOLDER,
    actions_run,
    change_owner,
    open_output,
    write_outputs,
)
from resolver.entrypoints.sweep import Sweep, SweepBounds, SweepFate, render_sweep
from resolver.errors import UsageError
from resolver.events.stream import utc_now
from resolver.github.client.access import check_repository
from resolver.runs.common import (
    default_output,
    filtered_log,
    github_forge,
    open_host,
    print_result,
    require_model,
    stop_on_signals,
)
from resolver.trace.plain import for_terminal
from resolver.trace.text import TerminalProgress


@click.command()
@click.argument("repository")
@click.option(
    "--max-issues",
    type=click.IntRange(min=1),
    help="Maximum number of runs to start. Default: `automatic_run_limits`, 5 runs.",
)
@click.option(
    "--max-total",
    type=click.FloatRange(min=0, min_open=True, max=1e9),
    help="Maximum cost of all runs in US dollars. Default: `automatic_run_limits`, $10.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder with a subfolder issue-N for each run. Default: resolver-output in a job of "
    "GitHub Actions, otherwise a new folder below ~/.local/state/resolver.",
)
@settings_options
@click.pass_obj
def command(
    environment: Mapping[str, str],
    /,
    repository: str,
    max_issues: int | None,
    max_total: float | None,
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
    if max_total is not None and not isfinite(max_total):
        raise UsageError("--max-total is not an amount", "use US dollars, for example 10")
    limits = {"sweep_runs": max_issues, "sweep_cost": max_total}
    chosen_limits = {name: limit for name, limit in limits.items() if limit is not None}
    options = {**options, "automatic_run_limits": chosen_limits}
    return sweep(environment, options, repository, dry_run, output)


def sweep(
    environment: Mapping[str, str],
    options: Mapping[str, Any],
    repository: str,
    dry_run: bool = False,
    output: Path | None = None,
) -> int:
    """Run a sweep, print its report and return the exit code.

    `options` and `environment` are sources of the settings.
    """
    settings = load_settings(options, environment)
    check_repository(repository)
    if not dry_run:
        require_model(settings)
    console = Console(stderr=True)
    host = open_host(environment)
    forge = github_forge(settings, repository, host)
    workspace = _workspace(environment) if output is None else None
    now = f"{utc_now():%Y%m%d-%H%M%S}"
    folder = output or default_output(environment, f"sweep-{now}")
    if workspace is not None and not dry_run:
        folder = open_output(workspace).folder
    run, server = environment.get("GITHUB_RUN_ID", ""), environment.get("GITHUB_SERVER_URL", "")
    with stop_on_signals() as stopping, filtered_log(settings, host):
        limits = settings.automatic_run_limits
        running_sweep = Sweep(
            repository=repository,
            forge=forge,
            settings=settings,
            load=lambda found: load_settings(options, environment, found),
            host=host,
            bounds=SweepBounds(limits.sweep_runs, limits.sweep_cost),
            folder=folder,
            dry=dry_run,
            progress=TerminalProgress(console),
            actions_run=actions_run(environment),
            log_url=f"{server}/{repository}/actions/runs/{run}" if server and run else "",
            stopping=stopping,
            ended=lambda result: print_result(result, console),
        )
        rows = running_sweep.run()
    for line in render_sweep(running_sweep, "sweep.txt.j2", "").strip().splitlines():
        click.echo(for_terminal(line))
    _write_summary(
        environment, render_sweep(running_sweep, "sweep.md.j2", settings.github_server_url)
    )
    failed = running_sweep.stopping.is_set() or any(row.fate is SweepFate.FAILED for row in rows)
    if workspace is not None and not dry_run:
        state = "error" if failed else "finished"
        write_outputs(
            environment,
            {"state": state, "cost": f"{running_sweep.spent:.4f}", "output": OUTPUT_FOLDER},
        )
        change_owner(folder, workspace)
    return int(failed)


def _workspace(environment: Mapping[str, str]) -> Path | None:
    """Return the workspace of the GitHub Actions job, None outside of one."""
    workspace = environment.get("GITHUB_WORKSPACE", "")
    return Path(workspace) if workspace and environment.get("GITHUB_ACTIONS") == "true" else None


def _write_summary(environment: Mapping[str, str], text: str) -> None:
    path = environment.get("GITHUB_STEP_SUMMARY")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)
