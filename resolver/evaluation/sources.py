"""Sources of past fixes: a local repository, or a repository on GitHub with its issues."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from resolver.config.settings import Settings
from resolver.errors import ForgeError, UsageError
from resolver.evaluation.history import PastFix, find_past_fixes, select_fixes
from resolver.git.workspace import Workspace
from resolver.github.client.access import GitHubAccess
from resolver.github.context.merged_fixes import MergedFix, read_merged_fixes
from resolver.github.context.past_issue import read_past_issue
from resolver.runs.wiring.sandbox import RunHost, access_of

_FULL_NAME = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class FixSource:
    """A clone with the whole history, the name of its repository, and its newest fixes."""

    repository: Workspace
    name: str
    fixes: Iterator[PastFix]


def open_fix_source(
    target: str, last: int, settings: Settings, host: RunHost, folder: Path
) -> FixSource:
    """Clone OWNER/NAME or the repository at a path, and find its fixes, at most `last`.

    folder: new folder of the clone. Raises UsageError, WorkspaceError or ForgeError.
    """
    path = Path(target)
    if path.is_dir():
        clone = Workspace.clone(str(path.resolve()), folder)
        fixes = find_past_fixes(clone.git, clone.base)
        return FixSource(clone, path.resolve().name, select_fixes(clone.git, fixes, last))
    if not _FULL_NAME.fullmatch(target):
        raise UsageError(
            f"{target} is not a repository", "give OWNER/NAME, or the path of a git checkout"
        )
    tokens = host.tokens.source(settings, target)
    if tokens is None:
        raise UsageError("there is no GitHub token", "set GITHUB_TOKEN")
    url = settings.clone_url(target)
    clone = Workspace.clone(url, folder, credential=host.tokens.credential(settings, target))
    access = access_of(settings, tokens)
    fixes = (
        _merged_fix(clone, merged, _issue_text(access, target, merged))
        for merged in read_merged_fixes(access, target)
    )
    return FixSource(clone, target, select_fixes(clone.git, fixes, last))


def _merged_fix(clone: Workspace, merged: MergedFix, text: str) -> PastFix:
    """Return the fix of a merged pull request. text: that of the issue before it."""
    parent = clone.git.attempt("rev-parse", "--verify", "--quiet", f"{merged.merge_commit}^1")
    return PastFix(
        commit=merged.merge_commit,
        base=parent.stdout.decode().strip() if parent.status == 0 else "",
        issue=merged.issue,
        text=text,
        text_from="issue",
    )


def _issue_text(access: GitHubAccess, repository: str, merged: MergedFix) -> str:
    """Return the text of an issue as it was when the pull request was opened; "" if not known.

    What was edited or commented later may contain the answer.
    """
    try:
        issue = read_past_issue(access, repository, merged.issue, merged.created_at)
    except ForgeError:
        return ""
    return f"# {issue.title}\n\n{issue.body}".strip() + "\n" if issue is not None else ""
