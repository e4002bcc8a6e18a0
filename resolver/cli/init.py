"""`resolver init`: inspects a repository and writes its workflow and settings file."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import yaml

from resolver.cli.action_address import REMOTE, action_address, git_output
from resolver.cli.agent_workflow import WORKFLOW, workflow_text
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
from resolver.runtime.environment.survey import Survey, survey
from resolver.trace.plain import for_terminal
from resolver.verification.checks import discover_checks
from resolver.verification.project_tree import ProjectTree

_MAX_FILE_BYTES = 1_000_000


@dataclass(frozen=True)
class Checkout:
    """A git checkout. `page` is the repository's URL on its server, "" if unknown."""

    root: Path
    branch: str
    page: str


@dataclass(frozen=True)
class _Inspection:
    """What the files of a checkout show. is_tested: True if the project has tests."""

    surveyed: Survey
    proposal: ProposedEnvironment
    checks: tuple[ProjectCheck, ...]
    is_tested: bool


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
    checkout = _checkout(path)
    inspection = _inspect(checkout.root)
    proposal = inspection.proposal
    files = {
        WORKFLOW: workflow_text(
            action_address(action, environment),
            mention,
            label,
            installs=proposal.installs,
        ),
        REPOSITORY_FILE: _settings_file(proposal, inspection.checks),
    }
    written = list(_write(checkout.root, files, force))
    summary = _render_summary(checkout, inspection, written, mention)
    click.echo(for_terminal(summary), nl=False)
    return _check_setup(environment, checkout.root, proposal) if check else 0


def _inspect(root: Path) -> _Inspection:
    """Derive image, setup and checks of a project from its files."""
    paths = _list_paths(root)
    surveyed = survey(_reader(root))
    proposal = propose_environment(surveyed, _reader(root))
    checks = discover_checks(_project_tree(root, paths))
    # The unit tests of Rust are in the files that they test.
    is_tested = surveyed.language == "Rust" or any(map(is_test_file, paths))
    return _Inspection(surveyed, proposal, checks, is_tested)


def _settings_file(proposal: ProposedEnvironment, checks: Sequence[ProjectCheck]) -> str:
    return render(
        "init/settings.yml.j2",
        **asdict(proposal),
        checks=_render_checks(checks),
    )


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


def _render_summary(
    checkout: Checkout,
    inspection: _Inspection,
    files: list[tuple[str, str]],
    mention: str,
) -> str:
    """Return what was found and written, and what is left to do.

    files: the path of each file, with what was done to it.
    """
    checks = inspection.checks
    tested_by = checks[0].command if inspection.is_tested and checks else ""
    return render(
        "init/report.txt.j2",
        language=inspection.surveyed.language,
        image=inspection.proposal.image,
        skip_reason=inspection.proposal.skip_reason,
        checks=checks,
        tests=" ".join(tested_by.split()),
        tested=inspection.is_tested,
        files=files,
        page=checkout.page,
        branch=checkout.branch,
        mention=mention,
        instructed=next(
            (name for name in INSTRUCTION_FILES if (checkout.root / name).is_file()), ""
        ),
        settings_file=REPOSITORY_FILE,
    )


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
    root = git_output(path, "rev-parse", "--show-toplevel")
    if not root:
        raise UsageError(f"{path} is not in a git repository", "give the path of a checkout")
    head = git_output(path, "symbolic-ref", "--short", "refs/remotes/origin/HEAD").removeprefix(
        "origin/"
    )
    branch = head or git_output(path, "symbolic-ref", "--short", "HEAD") or "the default branch"
    remote = REMOTE.fullmatch(git_output(path, "remote", "get-url", "origin"))
    return Checkout(Path(root), branch, f"https://{remote[1]}/{remote[2]}" if remote else "")


def _list_paths(root: Path) -> list[str]:
    """Return the paths of the files that git tracks or would add."""
    output = git_output(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return [path for path in output.split("\0") if path]


def _reader(root: Path) -> Read:
    def read(name: str) -> bytes | None:
        file = root / name
        try:
            return file.read_bytes() if file.stat().st_size <= _MAX_FILE_BYTES else None
        except OSError:
            return None

    return read
