"""`resolver init`: writes the workflow and the settings file of a repository after a look at it."""

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import click

from resolver.errors import UsageError
from resolver.settings import REPOSITORY_FILE
from resolver.setup.plan import find_setup
from resolver.setup.survey import Read, Survey, survey
from resolver.templates import render

WORKFLOW = ".github/workflows/agent.yml"
_LARGEST = 1_000_000
_REMOTE = re.compile(
    r"(?:https?://(?:[^/@]+@)?|ssh://git@|git@)([\w.-]+(?::\d+)?)[/:]([\w.-]+/[\w.-]+?)(?:\.git)?/?"
)
_ACTION = re.compile(r"[\w.-]+/[\w./-]+@[\w./-]+")


@dataclass(frozen=True)
class Checkout:
    """What git says of the folder. page: of the repository on its server, "" when not known."""

    root: Path
    branch: str
    page: str


@click.command()
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@click.option(
    "--action", help="The Action to use, as OWNER/NAME@REF; where this was installed from."
)
@click.option("--mention", default="@agent", show_default=True, help="Word that asks for work.")
@click.option("--label", default="agent", show_default=True, help="Label that asks for work.")
@click.option("--force", is_flag=True, help="Write over files that are there already.")
def command(path: Path, action: str | None, mention: str, label: str, force: bool) -> int:
    """Write the workflow and the settings of the repository at PATH, and say what is left to do.

    Files that are there are left alone. Nothing is committed or sent anywhere.
    """
    checkout = _checkout(path)
    found = survey([entry.name for entry in checkout.root.iterdir()], _reader(checkout.root))
    plan = find_setup(_reader(checkout.root))
    setup = "" if plan else found.setup
    files = {
        WORKFLOW: render(
            "init/workflow.yml.j2",
            action=_action(action),
            mention=_plain("mention", mention),
            label=_plain("label", label),
            installs=bool(setup or plan),
        ),
        REPOSITORY_FILE: render(
            "init/settings.yml.j2",
            image=found.image,
            setup=setup,
            prepared_by=plan.source if plan else "",
        ),
    }
    written = list(_write(checkout.root, files, force))
    click.echo(_told(checkout, found, written, mention), nl=False)
    return 0


def _told(checkout: Checkout, found: Survey, files: list[tuple[str, str]], mention: str) -> str:
    return render(
        "init/told.txt.j2",
        language=found.language,
        others=found.others,
        image=found.image,
        tests=found.tests,
        files=files,
        page=checkout.page,
        branch=checkout.branch,
        mention=mention,
        instructed=(checkout.root / "AGENTS.md").is_file(),
        settings_file=REPOSITORY_FILE,
    )


def _write(root: Path, files: dict[str, str], force: bool) -> Iterator[tuple[str, str]]:
    for name, text in files.items():
        target = root / name
        if target.is_file() and target.read_text(errors="replace") == text:
            yield name, "unchanged"
        elif target.exists() and not force:
            yield name, "left alone (--force writes over it)"
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
    found = _REMOTE.fullmatch(_git(path, "remote", "get-url", "origin"))
    return Checkout(Path(root), branch, f"https://{found[1]}/{found[2]}" if found else "")


def _git(path: Path, *arguments: str) -> str:
    """What git prints, "" when it fails."""
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
            return file.read_bytes() if file.stat().st_size <= _LARGEST else None
        except OSError:
            return None

    return read


def _plain(what: str, value: str) -> str:
    """`value`, which goes into an expression and into YAML. Raises UsageError."""
    if not re.fullmatch(r"[@/\w][\w.:/ -]*", value) or value != value.strip():
        raise UsageError(f"the {what} {value!r} can't stand in a workflow", "take a plainer word")
    return value


def _action(given: str | None) -> str:
    """The Action's address. Raises UsageError when it is not known."""
    address = given or _installed_from()
    if address is None:
        raise UsageError(
            "it is not known where the workflow finds Resolver's Action",
            "give it: --action OWNER/resolver@REF, where OWNER/resolver is the repository of "
            "Resolver that you use",
        )
    if not _ACTION.fullmatch(address):
        raise UsageError(f"{address!r} is no OWNER/NAME@REF", "give --action OWNER/resolver@REF")
    return address


def _installed_from() -> str | None:
    """The repository on GitHub and the commit that pip has installed this from.

    Source: https://packaging.python.org/en/latest/specifications/direct-url/
    """
    try:
        origin = json.loads(distribution("resolver").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return None
    commit = origin.get("vcs_info", {}).get("commit_id")
    found = _REMOTE.fullmatch(str(origin.get("url", "")))
    return f"{found[2]}@{commit}" if commit and found else None
