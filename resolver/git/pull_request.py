"""Reads a pull request from the host's clone: its head, its merge base, its diff, code of threads.

Commits of a fork are fetched from the base repository, which has them in `refs/pull/<number>/head`:
https://docs.github.com/pull-requests/collaborating-with-pull-requests/reviewing-changes-in-pull-requests/checking-out-pull-requests-locally

The diff is rendered with line numbers and a length limit. The code that a review thread is about is
the end of its diff.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from resolver.errors import WorkspaceError
from resolver.git.clone import BASE_REF, check_branch, check_commit, new_clone
from resolver.git.clone_cache import CloneCache
from resolver.git.git import Credential, HostGit
from resolver.git.history import HISTORY_LEVELS, Remote, fetch_with_merge_base
from resolver.git.remote import check_url, list_refs
from resolver.git.tree import STATUSES, count_lines, quote
from resolver.models.pull_request import (
    DiffFile,
    DiffHunk,
    PullRequestCommit,
    PullRequestContext,
    ThreadRequest,
)

TRUSTED_REF = "refs/resolver/trusted"
TARGET_REF = "refs/resolver/target"

MAX_FILES = 500
"""Maximum number of files that are kept."""
MAX_HUNKS = 5_000
"""Maximum number of hunks of all files together. Beyond it, no file has lines to comment on."""

MAX_COMMITS = 100
"""Maximum number of commits that are kept."""
MAX_MESSAGE_CHARACTERS = 2_000
"""Maximum length of a commit message in characters."""

MAX_DIFF_BYTES = 20_000_000
"""Maximum length of the whole diff in bytes."""

_DIFF_OPTIONS = ("-r", "-M", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index")
_HUNK_HEADER = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_STATUSES: dict[str, str] = {**STATUSES, "C": "added", "R": "renamed"}


@dataclass(frozen=True)
class FilePatch:
    """One file of the diff.

    hunks: its part of the unified diff, from the first `@@` line on. It is empty for binary
    content, for renames without a change, and for files beyond the limit of the diff.
    """

    file: DiffFile
    hunks: bytes


def clone_pull_request(
    url: str,
    folder: Path,
    pull: PullRequestContext,
    credential: Credential | None,
    cache: CloneCache | None = None,
    depth: int = HISTORY_LEVELS,
    *,
    for_merge: bool = False,
) -> tuple[PullRequestContext, str]:
    """Fetch a pull request's head, its base branch and the default branch into the new `folder`.

    Returns the pull request with what git knows about it, and the commit of the default branch. The
    base is the tip of the base branch, unless `pull.base` names a commit. for_merge: the base is to
    be merged into the head. Raises WorkspaceError if one of them can't be fetched, or there is
    no merge base.
    """
    base_ref = check_branch(HostGit(), pull.base_branch)
    listing = list_refs(check_url(url), [base_ref], credential)
    default = listing.default
    if default is None:
        raise WorkspaceError(f"{url} has no default branch with a commit on it")
    base = pull.base or listing.refs.get(base_ref)
    if not base:
        raise WorkspaceError(f"{url} has no branch {pull.base_branch!r}", "check the base branch")
    check_commit(pull.head)
    check_commit(base)
    trusted = listing.refs[default]
    commits = {TRUSTED_REF: trusted, TARGET_REF: base, BASE_REF: pull.head}
    git = new_clone(folder)
    merge_base = fetch_with_merge_base(
        git, Remote(url, credential, cache), commits, base, pull.head, depth, for_merge=for_merge
    )
    if merge_base is None:
        raise WorkspaceError(
            f"pull request #{pull.number} has no history in common with {pull.base_branch}",
            "rebase it onto its base branch",
        )
    details = {
        "base": base,
        "merge_base": merge_base,
        "default_branch": default.removeprefix("refs/heads/"),
    }
    return _describe_pull_request(git, pull.model_copy(update=details)), trusted


def _describe_pull_request(git: HostGit, pull: PullRequestContext) -> PullRequestContext:
    patches = read_patches(git, pull)
    files = [patch.file for patch in patches[:MAX_FILES]]
    if sum(len(file.hunks) for file in files) > MAX_HUNKS:
        files = [file.model_copy(update={"hunks": ()}) for file in files]
    return pull.model_copy(
        update={
            "commits": tuple(_commits(git, pull)),
            "files": tuple(files),
            "files_left_out": max(0, len(patches) - MAX_FILES),
        }
    )


def _commits(git: HostGit, pull: PullRequestContext) -> Iterator[PullRequestCommit]:
    """Yield the newest commits of the pull request, oldest first."""
    output = git.run(
        "log", "-z", "--topo-order", "--reverse", f"--max-count={MAX_COMMITS}",
        "--encoding=UTF-8", "--no-show-signature", "--format=%H%n%an%n%B",
        f"{pull.merge_base}..{pull.head}", "--",
    )  # fmt: skip
    for record in output.decode("utf-8", "replace").split("\0"):
        id, _, rest = record.strip("\n").partition("\n")
        author, _, message = rest.partition("\n")
        if id:
            text = message.strip()[:MAX_MESSAGE_CHARACTERS]
            yield PullRequestCommit(id=id, author=author[:200], message=text)


def read_patches(git: HostGit, pull: PullRequestContext) -> list[FilePatch]:
    """Return the files of the diff from the merge base to the head, in git's order."""
    commits = (pull.merge_base, pull.head)
    records = git.run("diff-tree", "-z", "--raw", *_DIFF_OPTIONS, *commits).split(b"\0")[:-1]
    counts = count_lines(git, *_DIFF_OPTIONS, *commits)
    diff = git.attempt("diff-tree", "-p", "-U3", *_DIFF_OPTIONS, *commits, limit=MAX_DIFF_BYTES)
    if diff.status != 0 and not diff.truncated:
        raise WorkspaceError(f"the diff can't be shown: {diff.stderr.strip()[-500:]}")
    sections = _sections(diff.stdout, is_complete=not diff.truncated)
    fields = iter(records)
    return [_file_patch(meta, fields, counts, sections) for meta in fields]


