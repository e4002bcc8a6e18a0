"""`resolver resolve`: one issue, from GitHub or from a file beside a local checkout."""

import getpass
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from resolver.commands.options import run_options
from resolver.doors import (
    command_line_trigger,
    default_output,
    filtered_log,
    github_forge,
    host_of,
    parse_target,
    require_model,
    run_id,
    stop_on_signals,
)
from resolver.errors import UsageError
from resolver.events.stream import utc_now
from resolver.forge.base import Forge
from resolver.forge.local import LocalForge, local_trigger, read_issue_file
from resolver.model import Trigger
from resolver.output import Output
from resolver.pipeline import resolve
from resolver.record import Job
from resolver.result import print_result
from resolver.settings import Settings, load_settings
from resolver.trace.progress import Progress
from resolver.workspace.workspace import Workspace


@click.command()
@click.argument("target")
@click.option(
    "--issue",
    type=click.Path(path_type=Path),
    help="Issue as a markdown file, for a local checkout: title on the first line.",
)
@run_options
@click.pass_obj
def command(
    environment: Mapping[str, str],
    /,
    target: str,
    issue: Path | None,
    output: Path | None,
    no_publish: bool,
    **options: Any,
) -> int:
    """Resolve the issue TARGET and open a pull request.

    TARGET is OWNER/NAME#N or the URL of a GitHub issue (GITHUB_TOKEN is used), or the PATH of a
    local git checkout together with --issue FILE.md. On a local checkout the change becomes a new
    branch `agent/...`; working tree, index, hooks and configuration are left alone.
    """
    settings = load_settings(options, environment)
    require_model(settings)
    trigger, forge = _local(Path(target), issue) if issue else _github(target, settings)
    run = run_id(trigger.key, trigger.at)
    console = Console(stderr=True)
    job = Job(
        trigger=trigger,
        run=run,
        output=Output(output or default_output(environment, run)),
        load=lambda repository: load_settings(options, environment, repository),
        host=host_of(environment),
        publish=not no_publish,
        progress=Progress(console),
    )
    with stop_on_signals(), filtered_log(settings, job.host):
        record = resolve(job, forge)
    print_result(record, console)
    return record.exit_code


def _local(path: Path, issue: Path) -> tuple[Trigger, Forge]:
    if not path.is_dir():
        raise UsageError(f"{path} is not a folder", "give the path of a git checkout")
    now = utc_now()
    path = path.resolve()
    trigger = local_trigger(path, run=f"{now:%Y%m%d%H%M%S%f}", login=_login(), at=now)
    read_issue_file(issue, trigger, "")
    return trigger, LocalForge(issue, "", Workspace.branches(path))


def _github(target: str, settings: Settings) -> tuple[Trigger, Forge]:
    found = parse_target(target)
    if found is None:
        there = Path(target).is_dir()
        raise UsageError(
            f"{target} is a folder and no issue is given" if there else f"{target!r} is no issue",
            f"add --issue FILE.md: resolver resolve {shlex.quote(target)} --issue FILE.md"
            if there
            else "give OWNER/NAME#N, the URL of an issue, or PATH --issue FILE.md",
        )
    repository, number = found
    trigger = command_line_trigger(repository, number, utc_now())
    return trigger, github_forge(settings, repository)


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
