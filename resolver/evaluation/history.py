"""Finds fixes of the past in a repository: commits that closed an issue and changed tests.

Two sources say which commits these are: the messages of the commits (`Fixes #12`), or the merged
pull requests that GitHub lists.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from resolver.evaluation.qualification import UnusableReason
from resolver.evaluation.repositories import has_commit
from resolver.git.git import HostGit
from resolver.git.tree import decode_path, read_blobs, read_changes, read_sizes
from resolver.models.test_files import is_test_file

MAX_SEARCHED_COMMITS = 20_000
"""Number of commits of the branch that are searched for fixes."""

MAX_MERGED_COMMITS = 100
"""Number of commits of a merge whose messages are read."""

MAX_TEST_BYTES = 20_000_000
"""Maximum size of the hidden tests of one task."""

_CLOSES = re.compile(
    r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\b:?\s+"
    r"(?:https?://[^\s/]+/[\w.-]+/[\w.-]+/issues/|(?:[\w.-]+/[\w.-]+)?#)(\d{1,9})\b",
    re.IGNORECASE,
)
"""Matches what closes an issue. Source:
https://docs.github.com/en/issues/tracking-your-work-with-issues/using-issues/linking-a-pull-request-to-an-issue
"""

_TRAILER = re.compile(r"^[A-Z][\w-]*(?:-by|-on|-Id): .*$|^Merge (?:pull request|branch) .*$", re.M)


@dataclass(frozen=True)
class PastFix:
    """A commit that closed an issue.

    base: the commit before it. issue: number of the issue, None if it is not known.
    text: the problem in words, title first. text_from: "issue" or "commit message".
    """

    commit: str
    base: str
    issue: int | None
    text: str
    text_from: str

    @property
    def id(self) -> str:
        """Name of the task."""
        start = f"issue-{self.issue}" if self.issue is not None else "fix"
        return f"{start}-{self.commit[:10]}"


@dataclass(frozen=True)
class FixFiles:
    """The files of a fix.

    tests: contents of its new and changed test files by path; they become the hidden tests.
    changed: paths of all files that it changes.
    """

    tests: dict[str, bytes]
    changed: tuple[str, ...]

    @property
    def reason(self) -> UnusableReason:
        """Why the fix can't be a task, judged by its files; "" if nothing speaks against it."""
        if not self.tests:
            return "no_tests"
        return "tests_only" if all(map(is_test_file, self.changed)) else ""


def closed_issues(message: str) -> tuple[int, ...]:
    """Return the numbers of the issues that a message says it closes."""
    return tuple(dict.fromkeys(int(number) for number in _CLOSES.findall(message)))


def find_past_fixes(git: HostGit, tip: str) -> Iterator[PastFix]:
    """Yield the fixes in the first-parent history of `tip` by its messages, the newest first."""
    args = ("log", "--first-parent", "-z", "--format=%H%n%P%n%B", f"-{MAX_SEARCHED_COMMITS}", tip)
    for record in git.run(*args).decode("utf-8", "replace").split("\0"):
        commit, _, rest = record.lstrip("\n").partition("\n")
        parents, _, message = rest.partition("\n")
        if not commit:
            continue
        first, *merged = parents.split() or [""]
        issues = closed_issues(message)
        if not issues and merged:
            message = _merged_messages(git, first, commit)
            issues = closed_issues(message)
        if issues:
            text = problem_text(message)
            yield PastFix(commit, first, issues[0], text, "commit message")


def _merged_messages(git: HostGit, base: str, merge: str) -> str:
    """Return the messages of the commits that a merge brought."""
    args = ("log", "--format=%B", f"-{MAX_MERGED_COMMITS}", merge, f"^{base}")
    return git.run(*args).decode("utf-8", "replace")


def problem_text(message: str) -> str:
    """Return a commit's message without trailers and references to issues."""
    text = _TRAILER.sub("", _CLOSES.sub("", message))
    lines = [re.sub(r"[\s(\[,;:-]+[)\]]?\s*$", "", line) for line in text.strip().splitlines()]
    title, *body = lines or [""]
    cleaned = re.sub(r"\n{3,}", "\n\n", "\n".join(body)).strip()
    if not title.strip():
        return ""
    return f"# {title.strip()}\n" + (f"\n{cleaned}\n" if cleaned else "")


def read_fix_files(git: HostGit, fix: PastFix) -> FixFiles:
    """Return the files of a fix. Raises WorkspaceError if its commits are missing."""
    changes = read_changes(git, fix.base, fix.commit)
    tests = {
        decode_path(c.path): c.new_id
        for c in changes
        if c.new_blob and is_test_file(decode_path(c.path))
    }
    sizes = read_sizes(git, set(tests.values()))
    if sum(sizes.values()) > MAX_TEST_BYTES:
        tests = {}
    contents = dict(read_blobs(git, set(tests.values())))
    return FixFiles(
        tests={path: contents[blob] for path, blob in tests.items() if path.isprintable()},
        changed=tuple(decode_path(c.path) for c in changes),
    )


def select_fixes(git: HostGit, fixes: Iterable[PastFix], last: int) -> Iterator[PastFix]:
    """Yield at most `last` of the fixes: those that changed tests, or can't be read to tell."""
    count = 0
    for fix in fixes:
        if count == last:
            return
        can_be_read = fix.base and has_commit(git, fix.base) and has_commit(git, fix.commit)
        if can_be_read and read_fix_files(git, fix).reason == "no_tests":
            continue
        count += 1
        yield fix
