"""Tests of the commit and its branch, over HTTP and in a local repository."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from resolver.errors import BranchTaken, WorkspaceError
from resolver.git.push import Identity, list_branches, push_commit
from tests.git.scenario import (
    AT,
    US,
    Scenario,
    Served,
    plain_git,
    serve_clone,
    write,
)


@pytest.fixture
def scenario(scenario: Scenario) -> Scenario:
    write(scenario.root, "new.txt", "new\n")
    return scenario


@pytest.fixture
def served(tmp_path: Path, scenario: Scenario) -> Iterator[Served]:
    with serve_clone(scenario.source, tmp_path) as served:
        yield served


def _commit(scenario: Scenario, message: str = "Change") -> str:
    return scenario.commit(scenario.export(), message)


def _push(scenario: Scenario, commit: str, branch: str, served: Served) -> None:
    push_commit(scenario.workspace.git, commit, branch, served.url, served.credential)


def test_the_commit_is_on_the_base_and_names_the_requester(scenario: Scenario) -> None:
    ann = Identity("Ann <x> Example\n", "ann@example.com>\nEvil: 1")
    patch, message = scenario.export(), "Fix ü\n\nBody\x1b[31m\0\r\nFixes #1\n\n"
    scenario.write_branch("agent/x", scenario.commit(patch, message, co_authors=(ann, ann, US)))
    raw = plain_git(scenario.source, "cat-file", "commit", "agent/x").splitlines()
    stamp = f"{US.name} <{US.email}> {int(AT.timestamp())} +0000"
    assert raw[:4] == [
        f"tree {patch.tree}", f"parent {patch.base}", f"author {stamp}", f"committer {stamp}",
    ]  # fmt: skip
    assert raw[5:] == [
        "Fix ü", "", "Body[31m", "Fixes #1", "",
        "Co-authored-by: Ann x Example <ann@example.comEvil:1>",
        f"Co-authored-by: {US.name} <{US.email}>",
    ]  # fmt: skip
    assert plain_git(scenario.source, "fsck", "--strict") == ""


def test_any_message_and_any_name_make_a_valid_commit(scenario: Scenario) -> None:
    patch = scenario.export()
    for number, message in enumerate(["", "\n\n", "\0", "-F/etc/passwd", "# comment", "\udcff"]):
        commit = scenario.commit(patch, message, Identity("<>", "\n"))
        scenario.write_branch(f"agent/{number}", commit)
    assert plain_git(scenario.source, "fsck", "--strict") == ""


def test_a_branch_is_pushed_and_nothing_else(scenario: Scenario, served: Served) -> None:
    before = plain_git(served.bare, "for-each-ref")
    commit = _commit(scenario)
    _push(scenario, commit, "agent/fix", served)
    after = plain_git(served.bare, "for-each-ref").replace(before, "").split()
    assert after == [commit, "commit", "refs/heads/agent/fix"]
    assert plain_git(served.bare, "fsck", "--strict") == ""


def test_a_branch_with_something_else_is_not_moved(scenario: Scenario, served: Served) -> None:
    commit = _commit(scenario)
    _push(scenario, commit, "agent/other", served)
    tree = plain_git(served.bare, "rev-parse", f"{commit}^{{tree}}")
    on_top = plain_git(served.bare, "commit-tree", tree, "-p", commit, "-m", "on top")
    for existing in (scenario.workspace.base, on_top):
        plain_git(served.bare, "update-ref", "refs/heads/agent/fix", existing)
        with pytest.raises(BranchTaken, match="agent/fix"):
            _push(scenario, commit, "agent/fix", served)
        assert plain_git(served.bare, "rev-parse", "agent/fix") == existing


def test_only_a_valid_branch_of_resolver_is_written(scenario: Scenario, served: Served) -> None:
    commit = _commit(scenario)
    before = plain_git(served.bare, "for-each-ref"), plain_git(scenario.source, "for-each-ref")
    for branch in (
        "main", "agent", "agent/", "refs/heads/agent/x", "agent/../main", "agent/x.lock",
        "agent/a b", "agent/x:main", "agent/x\nmain", "+agent/x", "-agent/x", "agent/@{-1}",
        "agent/*", "Agent/x",
    ):  # fmt: skip
        with pytest.raises(WorkspaceError):
            _push(scenario, commit, branch, served)
        with pytest.raises(WorkspaceError):
            scenario.write_branch(branch, commit)
    assert before == (
        plain_git(served.bare, "for-each-ref"),
        plain_git(scenario.source, "for-each-ref"),
    )


def test_a_local_repository_gets_one_branch_and_is_otherwise_unchanged(scenario: Scenario) -> None:
    write(scenario.source, "README.md", "being edited\n")
    write(scenario.source, "staged", "x\n")
    plain_git(scenario.source, "add", "staged")
    before = _contents(scenario.source)
    commit = _commit(scenario)
    scenario.write_branch("agent/fix", commit)
    new = {p: c for p, c in _contents(scenario.source).items() if before.get(p) != c}
    objects = [p for p in new if p.startswith(".git/objects/pack/")]
    assert sorted(set(new) - set(objects)) == [
        ".git/logs/refs/heads/agent/fix", ".git/refs/heads/agent/fix",
    ]  # fmt: skip
    assert plain_git(scenario.source, "rev-parse", "agent/fix") == commit
    assert plain_git(scenario.source, "fsck", "--strict", "--no-dangling") == ""
    assert list_branches(scenario.source) == {"agent/fix"}


def _contents(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_an_existing_local_branch_is_not_overwritten(scenario: Scenario) -> None:
    commit = _commit(scenario)
    for _ in range(2):
        scenario.write_branch("agent/fix", commit)
    with pytest.raises(BranchTaken):
        scenario.write_branch("agent/fix", _commit(scenario, "Another"))
    assert plain_git(scenario.source, "rev-parse", "agent/fix") == commit
