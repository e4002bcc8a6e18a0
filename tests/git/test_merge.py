"""Tests of merging commits as objects: clean, in conflict, and replayed."""

from pathlib import Path

import pytest

from resolver.errors import WorkspaceError
from resolver.git.merge import (
    MergeResult,
    commit_unfinished_merge,
    find_conflict_resolutions,
    find_paths_as_theirs,
    find_unresolved_paths,
    format_patch,
    is_ancestor,
    merge,
    replay_commits,
)
from resolver.models.run import ResolvedConflict
from tests.git.scenario import plain_git
from tests.git.trees import Content, Entry, commit_of, write_base

LINES = "".join(f"{n}\n" for n in range(1, 21))
Files = dict[str | bytes, Content] | dict[str, Content]


class Clone:
    """A bare repository with a commit `start`, and others on top of it."""

    def __init__(self, place: Path, files: Files) -> None:
        workspace = write_base(place / "bare.git", files)
        self.source, self.git, self.start = workspace.folder, workspace.git, workspace.base

    def commit(self, name: str, files: Files, onto: str | None = None) -> str:
        """Commit on top of `onto`, by default the start."""
        return commit_of(self.git, files, onto or self.start)

    def tree_with(self, base: str, files: Files) -> str:
        """Return the tree of `base` with other contents."""
        return self.git.text("rev-parse", f"{commit_of(self.git, files, base)}^{{tree}}")


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path, {"a.txt": LINES, "b.txt": "b\n"})


def edited(line: int, word: str) -> str:
    return LINES.replace(f"{line}\n", f"{word}\n", 1)


def test_a_clean_merge_gives_the_same_tree_as_git_merge(clone: Clone, tmp_path: Path) -> None:
    ours = clone.commit("ours", {"a.txt": edited(3, "three"), "new": "n\n"})
    theirs = clone.commit("theirs", {"a.txt": edited(17, "x"), "b.txt": None})
    merged = merge(clone.git, ours, theirs)
    plain_git(clone.source, "worktree", "add", "-q", str(tmp_path / "tree"), ours)
    plain_git(tmp_path / "tree", "merge", "-q", "--no-edit", theirs)
    assert merged.tree == plain_git(tmp_path / "tree", "rev-parse", "HEAD^{tree}")
    assert (merged.conflicts, merged.notes) == ((), ())


def test_conflicts_are_listed_with_gits_messages(clone: Clone) -> None:
    odd = b'odd \xff\n"name".txt'
    start = clone.commit("start", {odd: LINES, "gone": "g\n"})
    ours = clone.commit("ours", {odd: edited(3, "x"), "gone": None}, start)
    theirs = clone.commit("theirs", {odd: edited(3, "y"), "gone": "more\n"}, start)
    merged = merge(clone.git, ours, theirs)
    assert set(merged.conflicts) == {odd, b"gone"}
    assert any("modify/delete" in note for note in merged.notes)
    assert len(merged.notes) == 2


def test_unrelated_histories_are_an_error(clone: Clone) -> None:
    other = commit_of(clone.git, {"a.txt": "another beginning\n"})
    sides = f"merging {other[:12]} into {clone.start[:12]} "
    with pytest.raises(WorkspaceError, match=sides):
        merge(clone.git, clone.start, other)


def test_no_driver_and_no_filter_of_the_repository_runs(clone: Clone, tmp_path: Path) -> None:
    trap = "* merge=evil filter=evil\n[attr]x merge=evil\n"
    start = clone.commit("start", {".gitattributes": trap, "c.txt": LINES})
    ours = clone.commit("ours", {"c.txt": edited(3, "x")}, start)
    theirs = clone.commit("theirs", {"c.txt": edited(3, "y")}, start)
    git = clone.git
    plain_git(tmp_path / "bare.git", "config", "merge.evil.driver", f"touch {tmp_path}/ran")
    assert merge(git, ours, theirs).conflicts == (b"c.txt",)
    assert not (tmp_path / "ran").exists()


def test_a_change_is_replayed_on_top_of_another_commit(clone: Clone) -> None:
    ours = clone.commit("ours", {"a.txt": edited(3, "three")})
    theirs = clone.commit("theirs", {"a.txt": edited(17, "x")})
    git = clone.git
    tree = git.text("rev-parse", f"{ours}^{{tree}}")
    found = replay_commits(git, clone.start, tree, theirs)
    assert not found.conflicts
    both = edited(3, "three").replace("17\n", "x\n")
    assert git.run("cat-file", "blob", f"{found.tree}:a.txt").decode() == both


