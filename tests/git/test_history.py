"""Tests of how much of a history with many merges is fetched."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from resolver.git.git import HostGit
from resolver.git.history import HISTORY_LEVELS
from resolver.git.merge import MergeResult, is_ancestor, merge
from resolver.git.push import fetch_tip
from resolver.git.workspace import Workspace, workspace_at_branch, workspace_at_pull_request
from resolver.models.pull_request import OpenPullRequest, PullRequestContext
from tests.git.scenario import Served, enter_sandbox, plain_git, serve_clone
from tests.git.trees import commit_of

STEPS = 40
"""First-parent commits of `main`; every one but the first merges a branch of two commits."""

AGE = 15
"""How many of them back each branch begins: ten levels of the graph reach further than that."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve_clone(_import(tmp_path, _stream()), tmp_path, readers=None) as served:
        yield served


def _import(place: Path, stream: bytes) -> Path:
    path = place / "history.git"
    plain_git(place, "init", "-q", "--bare", path.name)
    plain_git(path, "fast-import", "--quiet", stdin=stream)
    return path


def _history_of_a_project() -> bytes:
    """Return 300 files of some thousand bytes, and 200 commits that each change lines of three."""
    words = random.Random(1)

    def line() -> str:
        return " ".join(f"{words.getrandbits(32):x}" for _ in range(6)) + "\n"

    files = {f"src/{n % 20}/file{n}.txt": [line() for _ in range(60)] for n in range(300)}
    parts = [_commit(1, "start", [], {path: "".join(lines) for path, lines in files.items()})]
    for number in range(2, 202):
        changed = words.sample(sorted(files), 3)
        for path in changed:
            files[path][words.randrange(60)] = line()
        contents = {path: "".join(files[path]) for path in changed}
        parts.append(_commit(number, f"change {number}", [number - 1], contents))
    return "".join(parts).encode() + b"reset refs/heads/main\nfrom :201\n"


def test_a_run_fetches_at_most_twice_the_bytes_of_the_newest_commit(tmp_path: Path) -> None:
    """On a repository with a history, of which a clone would fetch all."""
    path = _import(tmp_path, _history_of_a_project())
    plain_git(path, "repack", "-q", "-a", "-d", "-f")
    sent = []
    with serve_clone(path, tmp_path, readers=None) as served:
        for depth in (1, HISTORY_LEVELS, 0):
            served.server.sent = 0
            if depth == 1:
                plain_git(tmp_path, "clone", "-q", "--bare", "--depth=1", served.url, "newest")
            else:
                Workspace.clone(served.url, tmp_path / f"clone{depth}", depth=depth)
            sent.append(served.server.sent)
    newest, run, everything = sent
    assert newest < run <= 2 * newest and run < everything, sent


def _stream() -> bytes:
    """Return a history for `git fast-import`: each branch writes its own file and a common one."""
    parts, mark = [_commit(1, "start", [], {"common.txt": "0\n", "start.txt": "x\n"})], 1
    main = [1]
    for step in range(1, STEPS):
        tip, files = main[max(0, step - AGE)], {}
        for number in (1, 2):
            mark += 1
            files = {f"files/{step}.txt": f"{number}\n" * number}
            parts.append(_commit(mark, f"branch {step}, commit {number}", [tip], files))
            tip = mark
        mark += 1
        files = {**files, "common.txt": "".join(f"{n}\n" for n in range(step + 1))}
        parts.append(_commit(mark, f"Merge branch {step}", [main[-1], tip], files))
        main.append(mark)
    return "".join(parts).encode()


def _commit(mark: int, text: str, parents: list[int], files: dict[str, str]) -> str:
    links = [f"{'merge' if n else 'from'} :{parent}\n" for n, parent in enumerate(parents)]
    who = f"committer Ann <ann@example.com> {1_700_000_000 + mark * 600} +0000\n"
    head = f"commit refs/heads/main\nmark :{mark}\n{who}data {len(text)}\n{text}\n"
    data = [f"M 100644 inline {p}\ndata {len(c)}\n{c}\n" for p, c in files.items()]
    return "".join([head, *links, *data, "\n"])


def _chain(folder: Path) -> list[str]:
    return plain_git(folder, "log", "--first-parent", "--format=%s").splitlines()


def _count(folder: Path, commit: str = "HEAD") -> int:
    return int(plain_git(folder, "rev-list", "--count", commit))


def _is_whole(folder: Path) -> None:
    """Return True if no object is missing and nothing refers git to objects elsewhere."""
    assert plain_git(folder, "fsck", "--strict") == ""
    config = plain_git(folder, "config", "--local", "--list")
    assert "promisor" not in config and "partialclone" not in config
    assert not list(folder.rglob("*.promisor"))


def test_history_has_so_many_levels(served: Served, tmp_path: Path) -> None:
    workspace = Workspace.clone(served.url, tmp_path / "clone", depth=5)
    root, _ = enter_sandbox(workspace, tmp_path)
    assert _chain(root) == [f"Merge branch {n}" for n in range(STEPS - 1, STEPS - 6, -1)]
    plain_git(tmp_path, "clone", "-q", "--bare", "--depth=5", f"file://{served.bare}", "levels")
    assert _count(root) == _count(tmp_path / "levels")
    assert "branch" in plain_git(root, "log", "-p", "-m", "--all")
    blamed = plain_git(root, "blame", "-s", "common.txt").splitlines()
    assert len({line.split()[0] for line in blamed}) == 5
    _is_whole(root)
    _is_whole(workspace.folder)


