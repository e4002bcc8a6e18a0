"""Builds the trees that tell what a change does from what it does to the tests.

- base: the base commit.
- head: the change.
- head_with_base_tests: the change with the test files and the test configuration of the base. It
  shows whether the code still passes the tests that there were, whatever the change does to them:
  deleted ones are back, and what the change adds to configure or replace a runner is not there.
- base_with_tests: the base with the test files and the test configuration of the change. It differs
  from the change in the code alone, so a test that fails here and passes there needs the code.

A tree that is the same as another one is left out: without altered tests of the base, the change
has them anyway. A test file that was moved is back at its old path, so that its tests have the
names that they have at the base. All of it is made of git objects in the host's clone, and nothing
is checked out.
"""

import doctest
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import SequenceMatcher
from pathlib import PurePosixPath

from resolver.git.git import HostGit
from resolver.git.push import Identity, write_commit
from resolver.git.tree import (
    ABSENT,
    TreeChange,
    TreeEntry,
    decode_path,
    read_blobs,
    read_changes,
    write_tree,
)
from resolver.git.workspace import Workspace
from resolver.models.test_files import is_test_file
from resolver.models.verification import ChangedExpectation, ReviewPoint, TreeName
from resolver.runtime.environment.plan import COPILOT, FILES, SCRIPTS
from resolver.verification.manifests import may_change_tests
from resolver.verification.project_files import (
    belongs_to_tests,
    is_project_manifest,
    is_test_configuration,
)

MAX_TEXT_BYTES = 1_000_000
"""Maximum number of bytes of a changed file that is read. A longer one is for a person to read."""

MAX_LINES = 2_000
"""Maximum number of lines of a test file whose altered parts are shown."""

MAX_EXPECTATIONS = 20
"""Maximum number of altered parts of test files that are shown."""

_AUTHOR = Identity("Resolver", "resolver@localhost")
_AT = datetime(2000, 1, 1, tzinfo=UTC)
"""Author and date of the commits that are only checked out. They are never published."""

_SETUP_FILES = frozenset({*SCRIPTS, *COPILOT, *FILES})

_INLINE_TESTS = {
    ".rs": "#[cfg(test)]",
    **dict.fromkeys((".js", ".mjs", ".ts", ".mts"), "import.meta.vitest"),
}
"""What begins the tests inside of a source file; by convention, they are at its end.

https://doc.rust-lang.org/book/ch11-03-test-organization.html,
https://vitest.dev/guide/in-source
"""


@dataclass(frozen=True)
class ChangeTrees:
    """The trees of a change, as ids of trees and of commits by name, and the paths that it touches.

    changed_tests: added and changed test files.
    altered_tests: test files of the base that the change alters, moves or deletes.
    """

    trees: Mapping[TreeName, str]
    commits: Mapping[TreeName, str]
    changed_files: tuple[str, ...]
    changed_tests: tuple[str, ...]
    altered_tests: tuple[str, ...]
    review: tuple[ReviewPoint, ...]


def build_trees(workspace: Workspace, head: str) -> ChangeTrees:
    """Write the trees and commits of a change to the host's clone.

    head: tree of the change.
    """
    git, base = workspace.git, workspace.base
    changes = {decode_path(c.path): c for c in read_changes(git, base, head)}
    known = names_in_root(git, base)
    tests = {p: c for p, c in changes.items() if belongs_to_tests(p, known)}
    altered = [
        path
        for path, c in tests.items()
        if c.old_mode != ABSENT or not is_test_file(path) or is_test_configuration(path)
    ]
    trees: dict[TreeName, str] = {"base": workspace.tree(base), "head": head}
    if altered:
        trees["head_with_base_tests"] = write_tree(git, head, map(_old_entry, tests.values()))
    if tests:
        trees["base_with_tests"] = write_tree(git, base, map(_new_entry, tests.values()))
    is_tests_only = trees.get("base_with_tests") == head
    commits: dict[TreeName, str] = {
        name: write_commit(git, base, tree, "Change", _AUTHOR, _AT, ())
        for name, tree in trees.items()
        if name != "base"
    }
    commits["base"] = base
    review = [ReviewPoint(kind="tests_only")] if is_tests_only else []
    review += _review_points(git, {p: c for p, c in changes.items() if p not in tests})
    return ChangeTrees(
        trees=trees,
        commits=commits,
        changed_files=tuple(changes),
        changed_tests=tuple(p for p, c in tests.items() if c.new_mode != ABSENT),
        altered_tests=tuple(altered),
        review=tuple(review),
    )


