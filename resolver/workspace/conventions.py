"""How the repository writes: its pull request template, CODEOWNERS and the subjects of its commits.

Names and places as GitHub has them, whatever the case:
https://docs.github.com/communities/using-templates-to-encourage-useful-issues-and-pull-requests
https://docs.github.com/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners
"""

from collections.abc import Sequence
from pathlib import PurePosixPath

from resolver.conventions import Conventions
from resolver.errors import WorkspaceError
from resolver.workspace.git import HostGit
from resolver.workspace.workspace import Workspace

FOLDERS = (".github", "", "docs")
"""Where GitHub looks, in its order."""

MOST_TEMPLATE = 20_000
MOST_CODEOWNERS = 3_000_000
"""Bytes; GitHub does not read a larger CODEOWNERS."""

MOST_SUBJECTS = 60
LONGEST_SUBJECT = 300

_TEMPLATE = "pull_request_template"
_SUFFIXES = {"", ".md", ".txt"}


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


def template_path(paths: Sequence[str]) -> str:
    """The pull request template among the repository's files, "" for none.

    One that stands alone goes before a folder of several; of those the one named `default`, or the
    only one, is used: GitHub takes none of them by itself.
    """
    for folder in FOLDERS:
        alone = [p for p in _files_of(paths, folder) if _is_template(PurePosixPath(p))]
        if alone:
            return min(alone, key=lambda path: (not path.lower().endswith(".md"), path))
    for folder in FOLDERS:
        within = f"{folder}/{_TEMPLATE}" if folder else _TEMPLATE
        several = [p for p in _files_of(paths, within) if p.lower().endswith(".md")]
        usual = [p for p in several if PurePosixPath(p).stem.lower() in {"default", _TEMPLATE}]
        if usual or len(several) == 1:
            return min(usual or several)
    return ""


def codeowners_path(paths: Sequence[str]) -> str:
    """The CODEOWNERS file that GitHub uses, "" for none. Its name is written in capitals."""
    there = set(paths)
    places = [f"{folder}/CODEOWNERS" if folder else "CODEOWNERS" for folder in FOLDERS]
    return next((path for path in places if path in there), "")


def _files_of(paths: Sequence[str], folder: str) -> list[str]:
    """The files right in a folder, whatever the case of its name."""
    return [path for path in paths if path.rpartition("/")[0].lower() == folder]


def _is_template(path: PurePosixPath) -> bool:
    return path.stem.lower() == _TEMPLATE and path.suffix.lower() in _SUFFIXES


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