def _file_patch(
    meta: bytes,
    fields: Iterator[bytes],
    counts: dict[bytes, tuple[int | None, int | None]],
    sections: Iterator[bytes],
) -> FilePatch:
    status = meta.rsplit(b" ", 1)[1][:1].decode()
    first_path = next(fields)
    old, path = (first_path, next(fields)) if status in "RC" else (None, first_path)
    # A type change (such as a file that became a symlink) has two sections in the diff: a deletion
    # and an addition.
    file_sections = list(islice(sections, 2 if status == "T" else 1))
    hunks = file_sections[0] if status != "T" and file_sections else b""
    added, deleted = counts.get(path, (None, None))
    file = DiffFile(
        path=quote(path),
        old_path=quote(old) if old is not None and status == "R" else None,
        status=_STATUSES.get(status, "modified"),
        additions=added,
        deletions=deleted,
        hunks=tuple(_parse_hunk(match) for match in hunk_heads(hunks)),
    )
    return FilePatch(file, hunks)


def _sections(diff: bytes, *, is_complete: bool) -> Iterator[bytes]:
    """Yield the hunks of each file in order.

    No line of a hunk can start with `diff --git`, because every line of a hunk starts with a space,
    `+`, `-` or a backslash. The last section of a truncated diff is left out.

    Format: https://git-scm.com/docs/diff-format
    """
    files = re.split(rb"^diff --git .*\n", diff, flags=re.M)[1:]
    for section in files if is_complete else files[:-1]:
        start = re.search(rb"^@@ ", section, re.M)
        yield section[start.start() :] if start else b""


def hunk_heads(hunks: bytes) -> Iterator["re.Match[str]"]:
    """Yield the matches of the `@@` lines.

    Within a hunk, every line starts with a space, `+`, `-` or a backslash, so none of them matches.
    """
    for line in hunks.split(b"\n"):
        match = _HUNK_HEADER.match(line.decode("latin-1"))
        if match:
            yield match


def _parse_hunk(match: "re.Match[str]") -> DiffHunk:
    old_start, old_lines, new_start, new_lines = (
        1 if number is None else int(number) for number in match.groups()
    )
    return DiffHunk(
        old_start=old_start, old_lines=old_lines, new_start=new_start, new_lines=new_lines
    )


