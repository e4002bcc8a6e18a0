"""Reads a pull request from the host's clone: its head, its merge base, its diff, code of threads.

Commits of a fork are fetched through the refs `refs/pull/<number>/head` of the base repository:
https://docs.github.com/pull-requests/collaborating-with-pull-requests/reviewing-changes-in-pull-requests/checking-out-pull-requests-locally

The diff is rendered with line numbers and a length limit. The code that a review thread is about is
taken from the pinned head if the lines still exist there, else from the diff as it was when the
thread was started.
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
from resolver.git.history import Remote, Tip, fetch_pull_request
from resolver.git.remote import check_url, list_refs
from resolver.git.tree import quote
from resolver.models.pull_request import (
    AskedThread,
    DiffFile,
    DiffHunk,
    PullRequestCommit,
    PullRequestContext,
    ReviewThread,
)

TRUSTED_REF = "refs/resolver/trusted"
TARGET_REF = "refs/resolver/target"

MOST_FILES = 500
"""Maximum number of files that are kept."""
MOST_HUNKS = 5_000
"""Maximum number of hunks of all files together. Beyond it, files have no lines to comment on."""

MOST_COMMITS = 100
"""Maximum number of commits that are kept."""
MOST_MESSAGE = 2_000
"""Maximum length of a commit message in characters."""

MOST_DIFF = 20_000_000
"""Maximum length of the whole diff in bytes."""

_DIFF = ("-r", "-M", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index")
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_STATUS = {
    "A": "added",
    "C": "added",
    "D": "deleted",
    "M": "modified",
    "R": "renamed",
    "T": "type_changed",
}


@dataclass(frozen=True)
class FilePatch:
    """One file of the diff.

    hunks: its part of the unified diff, from the first `@@` line on. It is empty for binary
    content, for renames without a change, and for files beyond the limit of the diff.
    """

    file: DiffFile
    hunks: bytes


def clone_pull(
    url: str,
    folder: Path,
    pull: PullRequestContext,
    depth: int,
    credential: Credential | None,
    cache: CloneCache | None = None,
) -> tuple[PullRequestContext, str]:
    """Fetch a pull request's head, its base branch and the default branch into the new `folder`.

    Returns the pull request with what git knows about it, and the commit of the default branch. The
    base is the tip of the base branch, unless `pull.base` names a commit. Raises WorkspaceError if
    one of them can't be fetched, or the pull request was pushed to or has no merge base.
    """
    check_url(url)
    target = check_branch(HostGit(), pull.base_branch)
    asked = f"refs/pull/{pull.number}/head"
    listing = list_refs(url, [target, asked], credential)
    refs, default = listing.refs, listing.default
    if default is None:
        raise WorkspaceError(f"{url} has no default branch with a commit on it")
    base = check_commit(pull.base or refs.get(target, "")) if pull.base or target in refs else ""
    if not base:
        raise WorkspaceError(f"{url} has no branch {pull.base_branch!r}", "check the base branch")
    # Use the ref if it still points to the commit: not every server serves commits by id.
    name = asked if refs.get(asked) == pull.head else check_commit(pull.head)
    head_tip = Tip(BASE_REF, pull.head, name, depth)
    # Only the files of the base are read, so its own commit is enough.
    base_tip = Tip(TARGET_REF, base, base, min(depth, 1))
    default_tip = Tip(TRUSTED_REF, refs[default], default, depth)
    git = new_clone(folder, len(pull.head))
    remote = Remote(url, credential, listing.filters, cache)
    parted = fetch_pull_request(git, remote, head_tip, base_tip, [default_tip])
    if git.text("rev-parse", f"{BASE_REF}^{{commit}}") != pull.head:
        raise WorkspaceError(
            f"pull request #{pull.number} was pushed to in this very moment", "run it again"
        )
    if parted is None:
        raise WorkspaceError(
            f"pull request #{pull.number} has no history in common with {pull.base_branch}",
            "rebase it onto its base branch",
        )
    known = {
        "base": base,
        "merge_base": parted,
        "default_branch": default.removeprefix("refs/heads/"),
    }
    told = _described(git, pull.model_copy(update=known))
    return told, git.text("rev-parse", f"{TRUSTED_REF}^{{commit}}")


def _described(git: HostGit, pull: PullRequestContext) -> PullRequestContext:
    patches = read_patches(git, pull)
    files: list[DiffFile] = []
    room = MOST_HUNKS
    for patch in patches[:MOST_FILES]:
        room -= len(patch.file.hunks)
        files.append(patch.file if room >= 0 else patch.file.model_copy(update={"hunks": ()}))
    return pull.model_copy(
        update={
            "commits": tuple(_commits(git, pull)),
            "files": tuple(files),
            "files_left_out": max(0, len(patches) - MOST_FILES),
        }
    )


def _commits(git: HostGit, pull: PullRequestContext) -> Iterator[PullRequestCommit]:
    """Yield the newest commits of the pull request, oldest first."""
    out = git.run(
        "log", "-z", "--topo-order", "--reverse", f"--max-count={MOST_COMMITS}",
        "--encoding=UTF-8", "--no-show-signature", "--format=%H%n%an%n%B",
        f"{pull.merge_base}..{pull.head}", "--",
    )  # fmt: skip
    for record in out.decode("utf-8", "replace").split("\0"):
        id, _, rest = record.strip("\n").partition("\n")
        author, _, message = rest.partition("\n")
        if id:
            words = message.strip()[:MOST_MESSAGE]
            yield PullRequestCommit(id=id, author=author[:200], message=words)


def read_patches(git: HostGit, pull: PullRequestContext) -> list[FilePatch]:
    """Return the files of the diff from the merge base to the head, in git's order."""
    ends = (pull.merge_base, pull.head)
    raw = git.run("diff-tree", "-z", "--raw", *_DIFF, *ends).split(b"\0")[:-1]
    counts = _counts(git.run("diff-tree", "-z", "--numstat", *_DIFF, *ends))
    text = git.attempt("diff-tree", "-p", "-U3", *_DIFF, *ends, limit=MOST_DIFF)
    if text.status != 0 and not text.truncated:
        raise WorkspaceError(f"the diff can't be shown: {text.stderr.strip()[-500:]}")
    sections = _sections(text.stdout, whole=not text.truncated)
    fields = iter(raw)
    return [_file_patch(meta, fields, counts, sections) for meta in fields]


