"""Sources of past fixes: a local repository, or a repository on GitHub with its issues."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from resolver.config.settings import Settings
from resolver.errors import ForgeError, UsageError
from resolver.evaluation.history import PastFix, find_past_fixes, select_fixes
from resolver.events.stream import utc_now
from resolver.git.workspace import Workspace
from resolver.github.context.merged_fixes import MergedFix, read_merged_fixes
from resolver.runs.common import command_line_trigger, github_forge
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
            f"{target} is no repository", "give OWNER/NAME, or the path of a git checkout"
        )
    tokens = host.tokens.source(settings, target)
    if tokens is None:
        raise UsageError("there is no GitHub token", "set GITHUB_TOKEN")
    url = f"{settings.github_server_url.rstrip('/')}/{target}.git"
    clone = Workspace.clone(url, folder, credential=host.tokens.credential(settings, target))
    merged = read_merged_fixes(access_of(settings, tokens), target)
    fixes = (_merged_fix(clone, each, target, settings, host) for each in merged)
    return FixSource(clone, target, select_fixes(clone.git, fixes, last))


def _merged_fix(
    clone: Workspace, merged: MergedFix, repository: str, settings: Settings, host: RunHost
) -> PastFix:
    """Return the fix of a merged pull request, with its issue as it was when it was opened."""
    parent = clone.git.attempt("rev-parse", "--verify", "--quiet", f"{merged.merge_commit}^1")
    base = parent.stdout.decode().strip() if parent.status == 0 else ""
    return PastFix(
        commit=merged.merge_commit,
        base=base,
        issue=merged.issue,
        text=_issue_text(merged, repository, settings, host) if base else "",
        text_from="issue",
    )


def _issue_text(merged: MergedFix, repository: str, settings: Settings, host: RunHost) -> str:
    """Return the text of an issue as it was before the pull request; "" if that is not known.

    What was edited or commented later may contain the answer. The reader of issues leaves it out,
    as it does for a request that somebody made at that time.
    """
    trigger = command_line_trigger(repository, merged.issue, utc_now())
    trigger = trigger.model_copy(update={"at": merged.created_at})
    try:
        task = github_forge(settings, repository, host).read(trigger)
    except ForgeError:
        return ""
    return f"# {task.title}\n\n{task.body}".strip() + "\n"
