"""Runs a sweep for the command and for the Action: settings, output folder, report, outputs."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from resolver.config.settings import load_settings
from resolver.entrypoints.action import (
    OUTPUT_FOLDER,
    actions_run,
    append_summary,
    change_owner,
    job_url,
    open_output,
    write_outputs,
)
from resolver.entrypoints.sweep import Sweep, SweepFate, SweepLimits, render_sweep
from resolver.events.stream import Subscriber, utc_now
from resolver.github.client.access import check_repository
from resolver.runs.common import (
    default_output,
    filtered_log,
    github_forge,
    open_host,
    require_model,
    stop_on_signals,
)
from resolver.runs.reporting import print_result
from resolver.trace.plain import for_terminal

logger = logging.getLogger("resolver.entrypoints.sweep")


def run_sweep(
    environment: Mapping[str, str],
    options: Mapping[str, Any],
    repository: str,
    print_line: Callable[[str], None],
    *,
    limits: SweepLimits,
    console: Console,
    progress: Subscriber | None,
    dry_run: bool = False,
    output: Path | None = None,
) -> int:
    """Run a sweep, print its report and return the exit code.

    environment, options: sources of the settings.
    print_line: called with each line of the report.
    limits: what bounds the sweep.
    console: where the result of each run is printed.
    progress: subscriber of the events of the runs.
    """
    settings = load_settings(options, environment)
    check_repository(repository)
    if not dry_run:
        require_model(settings)
    host = open_host(environment)
    forge = github_forge(settings, repository, host)
    # Only a sweep of a job, not one that is tried or that writes elsewhere, uses its workspace.
    workspace = _workspace(environment) if output is None and not dry_run else None
    if workspace is not None:
        folder = open_output(workspace).folder
    else:
        folder = output or default_output(environment, f"sweep-{utc_now():%Y%m%d-%H%M%S}")
    with stop_on_signals() as stopping, filtered_log(settings, host):
        running_sweep = Sweep(
            repository=repository,
            forge=forge,
            settings=settings,
            load=lambda repository: load_settings(options, environment, repository),
            host=host,
            folder=folder,
            limits=limits,
            is_dry_run=dry_run,
            progress=progress,
            actions_run=actions_run(environment),
            log_url=job_url(environment, repository),
            stopping=stopping,
            on_result=lambda result: print_result(result, console),
        )
        rows = running_sweep.run()
    _print_report(running_sweep, environment, print_line)
    failed = stopping.is_set() or any(row.fate is SweepFate.FAILED for row in rows)
    if workspace is not None:
        state, cost = "error" if failed else "finished", f"{running_sweep.spent:.4f}"
        write_outputs(environment, {"state": state, "cost": cost, "output": OUTPUT_FOLDER})
        change_owner(folder, workspace)
    return int(failed)


def _print_report(
    sweep: Sweep, environment: Mapping[str, str], print_line: Callable[[str], None]
) -> None:
    """Print the report of a sweep that has ended, and add it to the summary of the job."""
    for line in render_sweep(sweep, "sweep.txt.j2", "").strip().splitlines():
        print_line(for_terminal(line))
    summary = render_sweep(sweep, "sweep.md.j2", sweep.settings.github_server_url)
    append_summary(environment, summary)


def _workspace(environment: Mapping[str, str]) -> Path | None:
    """Return the workspace of the GitHub Actions job, None outside of one."""
    workspace = environment.get("GITHUB_WORKSPACE", "")
    return Path(workspace) if workspace and environment.get("GITHUB_ACTIONS") == "true" else None