def _file_patch(
    meta: bytes,
    rest: Iterator[bytes],
    counts: dict[bytes, tuple[int | None, int | None]],
    sections: Iterator[bytes],
) -> FilePatch:
    letter = meta.rsplit(b" ", 1)[1][:1].decode()
    first = next(rest)
    old, path = (first, next(rest)) if letter in "RC" else (None, first)
    # A type change (such as a file that became a symlink) has two sections in the diff: a deletion
    # and an addition.
    parts = list(islice(sections, 2 if letter == "T" else 1))
    hunks = parts[0] if letter != "T" and parts else b""
    added, deleted = counts.get(path, (None, None))
    file = DiffFile(
        path=quote(path),
        old_path=quote(old) if old is not None and letter == "R" else None,
        status=_STATUS.get(letter, "modified"),
        additions=added,
        deletions=deleted,
        hunks=tuple(_hunk(found) for found in hunk_heads(hunks)),
    )
    return FilePatch(file, hunks)


def _counts(out: bytes) -> dict[bytes, tuple[int | None, int | None]]:
    counts: dict[bytes, tuple[int | None, int | None]] = {}
    fields = iter(out.split(b"\0")[:-1])
    for record in fields:
        added, deleted, path = record.split(b"\t", 2)
        if not path:  # a rename: the old and the new name follow as fields of their own
            next(fields)
            path = next(fields)
        counts[path] = (None, None) if added == b"-" else (int(added), int(deleted))
    return counts


