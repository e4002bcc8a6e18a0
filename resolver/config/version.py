"""The commit that this installation of Resolver was built from, for `resolver --version`."""

import subprocess
from pathlib import Path

from resolver import __version__

PACKAGE = Path(__file__).parents[1]
COMMIT_FILE = "commit.txt"
"""File in the package in which a wheel or source distribution records it (hatch_build.py)."""

_ABBREVIATED = 12


def version_text(package: Path = PACKAGE) -> str:
    """Return the version, followed by the commit if it is known: `0.1.0 (1a2b3c4d5e6f)`."""
    commit = read_commit(package)
    return f"{__version__} ({_abbreviate(commit)})" if commit else __version__


def read_commit(package: Path) -> str:
    """Return the commit that a package was built from or is checked out at, or "" if unknown.

    The commit of a checkout whose tracked files were changed ends with `-dirty`.
    """
    try:
        return (package / COMMIT_FILE).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return checkout_commit(package.parent)


def checkout_commit(folder: Path) -> str:
    """Return the commit of the git checkout whose top is the folder, or "" if it is not one.

    Folders inside of a checkout have no commit here: a virtual environment often lies in the
    checkout of another project.
    """
    if not (folder / ".git").exists():
        return ""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        done = subprocess.run(
            [*command, "--exclude=*"], capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _abbreviate(commit: str) -> str:
    name, dash, changed = commit.partition("-")
    return f"{name[:_ABBREVIATED]}{dash}{changed}"
