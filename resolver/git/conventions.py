"""Reads the conventions of a repository: templates, CODEOWNERS and subjects of commits.

GitHub's names and places of these files, of templates without regard to case:
https://docs.github.com/communities/using-templates-to-encourage-useful-issues-and-pull-requests
https://docs.github.com/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners
"""

from collections.abc import Sequence

from resolver.errors import WorkspaceError
from resolver.git.git import HostGit
from resolver.git.workspace import Workspace
from resolver.models.repository import FOLDERS, Conventions, issue_template_paths, template_path

MOST_TEMPLATE = 20_000
"""Maximum size of a pull request template in bytes."""
MOST_CODEOWNERS = 3_000_000
"""Maximum size of a CODEOWNERS file in bytes. GitHub ignores larger ones."""

MOST_SUBJECTS = 60
"""Maximum number of commit subjects that are read."""
LONGEST_SUBJECT = 300
"""Maximum number of characters of a subject."""

MOST_ISSUE_TEMPLATE = 50_000
"""Maximum size of an issue template in bytes."""
MOST_ISSUE_TEMPLATES = 30
"""Maximum number of issue templates that are read."""


def read_conventions(workspace: Workspace) -> Conventions:
    """Return the conventions at the default branch. Unreadable files are treated as missing."""
    trusted = workspace.trusted
    paths = trusted.trusted_paths()
    template, owners = template_path(paths), codeowners_path(paths)
    return Conventions(
        template=_text(trusted, template, MOST_TEMPLATE),
        codeowners=_text(trusted, owners, MOST_CODEOWNERS),
        subjects=read_subjects(trusted.git, trusted.base),
    )


def read_issue_templates(workspace: Workspace) -> dict[str, bytes]:
    """Return the content of the issue templates at the default branch, by path.

    Unreadable files are left out.
    """
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
    """Return the path of the CODEOWNERS file that GitHub uses, "" if there is none.

    The name of the file must be in upper case.
    """
    there = set(paths)
    places = [f"{folder}/CODEOWNERS" if folder else "CODEOWNERS" for folder in FOLDERS]
    return next((path for path in places if path in there), "")


def _text(workspace: Workspace, path: str, limit: int) -> str:
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
    args = ("log", "--no-merges", f"--max-count={MOST_SUBJECTS}", "-z", "--format=%s", commit)
    listed = git.run(*args).decode("utf-8", "replace").split("\0")
    return tuple(subject[:LONGEST_SUBJECT] for subject in listed if subject.strip())
