"""Tests of a pull request in the host's clone: head, merge base and diff."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.errors import WorkspaceError
from resolver.git.pull_request import (
    MAX_DIFF_CHARACTERS,
    FilePatch,
    numbered_diff,
)
from resolver.git.workspace import Workspace
from resolver.models.pull_request import DiffFile, DiffHunk, PullRequestContext
from tests.parts.github import GitHubServer

NAME = "octo/demo"
LINES = "".join(f"{n}\n" for n in range(1, 41))

Clone = Callable[..., Workspace]


@pytest.fixture
def clone(github: GitHubServer, tmp_path: Path) -> Clone:
    github.create_repository(NAME, {"a.txt": LINES, "gone.txt": "x\n", "old.txt": LINES + "o\n"})

    def cloned(branch: str = "work", depth: int = 0, base_branch: str = "main", **known: str):
        repository = github.repository(NAME)
        issue = github.create_pull(NAME, branch, base=base_branch)
        head = known.pop("head", "") or repository.git.tip(branch)
        assert head is not None
        pull = PullRequestContext(number=issue.number, head=head, base_branch=base_branch, **known)
        url = f"{github.server_url}/{NAME}.git"
        folder = tmp_path / f"clone-{issue.number}.git"
        return Workspace.clone_pull_request(url, folder, pull, depth=depth)

    return cloned


def known(workspace: Workspace) -> PullRequestContext:
    assert workspace.pull is not None
    return workspace.pull


def test_the_base_is_the_head_and_the_diff_starts_at_the_merge_base(
    github: GitHubServer, clone: Clone
) -> None:
    start = github.repository(NAME).git.tip("main")
    head = github.commit(NAME, "work", {"a.txt": LINES.replace("20\n", "twenty\n")}, "Say it\n\nx")
    tip = github.commit(NAME, "main", {"b.txt": "later\n"})
    workspace = clone()
    pull = known(workspace)
    assert (workspace.base, pull.base, pull.merge_base) == (head, tip, start)
    assert pull.default_branch == "main"
    [file] = pull.files
    assert (file.path, file.status, file.additions, file.deletions) == ("a.txt", "modified", 1, 1)
    assert file.hunks == (DiffHunk(old_start=17, old_lines=7, new_start=17, new_lines=7),)
    assert [(c.id, c.message) for c in pull.commits] == [(head, "Say it\n\nx")]
    diff = workspace.pull_diff()
    assert "    20 -20\n    20 +twenty\n    21  21" in diff
    assert "b.txt" not in diff


def test_trusted_files_are_those_of_the_default_branch(github: GitHubServer, clone: Clone) -> None:
    github.commit(NAME, "release", {"AGENTS.md": "of the release\n"})
    github.commit(NAME, "main", {"AGENTS.md": "of main\n"})
    github.commit(NAME, "work", {"AGENTS.md": "evil\n", "evil.md": "x\n"})
    workspace = clone(base_branch="release")
    assert workspace.read_trusted("AGENTS.md") == b"of main\n"
    assert workspace.read("AGENTS.md") == b"evil\n"
    assert workspace.read_trusted("evil.md") is None
    assert "evil.md" not in workspace.trusted_paths()
    assert workspace.trusted.read("AGENTS.md") == b"of main\n"
    assert workspace.trusted.pull is None


def test_every_kind_of_change_is_described(github: GitHubServer, clone: Clone) -> None:
    files = {
        "gone.txt": None,
        "old.txt": None,
        "new.txt": LINES + "o\nmore\n",
        "a.txt": ("120000", b"gone.txt"),
        "image.bin": b"\x00\x01\x02" * 50,
        "no-end.txt": "no newline",
        "run.sh": ("100755", b"echo\n"),
        'odd \n"name".py': "x = 1\n",
        "diff --git a b": "diff --git a/x b/x\n@@ -1 +1 @@\n",
    }
    github.commit(NAME, "work", files)
    workspace = clone()
    found = {file.path: file for file in known(workspace).files}
    assert {path: file.status for path, file in found.items()} == {
        "gone.txt": "deleted",
        "new.txt": "renamed",
        "a.txt": "type_changed",
        "image.bin": "added",
        "no-end.txt": "added",
        "run.sh": "added",
        ascii('odd \n"name".py'): "added",
        "diff --git a b": "added",
    }
    assert found["new.txt"].old_path == "old.txt"
    assert found["image.bin"].additions is None
    assert found["image.bin"].hunks == found["a.txt"].hunks == ()
    assert found["no-end.txt"].hunks == (
        DiffHunk(old_start=0, old_lines=0, new_start=1, new_lines=1),
    )
    assert found["new.txt"].hunks[0].new_start == 39
    diff = workspace.pull_diff()
    for words in (
        "=== new.txt (was old.txt): renamed, +1 -0",
        "[binary content]",
        "     1 +no newline\n       \\ No newline at end of file",
        "     1 -x",
        "     1 +diff --git a/x b/x\n     2 +@@ -1 +1 @@",
    ):
        assert words in diff, words


def test_a_head_that_was_replaced_by_force_is_still_cloned(
    github: GitHubServer, clone: Clone
) -> None:
    head = github.commit(NAME, "work", {"a.txt": "x\n"})
    start = github.repository(NAME).git.tip("main")
    assert start is not None
    github.force_push(NAME, "work", start)
    github.commit(NAME, "work", {"a.txt": "evil\n"})
    workspace = clone(head=head)
    assert (workspace.base, workspace.read("a.txt")) == (head, b"x\n")
    assert "evil" not in workspace.pull_diff()


def test_a_missing_commit_is_a_clear_error(github: GitHubServer, clone: Clone) -> None:
    github.commit(NAME, "work", {"a.txt": "x\n"})
    with pytest.raises(WorkspaceError, match="has no commit"):
        clone(head="1" * 40)


def test_unrelated_histories_are_a_clear_error(github: GitHubServer, clone: Clone) -> None:
    git = github.repository(NAME).git
    tree = git.text("rev-parse", "main^{tree}")
    who = {f"GIT_{a}_{b}": "x@y" for a in ("AUTHOR", "COMMITTER") for b in ("NAME", "EMAIL")}
    alone = git.git("commit-tree", tree, "-m", "alone", env=who).decode().strip()
    github.force_push(NAME, "alone", alone)
    with pytest.raises(WorkspaceError, match="no history in common"):
        clone("alone", depth=1)


def patch(path: str, lines: int) -> FilePatch:
    body = "".join(f"+line {n}\n" for n in range(lines)).encode()
    file = DiffFile(path=path, status="added", additions=lines, deletions=0)
    return FilePatch(file, b"@@ -0,0 +1,%d @@\n" % lines + body)


def test_a_huge_diff_is_truncated_and_says_so() -> None:
    result = numbered_diff([patch(f"f{n}.py", 3_000) for n in range(320)])
    assert len(result) < MAX_DIFF_CHARACTERS * 1.5
    assert "more lines of this file's diff are not shown" in result
    assert "[not shown, for length]" in result
    assert "more files are not shown" in result


@given(st.lists(st.tuples(st.sampled_from(" +-"), st.text(max_size=20)), max_size=30))
def test_lines_of_the_diff_are_numbered_correctly(rows: list[tuple[str, str]]) -> None:
    rows = [(sign, " ".join(text.split())) for sign, text in rows]
    old = sum(sign != "+" for sign, _ in rows)
    new = sum(sign != "-" for sign, _ in rows)
    head = f"@@ -1,{old} +1,{new} @@\n"
    raw = head + "".join(f"{sign}{text}\n" for sign, text in rows)
    file = DiffFile(path="x", status="modified", additions=new, deletions=old)
    result = numbered_diff([FilePatch(file, raw.encode())]).split("\n")[2:]
    before = after = 1
    for line, (sign, text) in zip(result, rows, strict=True):
        assert line[7] == sign
        assert line[8:] == text or not text
        assert int(line[:6]) == (before if sign == "-" else after)
        before += sign != "+"
        after += sign != "-"
