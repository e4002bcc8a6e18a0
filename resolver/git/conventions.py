"""Reads the conventions of a repository: its pull request template and subjects of commits.

GitHub's names and places of these files, of templates without regard to case:
https://docs.github.com/communities/using-templates-to-encourage-useful-issues-and-pull-requests
"""

from resolver.errors import WorkspaceError
from resolver.git.git import HostGit
from resolver.git.workspace import Workspace
from resolver.models.repository import (
    MAX_TEMPLATE_BYTES,
    Conventions,
    template_path,
)

MAX_SUBJECTS = 60
"""Maximum number of commit subjects that are read."""
MAX_SUBJECT_CHARACTERS = 300
"""Maximum number of characters of a subject."""


def read_conventions(workspace: Workspace) -> Conventions:
    """Return the conventions at the default branch. Unreadable files are treated as missing."""
    trusted = workspace.trusted
    paths = trusted.trusted_paths()
    return Conventions(
        template=_read_text(trusted, template_path(paths), MAX_TEMPLATE_BYTES),
        subjects=read_subjects(trusted.git, trusted.base),
    )


def _read_text(workspace: Workspace, path: str, limit: int) -> str:
    """Return the text of a file, "" if it is missing, too large or not text."""
    if not path:
        return ""
    try:
        content = workspace.read(path, limit=limit)
    except WorkspaceError:
        return ""
    try:
        text = (content or b"").decode("utf-8-sig")
    except UnicodeDecodeError:
        return ""
    return "" if "\0" in text else text


def read_subjects(git: HostGit, commit: str) -> tuple[str, ...]:
    """Return the subjects of the newest commits, newest first, without those of merge commits."""
    args = ("log", "--no-merges", f"--max-count={MAX_SUBJECTS}", "-z", "--format=%s", commit)
    subjects = git.run(*args).decode("utf-8", "replace").split("\0")
    return tuple(subject[:MAX_SUBJECT_CHARACTERS] for subject in subjects if subject.strip())