MAX_FILE_CHARACTERS = 30_000
"""Maximum number of characters of one file's diff."""

MAX_DIFF_CHARACTERS = 120_000
"""Maximum number of characters of all diffs together. Further files are only named."""

MAX_DIFF_LINE_CHARACTERS = 1_000
"""Maximum number of characters of a line."""


def numbered_diff(patches: Sequence[FilePatch], show: Callable[[str], str] = str) -> str:
    """Return the diff, file by file, with a number before each line.

    An added or unchanged line has its number in the new file, a deleted line the one in the old
    file. What exceeds a limit is replaced by a note. show: applied to the text of each line; the
    limits apply to its result.
    """
    parts = []
    remaining = MAX_DIFF_CHARACTERS
    for patch in patches:
        head = _file_header(patch.file)
        body = _file_body(patch, show)
        if len(body) > remaining:
            body = "[not shown, for length]"
        remaining -= len(body)
        parts.append(f"{head}\n{body}")
        if remaining < 0 or len(parts) >= 300:
            break
    if len(parts) < len(patches):
        parts.append(f"[{len(patches) - len(parts)} more files are not shown]")
    return "\n\n".join(parts)


def _file_header(file: DiffFile) -> str:
    old_path_note = f" (was {file.old_path})" if file.old_path else ""
    line_counts = "" if file.additions is None else f", +{file.additions} -{file.deletions}"
    return f"=== {file.path}{old_path_note}: {file.status.replace('_', ' ')}{line_counts}"


def _file_body(patch: FilePatch, show: Callable[[str], str]) -> str:
    if not patch.hunks:
        return "[binary content]" if patch.file.additions is None else "[no lines to show]"
    lines: list[str] = []
    raw = patch.hunks.rstrip(b"\n").split(b"\n")
    remaining = MAX_FILE_CHARACTERS
    for line in _number_lines(raw, show):
        remaining -= len(line) + 1
        if remaining < 0:
            omitted = len(raw) - len(lines)
            lines.append(f"[{omitted} more lines of this file's diff are not shown]")
            break
        lines.append(line)
    return "\n".join(lines)


def _number_lines(hunks: Iterable[bytes], show: Callable[[str], str]) -> Iterator[str]:
    """Yield the lines of the hunks with their numbers."""
    old = new = 0
    for raw in hunks:
        text = raw.decode("utf-8", "replace").removesuffix("\r")
        if len(text) > MAX_DIFF_LINE_CHARACTERS:
            omitted = len(text) - MAX_DIFF_LINE_CHARACTERS
            text = f"{text[:MAX_DIFF_LINE_CHARACTERS]}[{omitted} more characters]"
        text = show(text)
        sign, content = text[:1], text[1:]
        match sign:
            case "@":
                header = next(hunk_heads(raw))
                old, new = int(header[1]), int(header[3])
                yield text
            case "-":
                yield f"{old:>6} -{content}"
                old += 1
            case "+":
                yield f"{new:>6} +{content}"
                new += 1
            case "\\":
                yield f"       {text}"
            case _:
                yield f"{new:>6}  {content}"
                old, new = old + 1, new + 1


MAX_EXCERPT_LINES = 60
"""Maximum number of lines per thread. The last ones are kept, as comments refer to those."""

MAX_EXCERPT_LINE_CHARACTERS = 300
"""Maximum number of characters of a line."""


def with_code(
    request: ThreadRequest, pull: PullRequestContext, show: Callable[[str], str]
) -> ThreadRequest:
    """Return the review thread with the end of its diff, whose last line it was started on.

    pull: the pull request at the pinned head. If it was pushed to since, the line numbers from
    GitHub may be those of a later commit. show: applied to the text of each line.
    """
    thread = request.thread
    lines = thread.hunk.rstrip("\n").split("\n")[-MAX_EXCERPT_LINES:]
    clipped = (line.removesuffix("\r")[:MAX_EXCERPT_LINE_CHARACTERS] for line in lines)
    update = {
        "thread": thread.model_copy(update={"path": show(thread.path)}),
        "code": "\n".join(show(line) for line in clipped),
        "is_then": thread.is_outdated or bool(pull.moved) or thread.line is None,
    }
    return request.model_copy(update=update)
