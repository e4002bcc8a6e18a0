"""How a repository writes: its pull request template, the owners of its files, the subjects of its
commits; what its people wish of a pull request beside its words; and where templates lie.

Made in `resolver.git.conventions` and from the settings, read by `resolver.github`. Names and
places as GitHub has them, whatever the case:
https://docs.github.com/communities/using-templates-to-encourage-useful-issues-and-pull-requests
"""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Literal

from pydantic import Field

from resolver.models.base import FrozenModel

Reviewer = Literal["requester", "codeowners"]

FOLDERS = (".github", "", "docs")
"""Where GitHub looks, in its order."""

_TEMPLATE = "pull_request_template"
_ISSUE_TEMPLATE = "issue_template"
_SUFFIXES = {"", ".md", ".txt"}
_FORM_SUFFIXES = {".md", ".yml", ".yaml"}


class Conventions(FrozenModel):
    """Read at the default branch, where only people with write access have written."""

    template: str = Field(default="", description="Of pull requests; empty where there is none.")
    codeowners: str = Field(default="", description="The file CODEOWNERS, as it is.")
    subjects: tuple[str, ...] = Field(
        default=(), description="Subjects of the newest commits, newest first."
    )


class PullRequestPreferences(FrozenModel):
    """Who is asked to look at a pull request, and how it is marked."""

    reviewers: tuple[Reviewer, ...] = ()
    labels: tuple[str, ...] = ()
    assign_requester: bool = False


def template_path(paths: Sequence[str]) -> str:
    """The pull request template among the repository's files, "" for none.

    One that stands alone goes before a folder of several; of those the one named `default`, or the
    only one, is used: GitHub takes none of them by itself.
    """
    for folder in FOLDERS:
        alone = [p for p in _files_of(paths, folder) if _is_named(PurePosixPath(p), _TEMPLATE)]
        if alone:
            return min(alone, key=lambda path: (not path.lower().endswith(".md"), path))
    for folder in FOLDERS:
        within = f"{folder}/{_TEMPLATE}" if folder else _TEMPLATE
        several = [p for p in _files_of(paths, within) if p.lower().endswith(".md")]
        usual = [p for p in several if PurePosixPath(p).stem.lower() in {"default", _TEMPLATE}]
        if usual or len(several) == 1:
            return min(usual or several)
    return ""


def issue_template_paths(paths: Sequence[str]) -> list[str]:
    """The issue templates and forms among the repository's files: those in the folders for them,
    and the older ones that stand alone."""
    found: list[str] = []
    for folder in FOLDERS:
        within = f"{folder}/{_ISSUE_TEMPLATE}" if folder else _ISSUE_TEMPLATE
        several = (PurePosixPath(p) for p in _files_of(paths, within))
        found += sorted(
            str(path)
            for path in several
            if path.suffix.lower() in _FORM_SUFFIXES and path.stem.lower() != "config"
        )
        alone = (PurePosixPath(p) for p in _files_of(paths, folder))
        found += sorted(str(path) for path in alone if _is_named(path, _ISSUE_TEMPLATE))
    return found


def _files_of(paths: Sequence[str], folder: str) -> list[str]:
    """The files right in a folder, whatever the case of its name."""
    return [path for path in paths if path.rpartition("/")[0].lower() == folder]


def _is_named(path: PurePosixPath, name: str) -> bool:
    return path.stem.lower() == name and path.suffix.lower() in _SUFFIXES
