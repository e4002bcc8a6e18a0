"""Finds the suite that comes with Resolver, under the name `bundled`."""

from pathlib import Path

BUNDLED = "bundled"
"""The name of the suite on the command line."""


def bundled_suite() -> Path:
    """Return the path of suite/: in the installed package, or at the top of a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "suite"
    return installed if installed.is_dir() else package.parent / "suite"


def find_suite(path: Path) -> Path:
    """Return the folder of a suite: a folder of this name, or the suite of Resolver."""
    return bundled_suite() if str(path) == BUNDLED and not path.exists() else path