def names_in_root(git: HostGit, base: str) -> frozenset[str]:
    """Return the names of the files and folders in the root of a commit."""
    listing = git.run("ls-tree", "-z", "--name-only", base)
    return frozenset(decode_path(name) for name in listing.split(b"\0"))


def _old_entry(change: TreeChange) -> TreeEntry:
    return TreeEntry(change.path, change.old_mode, change.old_id)


def _new_entry(change: TreeChange) -> TreeEntry:
    return TreeEntry(change.path, change.new_mode, change.new_id)


def _review_points(git: HostGit, changes: Mapping[str, TreeChange]) -> Iterator[ReviewPoint]:
    """Yield the parts of a change outside of the tests that a person must look at."""
    contents = _read_contents(git, changes.values())
    for path, change in changes.items():
        if path in _SETUP_FILES:
            yield ReviewPoint(kind="setup", path=path)
        suffix = PurePosixPath(path).suffix
        is_manifest = is_project_manifest(path)
        if not is_manifest and suffix not in _INLINE_TESTS and suffix != ".py":
            continue
        old, new = (contents.get(blob or "") for blob in (change.old_blob, change.new_blob))
        is_read = all(b is None or b in contents for b in (change.old_blob, change.new_blob))
        if is_manifest and (not is_read or may_change_tests(path, old, new)):
            yield ReviewPoint(kind="manifest", path=path)
        if old is None or new is None:
            continue
        before, after = (text.decode("utf-8", "replace") for text in (old, new))
        mark = _INLINE_TESTS.get(suffix, "")
        if mark and before.partition(mark)[2] != after.partition(mark)[2]:
            yield ReviewPoint(kind="inline_tests", path=path)
        if _documented_tests(suffix, before) != _documented_tests(suffix, after):
            yield ReviewPoint(kind="doctests", path=path)


def _documented_tests(suffix: str, text: str) -> list[str]:
    """Return the tests in the documentation of a source file, as far as its language has them."""
    if suffix == ".rs":
        lines = (line.strip() for line in text.splitlines())
        return [line for line in lines if line.startswith(("///", "//!"))]
    if suffix != ".py":
        return []
    try:
        # The expected output of an example ends at an empty line, and at the docstring's end.
        ended = text.replace('"""', "\n\n").replace("'''", "\n\n")
        examples = doctest.DocTestParser().get_examples(ended)
    except ValueError:  # such an example can't be executed either
        return [text]
    return [f"{example.source}{example.want}" for example in examples]


def _read_contents(git: HostGit, changes: Iterable[TreeChange]) -> dict[str, bytes]:
    """Return the contents of changed files by id, without those that are too long."""
    blobs = {blob for c in changes for blob in (c.old_blob, c.new_blob) if blob}
    return dict(read_blobs(git, blobs, MAX_TEXT_BYTES))


def read_expectations(
    git: HostGit, base: str, head: str, paths: Sequence[str]
) -> tuple[ChangedExpectation, ...]:
    """Return what a change replaces in test files, part by part, the old text beside the new."""
    wanted = set(paths)
    changes = [c for c in read_changes(git, base, head) if decode_path(c.path) in wanted]
    contents = _read_contents(git, changes)
    found: list[ChangedExpectation] = []
    for change in changes:
        old, new = (
            contents.get(blob or "", b"").decode("utf-8", "replace").splitlines()
            for blob in (change.old_blob, change.new_blob)
        )
        if max(len(old), len(new)) > MAX_LINES:
            continue
        for tag, a, b, c, d in SequenceMatcher(None, old, new).get_opcodes():
            if tag in {"replace", "delete"}:
                before, after = "\n".join(old[a:b]), "\n".join(new[c:d])
                path = decode_path(change.path)
                found.append(ChangedExpectation(path=path, old=before, new=after))
    return tuple(found[:MAX_EXPECTATIONS])