def test_two_branches_of_one_clone_keep_their_histories(served: Served, tmp_path: Path) -> None:
    old = plain_git(served.bare, "rev-parse", "main~5")
    tree = plain_git(served.bare, "rev-parse", f"{old}^{{tree}}")
    tip = plain_git(served.bare, "commit-tree", tree, "-p", old, "-m", "side")
    plain_git(served.bare, "update-ref", "refs/heads/side", tip)
    plain_git(served.bare, "update-ref", "refs/pull/7/head", tip)
    first = Workspace.clone(served.url, tmp_path / "clone", depth=10)
    pull = OpenPullRequest(number=7, title="Side", branch="side", head=tip, base_branch="main")
    for moved in (
        workspace_at_branch(first, "side", None),
        workspace_at_pull_request(first, pull, None),
    ):
        for commit in (moved.base, moved.default):
            chain = moved.git.text("rev-list", "--first-parent", commit).split()
            assert len(chain) >= 10
    assert moved.base == tip
    _is_whole(first.folder)
    root, _ = enter_sandbox(moved, tmp_path)
    _is_whole(root)


def test_a_pull_request_is_fetched_with_its_own_commits(served: Served, tmp_path: Path) -> None:
    start = plain_git(served.bare, "rev-parse", "main~35")
    tip = start
    for number in range(12):
        tree = plain_git(served.bare, "rev-parse", f"main~{number}^{{tree}}")
        tip = plain_git(served.bare, "commit-tree", tree, "-p", tip, "-m", f"work {number}")
    plain_git(served.bare, "update-ref", "refs/pull/7/head", tip)
    pull = PullRequestContext(number=7, head=tip, base_branch="main")
    workspace = Workspace.clone_pull_request(served.url, tmp_path / "clone", pull, depth=3)
    assert workspace.pull is not None
    assert workspace.pull.merge_base == start
    assert [c.message for c in workspace.pull.commits] == [f"work {n}" for n in range(12)]
    root, _ = enter_sandbox(workspace, tmp_path)
    assert _chain(root)[:12] == [f"work {n}" for n in range(11, -1, -1)]
    _is_whole(root)
    _is_whole(workspace.folder)


def _branch_of(served: Served, start: str, files: dict[str, str], *merged: str) -> str:
    """Commit files on top of `start`, as a merge with other commits if there are any."""
    return commit_of(HostGit(git_dir=served.bare), files, start, *merged)


def _clone_for_merge(served: Served, folder: Path, head: str) -> tuple[Workspace, MergeResult]:
    plain_git(served.bare, "update-ref", "refs/pull/7/head", head)
    pull = PullRequestContext(number=7, head=head, base_branch="main")
    clone = Workspace.clone_pull_request(served.url, folder, pull, depth=3, for_merge=True)
    assert clone.pull is not None
    _is_whole(folder)
    return clone, merge(clone.git, head, clone.pull.base)


def test_an_update_brings_all_history_since_the_merge_base(served: Served, tmp_path: Path) -> None:
    start, main = plain_git(served.bare, "rev-parse", "main~28", "main").split()
    head = _branch_of(served, start, {"start.txt": "mine\n", "common.txt": "mine\n"})
    workspace, merged = _clone_for_merge(served, tmp_path / "clone", head)
    assert merged == merge(HostGit(git_dir=served.bare), head, main)
    assert merged.conflicts == (b"common.txt",)
    behind = plain_git(served.bare, "rev-list", f"{start}..main").split()
    assert set(behind) <= set(workspace.git.text("rev-list", main).split())


def test_branches_that_were_merged_into_each_other_are_updated_with_all_their_history(
    served: Served, tmp_path: Path
) -> None:
    start, tip = plain_git(served.bare, "rev-parse", "main~5", "main").split()
    ours = _branch_of(served, start, {"common.txt": "ours\n"})
    theirs = _branch_of(served, tip, {"common.txt": "theirs\n"})
    head = _branch_of(served, ours, {"common.txt": "both\n", "a.txt": "1\n"}, theirs)
    main = _branch_of(served, theirs, {"common.txt": "both, too\n", "b.txt": "1\n"}, ours)
    plain_git(served.bare, "update-ref", "refs/heads/main", main)
    workspace, merged = _clone_for_merge(served, tmp_path / "clone", head)
    assert merged == merge(HostGit(git_dir=served.bare), head, main)
    assert len(workspace.git.text("merge-base", "--all", head, main).split()) == 2


def test_a_base_that_advanced_is_fetched_with_the_history_between(
    served: Served, tmp_path: Path
) -> None:
    workspace = Workspace.clone(served.url, tmp_path / "clone", depth=10)
    tree = plain_git(served.bare, "rev-parse", "main^{tree}")
    side = plain_git(served.bare, "commit-tree", tree, "-p", "main~30", "-m", "side")
    tip = plain_git(
        served.bare, "commit-tree", tree, "-p", "main", "-p", side, "-m", "Merge an old branch"
    )
    plain_git(served.bare, "update-ref", "refs/heads/main", tip)
    assert fetch_tip(workspace.git, served.url, "main", None) == tip
    assert is_ancestor(workspace.git, workspace.base, tip)
    _is_whole(workspace.folder)