def test_a_replay_uses_the_given_merge_base(clone: Clone) -> None:
    first = clone.commit("ours", {"a.txt": edited(3, "three")})
    tree, git = clone.tree_with(first, {"n": "n\n"}), clone.git
    found = replay_commits(git, first, tree, clone.start)
    assert git.run("cat-file", "blob", f"{found.tree}:a.txt").decode() == LINES
    assert git.run("cat-file", "blob", f"{found.tree}:n") == b"n\n"


def test_the_unfinished_merge_is_the_same_commit_each_time(clone: Clone) -> None:
    ours = clone.commit("ours", {"a.txt": edited(3, "x")})
    theirs = clone.commit("theirs", {"a.txt": edited(3, "y")})
    git = clone.git
    made = {commit_unfinished_merge(git, merge(git, ours, theirs), ours, theirs) for _ in range(2)}
    [commit] = made
    assert git.text("log", "-1", "--format=%P", commit).split() == [ours, theirs]
    shown = git.text("log", "-1", "--format=%an|%ae|%at|%cn|%ce|%ct", commit)
    assert shown == "|".join(["Resolver", "resolver@localhost", "0"] * 2)
    assert is_ancestor(git, ours, commit) and not is_ancestor(git, commit, ours)


def test_the_resolution_of_each_conflict_is_known(clone: Clone) -> None:
    names = ("both.txt", "gone.txt", "ours.txt", "theirs.txt")
    ours = clone.commit("ours", dict.fromkeys(names, "x\n"))
    theirs = clone.commit("theirs", dict.fromkeys(names, "y\n"))
    git = clone.git
    merged = merge(git, ours, theirs)
    files: Files = {"both.txt": "xy\n", "gone.txt": None, "theirs.txt": "y\n"}
    tree = clone.tree_with(ours, files)
    ended = find_conflict_resolutions(git, merged, tree, ours, theirs)
    found = {resolution.path: (resolution.kept, resolution.untouched) for resolution in ended}
    assert found["both.txt"] == ("merged", False) and found["ours.txt"] == ("ours", False)
    assert found["theirs.txt"] == ("theirs", False)
    assert found["gone.txt"] == ("deleted", False)
    untouched = find_conflict_resolutions(git, merged, merged.tree, ours, theirs)
    assert all(resolution.untouched and resolution.kept == "merged" for resolution in untouched)


def test_a_file_that_git_renamed_counts_as_unresolved(clone: Clone) -> None:
    ours = clone.commit("ours", {"d": "a file\n"})
    theirs = clone.commit("theirs", {"d/inner": "a folder\n"})
    git = clone.git
    merged = merge(git, ours, theirs)
    left = find_unresolved_paths(git, merged, merged.tree, ours, theirs)
    assert left and all(b"~" in path for path in left)


def test_a_file_that_the_base_deleted_may_stay_as_it_is(clone: Clone) -> None:
    ours = clone.commit("ours", {"a.txt": edited(3, "x")})
    theirs = clone.commit("theirs", {"a.txt": None})
    git = clone.git
    merged = merge(git, ours, theirs)
    assert merged.conflicts == (b"a.txt",)
    assert find_unresolved_paths(git, merged, f"{ours}^{{tree}}", ours, theirs) == ()


ONE, TWO = "1" * 40, "2" * 40


def test_each_kind_of_marker_counts_only_as_git_writes_it(clone: Clone) -> None:
    ours = clone.commit("ours", {"a.txt": edited(3, "x")})
    theirs = clone.commit("theirs", {"a.txt": edited(3, "y")})
    git = clone.git
    merged = merge(git, ours, theirs)
    lines = {
        "both": False, "=======": True, "=======\r": True, "========": False, " =======": False,
        "||||||| base": True, "<<<<<<< HEAD": True, "<<<<<<<x": False, ">>>>>>>": True,
        f"<<<<<<< {ours}": True, f">>>>>>> {theirs}:a.txt": True, f"x >>>>>>> {theirs}": False,
    }  # fmt: skip
    for line, counts in lines.items():
        other = "b" if ours in line or theirs in line else line
        tree = clone.tree_with(ours, {"a.txt": edited(3, line), "b.txt": f"{other}\n"})
        left = find_unresolved_paths(git, merged, tree, ours, theirs)
        assert left == ((b"a.txt",) if counts else ()), line


