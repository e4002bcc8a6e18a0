"""`resolver init`: inspects a repository and writes its workflow and settings file."""

import json
import os
import re
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import click
import yaml

from resolver.cli.agent_workflow import (
    DEFAULT_TEST_WORKFLOW,
    EVALUATION_WORKFLOW,
    EVERY_NIGHT,
    WORKFLOW,
    Features,
    evaluation_workflow_text,
    find_test_workflows,
    workflow_text,
)
from resolver.cli.setup_check import try_setup
from resolver.config.allowed_hosts import AllowList
from resolver.config.settings import REPOSITORY_FILE, load_settings, repository_settings
from resolver.config.templates import render
from resolver.errors import UsageError
from resolver.memory.skills.reading import INSTRUCTION_FILES
from resolver.models.verification import ProjectCheck
from resolver.runs.common import filtered_log, open_host
from resolver.runtime.environment.proposal import ProposedEnvironment, propose_environment
from resolver.runtime.environment.survey import Read, Survey, folders_of, survey
from resolver.trace.plain import for_terminal
from resolver.verification.discovery import DiscoveredChecks, discover_checks
from resolver.verification.project_files import is_test_file
from resolver.verification.project_tree import ProjectTree

_MAX_FILE_BYTES = 1_000_000
_REMOTE = re.compile(
    r"(?:https?://(?:[^/@]+@)?|ssh://git@|git@)([\w.-]+(?::\d+)?)[/:]([\w.-]+/[\w.-]+?)(?:\.git)?/?"
)
_ACTION = re.compile(r"[\w.-]+/[\w./-]+@[\w./-]+")


@dataclass(frozen=True)
class Checkout:
    """A git checkout. `page` is the repository's URL on its server, "" if unknown."""

    root: Path
    branch: str
    page: str


@click.command()
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@click.option(
    "--action",
    help="The Action to use, as OWNER/NAME@REF. Default: where Resolver was installed from.",
)
@click.option("--mention", default="@agent", show_default=True, help="Mention that starts work.")
@click.option("--label", default="agent", show_default=True, help="Label that starts work.")
@click.option("--sweep", is_flag=True, help="Resolve labeled issues every night.")
@click.option(
    "--schedule", metavar="CRON", help='Resolve labeled issues at these times (UTC): "0 6 * * 1".'
)
@click.option(
    "--fix-checks",
    type=click.Choice(["own", "default-branch", "all"]),
    help="Whose failing checks start work; see docs/reference/triggers.md.",
)
@click.option(
    "--check-workflow",
    "checked",
    multiple=True,
    metavar="NAME",
    help="Workflow whose failures start work. Default: all that run tests.",
)
@click.option("--dashboard", is_flag=True, help="Maintain an issue that shows runs and their cost.")
@click.option(
    "--eval",
    "evaluates",
    is_flag=True,
    help="Add a workflow that measures the agent each week if its model, version or settings have "
    "changed, and opens an issue if it resolves fewer tasks.",
)
@click.option(
    "--eval-suite",
    metavar="PATH",
    help="Suite in the repository for --eval. Default: tasks of the repository's history.",
)
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
    sweep: bool,
    schedule: str | None,
    fix_checks: str | None,
    checked: tuple[str, ...],
    dashboard: bool,
    evaluates: bool,
    eval_suite: str | None,
    force: bool,
    check: bool,
) -> int:
    """Write the workflow and the settings file of the repository at PATH.

    Both are derived from the files of the repository, and the steps that are left to do are listed.
    Existing files are kept unless --force is given. Nothing is committed or sent anywhere. The exit
    code is 1 if --check finds that the setup fails.
    """
    checkout = _checkout(path)
    features = Features(
        schedule=schedule or (EVERY_NIGHT if sweep else ""),
        fix_checks=fix_checks or "",
        checked=checked or find_test_workflows(checkout.root),
        dashboard=dashboard,
    )
    names = [entry.name for entry in checkout.root.iterdir()]
    paths = _list_paths(checkout.root)
    surveyed = survey(names, _reader(checkout.root), folders_of(paths))
    proposal = propose_environment(surveyed, _reader(checkout.root), partial(_exists, set(paths)))
    checks = discover_checks(
        _project_tree(checkout.root, paths),
        AllowList.parse(("packages",) if proposal.installs else ()),
    )
    files = {
        **_workflow_files(
            checkout,
            _action_address(action),
            (mention, label),
            features,
            proposal,
            eval_suite or ("" if evaluates else None),
        ),
        REPOSITORY_FILE: _settings_file(proposal, checks),
    }
    written = list(_write(checkout.root, files, force))
    # The unit tests of Rust are in the files that they test.
    is_tested = surveyed.language == "Rust" or any(map(is_test_file, paths))
    summary = _render_summary(
        checkout, surveyed, proposal, written, mention, features, checks, is_tested=is_tested
    )
    click.echo(for_terminal(summary), nl=False)
    return _check_setup(environment, checkout.root, proposal) if check else 0