def _sections(diff: bytes, *, whole: bool) -> Iterator[bytes]:
    """Yield the hunks of each file in order.

    No line of a hunk can start with `diff --git`, because every line of a hunk starts with a space,
    `+`, `-` or a backslash. The last section of a truncated diff is left out.

    Format: https://git-scm.com/docs/diff-format
    """
    files = re.split(rb"^diff --git .*\n", diff, flags=re.M)[1:]
    for section in files if whole else files[:-1]:
        start = re.search(rb"^@@ ", section, re.M)
        yield section[start.start() :] if start else b""


def hunk_heads(hunks: bytes) -> Iterator["re.Match[bytes]"]:
    """Yield the matches of the `@@` lines.

    Within a hunk, every line starts with a space, `+`, `-` or a backslash, so none of them matches.
    """
    for line in hunks.split(b"\n"):
        found = _HUNK.match(line)
        if found:
            yield found


def _hunk(found: "re.Match[bytes]") -> DiffHunk:
    old_start, old_lines, new_start, new_lines = (
        1 if number is None else int(number) for number in found.groups()
    )
    return DiffHunk(
        old_start=old_start, old_lines=old_lines, new_start=new_start, new_lines=new_lines
    )


MOST_OF_FILE = 30_000
"""Maximum number of characters of one file's diff."""

MOST = 120_000
"""Maximum number of characters of all diffs together. Further files are only named."""

LONGEST_DIFF_LINE = 1_000
"""Maximum number of characters of a line."""


def numbered_diff(patches: Sequence[FilePatch], show: Callable[[str], str] = str) -> str:
    """Return the diff, file by file, with a number before each line.

    An added or unchanged line has its number in the new file, a deleted line the one in the old
    file. What exceeds a limit is replaced by a note. show: applied to the text of each line; the
    limits apply to its result.
    """
    parts = []
    room = MOST
    for patch in patches:
        head = _head(patch.file)
        body = _body(patch, show)
        if len(body) > room:
            body = "[not shown, for length]"
        room -= len(body)
        parts.append(f"{head}\n{body}")
        if room < 0 or len(parts) >= 300:
            break
    if len(parts) < len(patches):
        parts.append(f"[{len(patches) - len(parts)} more files are not shown]")
    return "\n\n".join(parts)


def _head(file: DiffFile) -> str:
    moved = f" (was {file.old_path})" if file.old_path else ""
    count = "" if file.additions is None else f", +{file.additions} -{file.deletions}"
    return f"=== {file.path}{moved}: {file.status.replace('_', ' ')}{count}"


def _body(patch: FilePatch, show: Callable[[str], str]) -> str:
    if not patch.hunks:
        return "[binary content]" if patch.file.additions is None else "[no lines to show]"
    lines: list[str] = []
    raw = patch.hunks.rstrip(b"\n").split(b"\n")
    room = MOST_OF_FILE
    for line in _numbered(raw, show):
        room -= len(line) + 1
        if room < 0:
            left = len(raw) - len(lines)
            lines.append(f"[{left} more lines of this file's diff are not shown]")
            break
        lines.append(line)
    return "\n".join(lines)


def _numbered(hunks: Iterable[bytes], show: Callable[[str], str]) -> Iterator[str]:
    """Yield the lines of the hunks with their numbers."""
    old = new = 0
    for raw in hunks:
        text = raw.decode("utf-8", "replace").removesuffix("\r")
        if len(text) > LONGEST_DIFF_LINE:
            text = f"{text[:LONGEST_DIFF_LINE]}[{len(text) - LONGEST_DIFF_LINE} more characters]"
        text = show(text)
        sign, rest = text[:1], text[1:]
        match sign:
            case "@":
                found = next(hunk_heads(raw))
                old, new = int(found[1]), int(found[3])
                yield text
            case "-":
                yield f"{old:>6} -{rest}"
                old += 1
            case "+":
                yield f"{new:>6} +{rest}"
                new += 1
            case "\\":
                yield f"       {text}"
            case _:
                yield f"{new:>6}  {rest}"
                old, new = old + 1, new + 1


