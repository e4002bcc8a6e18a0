"""The address of Resolver's Action in a workflow: OWNER/NAME@REF."""

import json
import re
import subprocess
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from resolver import __version__
from resolver.config.version import PACKAGE
from resolver.errors import UsageError

REMOTE = re.compile(
    r"(?:https?://(?:[^/@]+@)?|ssh://git@|git@)([\w.-]+(?::\d+)?)[/:]([\w.-]+/[\w.-]+?)(?:\.git)?/?"
)
"""URL of a repository on a GitHub server: the groups are the server and OWNER/NAME."""

_ADDRESS = re.compile(r"[\w.-]+/[\w./-]+@[\w./-]+")
_PLACEHOLDER = "OWNER/resolver@REF"


def action_address(
    given: str | None, environment: Mapping[str, str], package: Path = PACKAGE
) -> str:
    """Return the address that was given, or that of the Resolver which is running.

    Raises UsageError if it is unknown or malformed.
    """
    address = (
        given
        or _installed_from()
        or _running_action(environment)
        or address_of_release(_project_urls())
        or _checked_out_from(package)
    )
    if address is None:
        raise UsageError(
            "the location of Resolver's Action is not known",
            f"set it with --action {_PLACEHOLDER}, where OWNER/resolver is the repository of "
            "Resolver that you use",
        )
    if not _ADDRESS.fullmatch(address):
        raise UsageError(
            f"{address!r} does not have the form OWNER/NAME@REF", f"give --action {_PLACEHOLDER}"
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
    remote = REMOTE.fullmatch(str(origin.get("url", "")))
    return f"{remote[2]}@{commit}" if commit and remote else None


def address_of_release(project_urls: Iterable[str]) -> str | None:
    """Return the repository that released this package, at the version's tag; None if unknown.

    Only the package of a release names its repository: on a branch the account is OWNER, see
    pyproject.toml. Source: https://packaging.python.org/en/latest/specifications/core-metadata/
    """
    for label, _, url in (entry.partition(", ") for entry in project_urls):
        remote = REMOTE.fullmatch(url)
        if label == "Repository" and remote and not remote[2].startswith("OWNER/"):
            return f"{remote[2]}@v{__version__}"
    return None


def _project_urls() -> list[str]:
    try:
        return distribution("resolver-agent").metadata.get_all("Project-URL") or []
    except PackageNotFoundError:
        return []


def _running_action(environment: Mapping[str, str]) -> str | None:
    """Return the repository and ref of the action that a step of a job executes, or None.

    Source: https://docs.github.com/en/actions/reference/workflows-and-actions/variables
    """
    repository = environment.get("GITHUB_ACTION_REPOSITORY", "")
    ref = environment.get("GITHUB_ACTION_REF", "")
    # Another action, such as one that sets up Python, can be what starts `resolver` in a job.
    is_ours = repository.lower().endswith("/resolver")
    return f"{repository}@{ref}" if is_ours and ref else None


def _checked_out_from(package: Path) -> str | None:
    """Return the origin of the checkout with this package, and its newest published commit."""
    checkout = package.parent
    if not (checkout / ".git").exists():
        return None  # a virtual environment in the checkout of another project
    remote = REMOTE.fullmatch(git_output(checkout, "remote", "get-url", "origin"))
    # A commit that was not pushed can't be used by a workflow.
    branch = git_output(checkout, "rev-parse", "--verify", "--quiet", "refs/remotes/origin/HEAD")
    commit = git_output(checkout, "merge-base", "HEAD", branch) if branch else ""
    return f"{remote[2]}@{commit}" if remote and commit else None


def git_output(checkout: Path, *arguments: str) -> str:
    """Return the output of git, "" if it fails. Raises UsageError if there is no git."""
    try:
        result = subprocess.run(
            ["git", "-C", str(checkout), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise UsageError("git is not installed", "install it: apt-get install git") from None
    return result.stdout.strip() if result.returncode == 0 else ""
