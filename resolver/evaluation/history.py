"""Finds fixes of the past in a repository: commits that say that they close an issue (`Fixes #12`)
and that changed tests.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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

    base: the commit before it. text: its message as a description of the problem, title first,
    without trailers and references.
    """

    commit: str
    base: str
    issue: int
    text: str

    @property
    def name(self) -> str:
        """Name of the task."""
        return f"issue-{self.issue}-{self.commit[:10]}"


@dataclass(frozen=True)
class FixFiles:
    """The files of a fix.

    tests: contents of its new and changed test files by path; they become the hidden tests.
    changed: paths of all files that it changes.
    """

    tests: dict[str, bytes]
    changed: tuple[str, ...]

    @property
    def other(self) -> tuple[str, ...]:
        """Paths of the files that the agent has to change: all but the hidden tests."""
        return tuple(path for path in self.changed if path not in self.tests)


def closed_issues(message: str) -> tuple[int, ...]:
    """Return the numbers of the issues that a message says it closes."""
    return tuple(dict.fromkeys(int(number) for number in _CLOSES.findall(message)))


def find_past_fixes(git: HostGit, tip: str) -> Iterator[PastFix]:
    """Yield the fixes in the first-parent history of `tip` by its messages, the newest first.

    Commits without a commit before them are left out, as at the end of a shallow clone.
    """
    args = ("log", "--first-parent", "-z", "--format=%H%n%P%n%B", f"-{MAX_SEARCHED_COMMITS}", tip)
    for record in git.run(*args).decode("utf-8", "replace").split("\0"):
        commit, _, rest = record.lstrip("\n").partition("\n")
        parents, _, message = rest.partition("\n")
        if not parents:
            continue
        first, *merged = parents.split()
        issues = closed_issues(message)
        if not issues and merged:
            message = _merged_messages(git, first, commit)
            issues = closed_issues(message)
        if issues:
            yield PastFix(commit, first, issues[0], problem_text(message))


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
    """Return the files of a fix. Raises WorkspaceError."""
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


def with_tests(git: HostGit, fixes: Iterable[PastFix]) -> Iterator[tuple[PastFix, FixFiles]]:
    """Yield the fixes that changed tests, with their files."""
    for fix in fixes:
        if (files := read_fix_files(git, fix)).tests:
            yield fix, files
