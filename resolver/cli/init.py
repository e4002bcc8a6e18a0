"""`resolver init`: inspects a repository and writes its workflow and settings file."""

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import yaml

from resolver.cli.agent_workflow import REMOTE, WORKFLOW, action_address, workflow_text
from resolver.cli.setup_check import try_setup
from resolver.config.settings import load_settings
from resolver.config.sources import REPOSITORY_FILE, repository_settings
from resolver.config.templates import render
from resolver.errors import UsageError
from resolver.memory.skills.library import INSTRUCTION_FILES
from resolver.models.test_files import is_test_file
from resolver.models.verification import ProjectCheck
from resolver.runs.common import filtered_log, open_host
from resolver.runtime.environment.plan import Read
from resolver.runtime.environment.proposal import ProposedEnvironment, propose_environment
from resolver.runtime.environment.survey import survey
from resolver.trace.plain import for_terminal
from resolver.verification.checks import discover_checks
from resolver.verification.project_tree import ProjectTree

_MAX_FILE_BYTES = 1_000_000


@dataclass(frozen=True)
class Checkout:
    """A git checkout. `page` is the repository's URL on its server, None if unknown."""

    root: Path
    branch: str
    page: str | None


@click.command()
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@click.option(
    "--action",
    help="The Action to use, as OWNER/NAME@REF. Default: where this Resolver is from.",
)
@click.option("--mention", default="@agent", show_default=True, help="Mention that starts work.")
@click.option("--label", default="agent", show_default=True, help="Label that starts work.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option(
    "--check", is_flag=True, help="Try the setup once in a sandbox, at the checked-out commit."
)
@click.pass_obj
def command(
    environment: Mapping[str, str],
    /,
    path: Path,
    action: str | None,
    mention: str,
    label: str,
    force: bool,
    check: bool,
) -> int:
    """Write the workflow and the settings file of the repository at PATH.

    Both are derived from the files of the repository, and the steps that are left to do are listed.
    Existing files are kept unless --force is given. Nothing is committed or sent anywhere. The exit
    code is 1 if --check finds that the setup fails.
    """
    load_settings({"mention": mention}, {}, only={"mention"})
    checkout = _checkout(path)
    root, read = checkout.root, _reader(checkout.root)
    surveyed = survey(read)
    proposal = propose_environment(surveyed, read)
    paths = _list_paths(root)
    checks = discover_checks(_project_tree(root, paths))
    address = action_address(action)
    workflow = workflow_text(address, mention, label, installs=proposal.installs)
    settings_file = render(
        "init/settings.yml.j2", **asdict(proposal), checks=_render_checks(checks)
    )
    files = {WORKFLOW: workflow, REPOSITORY_FILE: settings_file}
    summary = render(
        "init/report.txt.j2",
        language=surveyed.language,
        image=proposal.image,
        unused=proposal.unused,
        checks=checks,
        # The unit tests of Rust are in the files that they test.
        tested=surveyed.language == "Rust" or any(map(is_test_file, paths)),
        files=list(_write(root, files, force)),
        page=checkout.page,
        branch=checkout.branch,
        mention=mention,
        instructed=next((name for name in INSTRUCTION_FILES if (root / name).is_file()), None),
        settings_file=REPOSITORY_FILE,
        action=address,
    )
    click.echo(for_terminal(summary), nl=False)
    return _check_setup(environment, root, proposal) if check else 0


def _check_setup(environment: Mapping[str, str], root: Path, proposed: ProposedEnvironment) -> int:
    """Try the setup of the current settings file and return the exit code.

    The sandbox gets the same network access as in the generated workflow.
    """
    click.echo("\nTrying the setup in a sandbox ...")
    file = _reader(root)(REPOSITORY_FILE)
    settings = load_settings({}, environment, repository_settings(file))
    if proposed.installs and not settings.egress:
        settings = settings.model_copy(update={"egress": ("packages",)})
    host = open_host(environment)
    with filtered_log(settings, host):
        trial = try_setup(settings, host, root)
    text = render("init/tried.txt.j2", trial=trial, settings_file=REPOSITORY_FILE)
    click.echo(for_terminal(host.redactor(settings).redact_text(text)), nl=False)
    return 0 if trial.is_usable else 1


def _project_tree(root: Path, paths: Iterable[str]) -> ProjectTree:
    """Return the files that git knows, without symbolic links."""
    regular = sorted(p for p in paths if p.isprintable() and not (root / p).is_symlink())
    read = _reader(root)

    def read_many(wanted: Iterable[str]) -> dict[str, bytes]:
        found = {path: read(path) for path in wanted}
        return {path: content for path, content in found.items() if content is not None}

    return ProjectTree(tuple(regular), read_many)


def _render_checks(checks: Iterable[ProjectCheck]) -> str:
    """Return the checks as YAML, as the setting `checks` takes them."""
    entries = [
        {"name": check.name, "command": check.narrowed or check.command}
        | ({"paths": list(check.paths)} if check.paths else {})
        for check in checks
    ]
    return yaml.safe_dump(entries, sort_keys=False, width=1_000) if entries else ""


def _write(root: Path, files: dict[str, str], force: bool) -> Iterator[tuple[str, str]]:
    """Write the files, by path, and yield the path of each and what was done to it."""
    for name, text in files.items():
        target = root / name
        if target.is_file() and target.read_text(errors="replace") == text:
            yield name, "unchanged"
        elif os.path.lexists(target) and not force:
            yield name, "left unchanged (--force overwrites it)"
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            yield name, "wrote"


def _checkout(path: Path) -> Checkout:
    root = _git(path, "rev-parse", "--show-toplevel")
    if not root:
        raise UsageError(f"{path} is not in a git repository", "give the path of a checkout")
    head = _git(path, "symbolic-ref", "--short", "refs/remotes/origin/HEAD").removeprefix("origin/")
    branch = head or _git(path, "symbolic-ref", "--short", "HEAD") or "the default branch"
    remote = REMOTE.fullmatch(_git(path, "remote", "get-url", "origin"))
    return Checkout(Path(root), branch, f"https://{remote[1]}/{remote[2]}" if remote else None)


def _git(checkout: Path, *arguments: str) -> str:
    """Return the output of git, an empty text if it fails."""
    try:
        result = subprocess.run(
            ["git", "-C", str(checkout), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise UsageError("git is not installed", "install it: apt-get install git") from None
    return result.stdout.strip() if result.returncode == 0 else ""


def _list_paths(root: Path) -> list[str]:
    """Return the paths of the files that git tracks or would add."""
    output = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return [path for path in output.split("\0") if path]


def _reader(root: Path) -> Read:
    def read(name: str) -> bytes | None:
        file = root / name
        try:
            return file.read_bytes() if file.stat().st_size <= _MAX_FILE_BYTES else None
        except OSError:
            return None

    return read