def _workflow_files(
    checkout: Checkout,
    action: str,
    names: tuple[str, str],
    features: Features,
    proposal: ProposedEnvironment,
    suite: str | None,
) -> dict[str, str]:
    """Return the workflows by path. names: mention and label. suite: of the evaluation, or None."""
    installs = proposal.installs
    files = {WORKFLOW: workflow_text(action, *names, installs=installs, features=features)}
    if suite is not None:
        files[EVALUATION_WORKFLOW] = evaluation_workflow_text(action, checkout.branch, suite)
    return files


def _settings_file(proposal: ProposedEnvironment, checks: DiscoveredChecks) -> str:
    return render(
        "init/settings.yml.j2",
        **asdict(proposal),
        checks=_render_checks(checks.checks).splitlines(),
        omitted=checks.omitted,
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
    return 0 if trial.ok else 1


def _render_summary(
    checkout: Checkout,
    surveyed: Survey,
    proposal: ProposedEnvironment,
    files: list[tuple[str, str]],
    mention: str,
    features: Features,
    checks: DiscoveredChecks,
    *,
    is_tested: bool,
) -> str:
    return render(
        "init/report.txt.j2",
        language=surveyed.language,
        others=surveyed.others,
        image=proposal.image,
        skip_reasons=proposal.skip_reasons,
        checks=checks,
        tests=" ".join(checks.checks[0].command.split()) if is_tested and checks.checks else "",
        tested=is_tested,
        files=files,
        page=checkout.page,
        branch=checkout.branch,
        mention=mention,
        instructed=next(
            (name for name in INSTRUCTION_FILES if (checkout.root / name).is_file()), ""
        ),
        settings_file=REPOSITORY_FILE,
        fix_checks=features.fix_checks,
        checked=features.checked or (DEFAULT_TEST_WORKFLOW,),
        guessed=not features.checked,
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
    entries = [{"name": check.name, "command": check.command} for check in checks]
    return yaml.safe_dump(entries, sort_keys=False, width=1_000) if entries else ""


def _write(root: Path, files: dict[str, str], force: bool) -> Iterator[tuple[str, str]]:
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
    remote = _REMOTE.fullmatch(_git(path, "remote", "get-url", "origin"))
    return Checkout(Path(root), branch, f"https://{remote[1]}/{remote[2]}" if remote else "")


def _list_paths(root: Path) -> list[str]:
    """Return the paths of the files that git tracks or would add."""
    output = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return [path for path in output.split("\0") if path]


def _exists(paths: Collection[str], path: str) -> bool:
    """Return True if git has a file or a folder at this path."""
    return path in {".", *paths} or any(known_path.startswith(f"{path}/") for known_path in paths)


def _git(path: Path, *arguments: str) -> str:
    """Return the output of git, "" if it fails."""
    try:
        result = subprocess.run(
            ["git", "-C", str(path), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise UsageError("git is not installed", "install it: apt-get install git") from None
    return result.stdout.strip() if result.returncode == 0 else ""


def _reader(root: Path) -> Read:
    def read(name: str) -> bytes | None:
        file = root / name
        try:
            return file.read_bytes() if file.stat().st_size <= _MAX_FILE_BYTES else None
        except OSError:
            return None

    return read


def _action_address(action: str | None) -> str:
    """Return the address of Resolver's Action. Raises UsageError if it is unknown or malformed."""
    address = action or _installed_from()
    if address is None:
        raise UsageError(
            "the location of Resolver's Action is not known",
            "set it with --action OWNER/resolver@REF, where OWNER/resolver is the repository of "
            "Resolver that you use",
        )
    if not _ACTION.fullmatch(address):
        raise UsageError(
            f"{address!r} does not have the form OWNER/NAME@REF", "give --action OWNER/resolver@REF"
        )
    return address


def _installed_from() -> str | None:
    """Return the GitHub repository and commit that pip installed this program from, or None.

    Source: https://packaging.python.org/en/latest/specifications/direct-url/
    """
    try:
        origin = json.loads(distribution("resolver-agent").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return None
    commit = origin.get("vcs_info", {}).get("commit_id")
    remote = _REMOTE.fullmatch(str(origin.get("url", "")))
    return f"{remote[2]}@{commit}" if commit and remote else None