@pytest.mark.parametrize("marker", ["Title\n=======\n", "<<<<<<< how git shows it\n"])
def test_a_marker_that_existed_before_may_stay(tmp_path: Path, marker: str) -> None:
    titled = f"{marker}{LINES}"
    both = {"a.md": titled, "b.md": LINES}
    clone = Clone(tmp_path, {**both})
    ours = clone.commit("ours", {k: v.replace("3\n", "x\n") for k, v in both.items()})
    theirs = clone.commit("theirs", {k: v.replace("3\n", "y\n") for k, v in both.items()})
    merged = merge(clone.git, ours, theirs)
    tree = clone.tree_with(ours, {**both})
    assert find_unresolved_paths(clone.git, merged, tree, ours, theirs) == ()
    tree = clone.tree_with(ours, {"a.md": titled, "b.md": titled})
    assert find_unresolved_paths(clone.git, merged, tree, ours, theirs) == (b"b.md",)


def test_a_marker_that_names_a_side_may_stay_where_the_merge_has_it(clone: Clone) -> None:
    theirs = clone.commit("theirs", {"a.txt": edited(3, "y")})
    notes = f">>>>>>> {theirs}\n"
    ours = clone.commit("ours", {"a.txt": edited(3, "x"), "notes": notes})
    git = clone.git
    merged = merge(git, ours, theirs)
    assert find_unresolved_paths(git, merged, merged.tree, ours, theirs) == (b"a.txt",)
    tree = clone.tree_with(ours, {"b.txt": f"more\n{notes}"})
    assert find_unresolved_paths(git, merged, tree, ours, theirs) == (b"b.txt",)


def test_a_submodule_in_conflict_has_no_content_to_search(clone: Clone) -> None:
    ours = clone.commit("ours", {"lib": Entry("160000", None)})
    theirs = clone.commit("theirs", {"lib": None})
    git = clone.git
    merged = MergeResult(git.text("rev-parse", f"{ours}^{{tree}}"), (b"lib",))
    assert find_unresolved_paths(git, merged, merged.tree, ours, theirs) == ()
    kept = find_conflict_resolutions(git, merged, merged.tree, ours, theirs)
    assert kept == (ResolvedConflict(path="lib", kept="ours", untouched=True),)


def test_a_path_that_is_in_no_version_has_no_resolution(clone: Clone) -> None:
    start = clone.commit("start", {"old": LINES})
    ours = clone.commit("ours", {"old": None, "one": LINES}, start)
    theirs = clone.commit("theirs", {"old": None, "two": LINES}, start)
    git = clone.git
    merged = merge(git, ours, theirs)
    assert set(merged.conflicts) == {b"old", b"one", b"two"}
    ended = find_conflict_resolutions(git, merged, merged.tree, ours, theirs)
    assert {(resolution.path, resolution.kept) for resolution in ended} == {
        ("one", "ours"),
        ("two", "theirs"),
    }
    assert find_paths_as_theirs(git, merged, merged.tree, theirs) == {b"old", b"two"}
    restored = clone.tree_with(ours, {"old": LINES})
    ended = find_conflict_resolutions(git, merged, restored, ours, theirs)
    assert ResolvedConflict(path="old", kept="merged") in ended
    assert ResolvedConflict(path="two", kept="deleted") in ended


def test_a_commit_as_mail_may_have_the_exact_limit_and_must_exist(clone: Clone) -> None:
    made = clone.commit("ours", {"a.txt": None, "c.txt": LINES})
    git = clone.git
    text = format_patch(git, made, 1_000_000)
    assert text is not None and format_patch(git, made, len(text)) == text
    assert format_patch(git, made, len(text) - 1) is None
    # A rename is written out, so that the mail can be applied by any program.
    assert b"rename from" not in text and text.count(b"diff --git") == 2
    with pytest.raises(WorkspaceError, match=r"can't be shown: \S"):
        format_patch(git, ONE, 1_000)
