"""Tests of malicious bundles, built by hand."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from resolver.errors import PolicyViolation, WorkspaceError
from tests.git.scenario import Scenario, plain_git


class Forge:
    """Creates arbitrary objects and a bundle of them, like an attacker."""

    def __init__(self, scenario: Scenario, place: Path) -> None:
        self.workspace, self.folder = scenario.workspace, place / "forged"
        plain_git(place, "clone", "-q", "--bare", str(scenario.source), str(self.folder))
        self.base = scenario.workspace.base
        self.base_tree = plain_git(self.folder, "rev-parse", f"{self.base}^{{tree}}")
        self.path = place / "forged.bundle"

    def object(self, kind: str, data: bytes) -> str:
        args = ("hash-object", "-w", "--literally", "-t", kind, "--stdin")
        return plain_git(self.folder, *args, stdin=data)

    def tree(self, *entries: tuple[str, str, str]) -> str:
        """Create a tree of the given (mode, name, id) in this order."""
        return self.object(
            "tree", b"".join(f"{m} {n}".encode() + b"\0" + bytes.fromhex(i) for m, n, i in entries)
        )

    def commit(self, tree: str, *parents: str) -> str:
        above = "".join(f"parent {p}\n" for p in parents)
        who = "A <a@b> 0 +0000"
        return self.object(
            "commit", f"tree {tree}\n{above}author {who}\ncommitter {who}\n\nx\n".encode()
        )

    def bundle(self, *commits: str, without: tuple[str, ...] = ()) -> Path:
        for number, commit in enumerate(commits):
            plain_git(self.folder, "update-ref", f"refs/heads/change-{number}", commit)
        refs = [f"refs/heads/change-{n}" for n in range(len(commits))]
        plain_git(
            self.folder, "bundle", "create", "-q", str(self.path), *refs,
            *(f"^{c}" for c in without or (self.base,)),
        )  # fmt: skip
        return self.path

    def refused_tree(self, tree: str) -> str:
        commit = self.commit(tree, self.base)
        return self.refused(self.bundle(commit), commit, tree)

    def refused(self, bundle: Path | None, commit: str, tree: str) -> str:
        with pytest.raises((WorkspaceError, PolicyViolation)) as caught:
            self.workspace.receive(bundle, commit, tree)
        # Only what breaks the policy ends the run as refused.
        assert isinstance(caught.value, PolicyViolation) is ("a form of .git" in caught.value.what)
        return caught.value.what


@pytest.fixture
def forge(scenario: Scenario, tmp_path: Path) -> Forge:
    return Forge(scenario, tmp_path)


def test_a_valid_handmade_bundle_is_accepted(forge: Forge) -> None:
    tree = forge.tree(("100644", "x", forge.object("blob", b"x\n")))
    commit = forge.commit(tree, forge.base)
    patch = forge.workspace.receive(forge.bundle(commit), commit, tree)
    assert {f.path: f.status for f in patch.files} == {
        "README.md": "deleted", "src/a.py": "deleted", "x": "added",
    }  # fmt: skip


@pytest.mark.attack
def test_a_tree_with_a_dangerous_name_is_refused(forge: Forge) -> None:
    """A change contains `.git`, `..` or a form of them as a name, also one with a zero-width
    character: it is refused, and breaks the policy."""
    blob = forge.object("blob", b"x\n")
    for name in ("..", ".", ".git", ".GIT", "git~1", ".g\u200cit", "a/b", "../../etc/cron.d/x"):
        words = forge.refused_tree(forge.tree(("100644", name, blob)))
        assert "fsck error" in words and ("/" in name or "a form of .git" in words)
        folder = forge.tree(("40000", name, forge.tree(("100755", "x", blob))))
        assert "fsck error" in forge.refused_tree(forge.tree(("40000", "outer", folder)))


def test_malformed_trees_and_submodules_that_run_commands_are_refused(forge: Forge) -> None:
    first, second = forge.object("blob", b"1"), forge.object("blob", b"2")
    runs = b'[submodule "x"]\n\tpath = x\n\turl = -u./payload\n\tupdate = !touch /tmp/x\n'
    for entries in (
        [("100644", "x", first), ("100644", "x", second)],
        [("100644", "y", first), ("100644", "x", second)],
        [("0100644", "x", first)],
        [("100644", ".gitmodules", forge.object("blob", runs))],
    ):
        assert "fsck error" in forge.refused_tree(forge.tree(*entries))


def test_an_announced_tree_or_commit_other_than_the_bundles_is_refused(forge: Forge) -> None:
    tree = forge.tree(("100644", "x", forge.object("blob", b"x")))
    commit = forge.commit(tree, forge.base)
    bundle = forge.bundle(commit)
    assert "another tree" in forge.refused(bundle, commit, forge.base_tree)
    assert "something else" in forge.refused(bundle, forge.base, tree)


@pytest.mark.attack
def test_extra_refs_are_refused(forge: Forge) -> None:
    """A bundle from the sandbox has more refs than one: refused."""
    first_tree = forge.tree(("100644", "x", forge.object("blob", b"1")))
    second_tree = forge.tree(("100644", "x", forge.object("blob", b"2")))
    first, second = forge.commit(first_tree, forge.base), forge.commit(second_tree, forge.base)
    assert "something else" in forge.refused(forge.bundle(first, second), first, first_tree)


@pytest.mark.attack
def test_unrelated_or_longer_history_is_refused(forge: Forge) -> None:
    """A change brings other history than one commit on the base: refused."""
    tree = forge.tree(("100644", "x", forge.object("blob", b"1")))
    orphan = forge.commit(tree)
    assert "directly on the base" in forge.refused(forge.bundle(orphan), orphan, tree)
    middle = forge.commit(forge.base_tree, forge.base)
    top = forge.commit(tree, middle)
    assert "directly on the base" in forge.refused(forge.bundle(top), top, tree)
    merge = forge.commit(tree, forge.base, middle)
    assert "directly on the base" in forge.refused(forge.bundle(merge), merge, tree)
    foreign = forge.bundle(top, without=(middle,))
    assert "something else" in forge.refused(foreign, top, tree)


def test_a_bundle_with_a_missing_object_is_refused(forge: Forge) -> None:
    nowhere = hashlib.sha1(b"nothing").hexdigest()
    tree = forge.tree(("100644", "x", nowhere))
    commit = forge.commit(tree, forge.base)
    pack = subprocess.run(
        ["git", "pack-objects", "--stdout", "-q"],
        cwd=forge.folder, input=f"{commit}\n{tree}\n".encode(), capture_output=True, check=True,
    ).stdout  # fmt: skip
    head = f"# v2 git bundle\n-{forge.base} \n{commit} refs/heads/x\n\n".encode()
    forge.path.write_bytes(head + pack)
    assert "can't be used" in forge.refused(forge.path, commit, tree)


@pytest.mark.attack
def test_a_bundle_truncated_or_changed_anywhere_is_refused(forge: Forge) -> None:
    """A bundle from the sandbox is cut or altered anywhere: refused."""
    tree = forge.tree(("100644", "x", forge.object("blob", os.urandom(3000))))
    commit = forge.commit(tree, forge.base)
    sound = forge.bundle(commit).read_bytes()
    for at in (0, 5, 40, 100, len(sound) // 2, len(sound) - 1):
        forge.path.write_bytes(sound[:at])
        assert "can't be used" in forge.refused(forge.path, commit, tree)
        forge.path.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
        assert "can't be used" in forge.refused(forge.path, commit, tree)


def test_an_announced_id_of_another_form_is_refused(forge: Forge) -> None:
    tree = forge.tree(("100644", "x", forge.object("blob", b"x")))
    commit = forge.commit(tree, forge.base)
    bundle = forge.bundle(commit)
    for announced in ("", "HEAD", "--output=/tmp/x", "0" * 39, "g" * 40, "a\n" * 20):
        assert "object id" in forge.refused(bundle, announced, tree)
        assert "object id" in forge.refused(bundle, commit, announced)


def test_a_change_without_a_bundle_must_be_empty(forge: Forge) -> None:
    assert forge.workspace.receive(None, forge.base, forge.base_tree).is_empty
    other = forge.tree(("100644", "x", forge.object("blob", b"x")))
    assert "sent none" in forge.refused(None, forge.base, other)