AROUND = 5
"""Number of lines shown before and after."""

MOST_LINES = 60
"""Maximum number of lines per thread. The last ones are kept, as comments refer to those."""

LONGEST_EXCERPT_LINE = 300
"""Maximum number of characters of a line."""

_HEAD = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")

Read = Callable[[str], bytes | None]
"""Returns the content of a file at the pinned head. Raises WorkspaceError if it is too large."""

Show = Callable[[str], str]
"""Applied to the text of each line that is shown."""


def with_code(asked: AskedThread, pull: PullRequestContext, read: Read, show: Show) -> AskedThread:
    """Return the review thread with the lines that it is about.

    pull: the pull request at the pinned head. If it was pushed to since, the line numbers from
    GitHub may be those of a later commit, so the diff of the thread is used.
    """
    thread = asked.thread
    last = thread.line
    now = None
    if thread.side == "RIGHT" and not (thread.is_outdated or pull.moved) and last is not None:
        now = _at_head(thread.path, thread.start_line or last, last, read, show)
    code = _then(thread, show) if now is None else now
    named = thread.model_copy(update={"path": show(thread.path)})
    return asked.model_copy(update={"thread": named, "code": code, "is_then": now is None})


def _at_head(path: str, first: int, last: int, read: Read, show: Show) -> str | None:
    """Return the lines at the pinned head with some context, None if they don't exist there."""
    try:
        content = read(path)
    except WorkspaceError:
        return None
    if content is None or b"\0" in content:
        return None
    lines = content.decode("utf-8", "replace").split("\n")
    if last > len(lines):
        return None
    start = max(1, first - AROUND, last - MOST_LINES)
    end = min(len(lines), last + AROUND)
    shown = ((n, lines[n - 1], first <= n <= last) for n in range(start, end + 1))
    return "\n".join(_line(n, text, " ", marked, show) for n, text, marked in shown)


def _then(thread: ReviewThread, show: Show) -> str:
    """Return the end of the diff, up to the line that the thread was started on."""
    if not thread.hunk.strip():
        return ""
    shown: list[str] = []
    for number, sign, text in _numbered_lines(thread):
        marked = number is not None and number == thread.original_line
        shown.append(_line(number, text, sign, marked, show))
        if marked:
            break
    return "\n".join(shown[-MOST_LINES:])


def _numbered_lines(thread: ReviewThread) -> Iterator[tuple[int | None, str, str]]:
    """Yield the number, sign and text of each line.

    The number is that of the file version that the thread is about, None for a line of the other
    version.
    """
    lines = thread.hunk.split("\n")
    other = "+" if thread.side == "LEFT" else "-"
    heads = [n for n, line in enumerate(lines) if _HEAD.match(line)]
    if heads:
        yield from _after_heads(lines[heads[0] :], other)
        return
    # GitHub has cut off the beginning of the diff, its `@@` line included. Its last line is the one
    # that the thread is about, so the lines are numbered backwards from there.
    number = (thread.original_line or 0) - sum(line[:1] != other for line in lines) + 1
    for line in lines:
        is_other = line[:1] == other
        yield None if is_other else number, line[:1] or " ", line[1:]
        number += not is_other


def _after_heads(lines: Sequence[str], other: str) -> Iterator[tuple[int | None, str, str]]:
    number = 0
    for line in lines:
        found = _HEAD.match(line)
        if found is not None:
            number = int(found[1] if other == "+" else found[2])
        elif line[:1] in {" ", "+", "-"}:
            is_other = line[:1] == other
            yield None if is_other else number, line[:1], line[1:]
            number += not is_other


def _line(number: int | None, text: str, sign: str, marked: bool, show: Show) -> str:
    cut = show(text.removesuffix("\r")[:LONGEST_EXCERPT_LINE])
    return f"{'>' if marked else ' '}{'' if number is None else number:>6} {sign}{cut}"
