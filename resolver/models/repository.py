"""Models of a repository's conventions, the places of its templates, and its commits.

The conventions are the pull request template and the style of commit subjects.
They are read by `resolver.git.conventions`; preferences for pull requests come from the settings.
Names and places of files are GitHub's, in any case:
https://docs.github.com/communities/using-templates-to-encourage-useful-issues-and-pull-requests

GitHub signs the commits that it creates itself through the API. `resolver.git.objects` makes the
values of such a commit, `resolver.github.comments.signed_commits` sends them.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath

from pydantic import Field

from resolver.models.base import FrozenModel

FOLDERS = (".github", "", "docs")
"""Folders in which GitHub looks for these files, in its order."""

MAX_TEMPLATE_BYTES = 20_000
"""Maximum size of a pull request template in bytes."""

_TEMPLATE = "pull_request_template"
_TEMPLATE_SUFFIXES = {"", ".md", ".txt"}


class Conventions(FrozenModel):
    """A repository's conventions.

    They are read from the default branch, where only people with write access write.
    """

    template: str = Field(
        default="", description="The pull request template; empty when there is none."
    )
    subjects: tuple[str, ...] = Field(
        default=(), description="Subjects of the newest commits, newest first."
    )


def template_path(paths: Sequence[str]) -> str:
    """Return the path of the pull request template, or "" when there is none.

    A single template file takes precedence over a folder with several. Of several, the one named
    `default`, or the only one, is used; GitHub itself does not select any of them.
    """
    for folder in FOLDERS:
        single_files = [
            p for p in _files_in(paths, folder) if _has_name(PurePosixPath(p), _TEMPLATE)
        ]
        if single_files:
            return min(single_files, key=lambda path: (not path.lower().endswith(".md"), path))
    for folder in FOLDERS:
        template_folder = f"{folder}/{_TEMPLATE}" if folder else _TEMPLATE
        folder_files = [p for p in _files_in(paths, template_folder) if p.lower().endswith(".md")]
        preferred = [
            p for p in folder_files if PurePosixPath(p).stem.lower() in {"default", _TEMPLATE}
        ]
        if preferred or len(folder_files) == 1:
            return min(preferred or folder_files)
    return ""


def _files_in(paths: Sequence[str], folder: str) -> list[str]:
    """Return the files directly in a folder. The case of the folder's name is ignored."""
    return [path for path in paths if path.rpartition("/")[0].lower() == folder]


def _has_name(path: PurePosixPath, name: str) -> bool:
    """Return True if the file has this name, in any case, and a suffix of a text file."""
    return path.stem.lower() == name and path.suffix.lower() in _TEMPLATE_SUFFIXES


class NewEntry(FrozenModel):
    """A path in a commit that differs from the commit's first parent."""

    path: str
    mode: str = Field(
        description="Git's mode, six digits; for a deleted path, the mode that it had."
    )
    id: str | None = Field(
        default=None, description="Id of the git object at the path; None for a deleted path."
    )


class LocalCommit(FrozenModel):
    """A commit made on the host, from which GitHub creates an equal one."""

    id: str = Field(description="Id of the commit on the host; GitHub's has another.")
    message: str
    tree: str
    parents: tuple[str, ...] = Field(
        description="Ids of commits on the host, or of commits that GitHub already has."
    )
    base_tree: str = Field(description="Tree of the first parent.")
    entries: tuple[NewEntry, ...] = Field(
        description="What differs from the first parent; paths are UTF-8."
    )
    blobs: tuple[str, ...] = Field(
        description="Ids of the blobs that no parent contains, without duplicates."
    )


class PublishedCommit(FrozenModel):
    """A commit on a branch on GitHub."""

    id: str
    signed: bool = Field(
        default=False, description="True when GitHub marks its signature as verified."
    )
