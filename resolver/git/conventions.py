"""Reads the conventions of a repository: templates, CODEOWNERS and subjects of commits.

GitHub's names and places of these files, of templates without regard to case:
https://docs.github.com/communities/using-templates-to-encourage-useful-issues-and-pull-requests
https://docs.github.com/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners
"""

from collections.abc import Sequence

from resolver.errors import WorkspaceError
from resolver.git.git import HostGit
from resolver.git.workspace import Workspace
from resolver.models.repository import (
    FOLDERS,
    MAX_TEMPLATE_BYTES,
    Conventions,
    template_path,
)

MAX_CODEOWNERS_BYTES = 3_000_000
"""Maximum size of a CODEOWNERS file in bytes. GitHub ignores larger ones."""

MAX_SUBJECTS = 60
"""Maximum number of commit subjects that are read."""
MAX_SUBJECT_CHARACTERS = 300
"""Maximum number of characters of a subject."""


def read_conventions(workspace: Workspace) -> Conventions:
    """Return the conventions at the default branch. Unreadable files are treated as missing."""
    trusted = workspace.trusted
    paths = trusted.trusted_paths()
    template, owners = template_path(paths), codeowners_path(paths)
    return Conventions(
        template=_read_text(trusted, template, MAX_TEMPLATE_BYTES),
        codeowners=_read_text(trusted, owners, MAX_CODEOWNERS_BYTES),
        subjects=read_subjects(trusted.git, trusted.base),
    )


def codeowners_path(paths: Sequence[str]) -> str:
    """Return the path of the CODEOWNERS file that GitHub uses, "" if there is none.

    The name of the file must be in upper case.
    """
    existing = set(paths)
    candidates = [f"{folder}/CODEOWNERS" if folder else "CODEOWNERS" for folder in FOLDERS]
    return next((path for path in candidates if path in existing), "")


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
