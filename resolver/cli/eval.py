"""`resolver eval`: makes tasks of a repository's own fixes, and lets Harbor run Resolver."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import click

from resolver.cli.options import SettingsCommand, settings_options_but
from resolver.cli.trace import write_text
from resolver.config.settings import load_settings
from resolver.config.sources import REPOSITORY_FILE, repository_settings
from resolver.config.templates import render
from resolver.config.temporary_directory import temporary_directory
from resolver.errors import UsageError
from resolver.evaluation.atif import render_atif
from resolver.evaluation.candidates import Candidate, TaskMaker, owner_name
from resolver.evaluation.history import find_past_fixes, with_tests
from resolver.git.workspace import Workspace
from resolver.runs.common import filtered_log, open_host, stop_on_signals
from resolver.runtime.environment.images import requested_image
from resolver.storage.log_location import open_log
from resolver.trace.plain import for_terminal

FOLDER = click.Path(file_okay=False, path_type=Path)
BUNDLED = "bundled"
"""Name of the suite that comes with Resolver."""

AGENT = "resolver.evaluation.harbor_agent:ResolverAgent"
NEEDS_DOCKER = {"runtime": "docker"}
"""A task is a container, so its tests are executed in one, whatever the settings say."""


@click.group()
def command() -> None:
    """Measure models on tasks with known answers, such as a repository's own fixes."""


@command.command(cls=SettingsCommand, short_help="Make tasks of the fixes in a history.")
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--last",
    default=30,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="Number of fixes that changed tests to examine, the newest first.",
)
@click.option(
    "--suite",
    type=FOLDER,
    default=Path("resolver-suite"),
    show_default=True,
    help="Folder of the tasks. Tasks that it has already are kept.",
)
@settings_options_but("runtime")
@click.pass_obj
def history(
    environment: Mapping[str, str], /, path: Path, last: int, suite: Path, **options: Any
) -> int:
    """Make tasks in Harbor's format of the fixes in the repository at PATH, without a model.

    A fix is a commit that says `Fixes #N` and changes tests. It is usable if its tests fail on the
    commit before it and pass with it, three times in a row, in the image and with the set-up of the
    settings. If the first fixes all fail for one cause, such as a missing image, the command stops
    and names it.

    The exit code is 0 if at least one task is usable, otherwise 3.
    """
    host = open_host(environment)
    with temporary_directory() as folder:
        clone = Workspace.clone(str(path.resolve()), folder / "clone.git")
        repository = repository_settings(clone.read_trusted(REPOSITORY_FILE))
        settings = load_settings(options | NEEDS_DOCKER, environment, repository)
        image = requested_image(settings.image, clone.read_trusted)
        suite.mkdir(parents=True, exist_ok=True)
        fixes = with_tests(clone.git, find_past_fixes(clone.git, clone.base))
        maker = TaskMaker(settings, host, owner_name(path.resolve()), clone, image, suite)
        found: list[Candidate] = []
        with stop_on_signals(), filtered_log(settings, host):
            for candidate in maker.make(islice(fixes, last)):
                found.append(candidate)
                text = render("eval/examined.txt.j2", candidate=candidate)
                click.echo(for_terminal(text).rstrip(), err=True)
    usable = sum(candidate.rejection is None for candidate in found)
    summary = render("eval/history.txt.j2", found=len(found), usable=usable, suite=suite)
    click.echo(for_terminal(summary).rstrip())
    return 0 if usable else 3


@command.command(
    name="run",
    context_settings={"ignore_unknown_options": True},
    short_help="Let Harbor run Resolver on tasks.",
)
@click.argument("suite", type=FOLDER)
@click.argument("harbor_options", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def run_command(
    environment: Mapping[str, str], /, suite: Path, harbor_options: tuple[str, ...]
) -> int:
    """Let Harbor run Resolver on the tasks of SUITE; HARBOR_OPTIONS are those of `harbor run`.

    SUITE is a folder of tasks, or one task; `bundled` is the suite that comes with Resolver. The
    options say at least the model and what is installed in the containers, for example `--model
    anthropic/claude-sonnet-4-5 --ak package=WHEEL`, and may say the number of attempts (`-k 3`).

    The exit code is Harbor's.
    """
    path = f"{Path(sys.executable).parent}:{environment.get('PATH', '')}"
    harbor = shutil.which("harbor", path=path)
    if harbor is None:
        raise UsageError(
            "Harbor, which runs the tasks, is not installed",
            "install it beside Resolver, with Python 3.12 or later: "
            "pip install 'resolver-agent[evaluation]'",
        )
    folder = bundled_suite() if str(suite) == BUNDLED and not suite.exists() else suite
    arguments = [harbor, "run", "--path", str(folder), "--agent", AGENT, *harbor_options]
    return subprocess.run(arguments, env=dict(environment), check=False).returncode


@command.command(short_help="Print a run as a trajectory in ATIF.")
@click.argument("log")
@click.option("--output", type=click.Path(path_type=Path), help="File to write instead.")
@click.pass_obj
def atif(environment: Mapping[str, str], /, log: str, output: Path | None) -> int:
    """Print the event log LOG as a trajectory in the Agent Trajectory Interchange Format (ATIF).

    LOG is given as for `resolver trace`.
    """
    write_text(render_atif(list(open_log(log, environment))), output)
    return 0


def bundled_suite() -> Path:
    """Return the path of suite/: in the installed package, or at the top of a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "suite"
    return installed if installed.is_dir() else package.parent / "suite"
