"""How the repository writes: its templates of pull requests and issues, CODEOWNERS and the subjects
of its commits.

Names and places as GitHub has them, whatever the case:
https://docs.github.com/communities/using-templates-to-encourage-useful-issues-and-pull-requests
https://docs.github.com/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners
"""

from collections.abc import Sequence

from resolver.errors import WorkspaceError
from resolver.git.git import HostGit
from resolver.git.workspace import Workspace
from resolver.models.conventions import (
    FOLDERS,
    Conventions,
    issue_template_paths,
    template_path,
)

MOST_TEMPLATE = 20_000
MOST_CODEOWNERS = 3_000_000
"""Bytes; GitHub does not read a larger CODEOWNERS."""

MOST_SUBJECTS = 60
LONGEST_SUBJECT = 300

MOST_ISSUE_TEMPLATE = 50_000
MOST_ISSUE_TEMPLATES = 30
"""Bytes of one, and how many are looked at."""


def read_conventions(workspace: Workspace) -> Conventions:
    """As they are at the default branch. What can't be read counts as not there."""
    trusted = workspace.trusted
    paths = trusted.trusted_paths()
    template, owners = template_path(paths), codeowners_path(paths)
    return Conventions(
        template=_text(trusted, template, MOST_TEMPLATE),
        codeowners=_text(trusted, owners, MOST_CODEOWNERS),
        subjects=read_subjects(trusted.git, trusted.base),
    )


def read_issue_templates(workspace: Workspace) -> dict[str, bytes]:
    """Content by path, as they are at the default branch. What can't be read is not there."""
    paths = issue_template_paths(workspace.trusted_paths())[:MOST_ISSUE_TEMPLATES]
    found: dict[str, bytes] = {}
    for path in paths:
        try:
            content = workspace.read_trusted(path, MOST_ISSUE_TEMPLATE)
        except WorkspaceError:
            continue
        if content is not None:
            found[path] = content
    return found


def codeowners_path(paths: Sequence[str]) -> str:
    """The CODEOWNERS file that GitHub uses, "" for none. Its name is written in capitals."""
    there = set(paths)
    places = [f"{folder}/CODEOWNERS" if folder else "CODEOWNERS" for folder in FOLDERS]
    return next((path for path in places if path in there), "")


def _text(workspace: Workspace, path: str, limit: int) -> str:
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
    """Subjects of the newest commits that the clone has of a branch, newest first; no merges."""
    args = ("log", "--no-merges", f"--max-count={MOST_SUBJECTS}", "-z", "--format=%s", commit)
    listed = git.run(*args).decode("utf-8", "replace").split("\0")
    return tuple(subject[:LONGEST_SUBJECT] for subject in listed if subject.strip())
