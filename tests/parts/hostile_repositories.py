"""Content of bare repositories that is small on the server and large for those who read them."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from tests.git.scenario import plain_git


def _tree(*entries: tuple[str, str, str]) -> tuple[str, str]:
    """Return a tree of entries with mode, name and id, as `git mktree` reads it, and its id."""
    lines = [
        f"{mode} {'tree' if mode == '40000' else 'blob'} {id}\t{name}" for mode, name, id in entries
    ]
    raw = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(id) for mode, name, id in entries)
    return "\n".join(lines) + "\n", hashlib.sha1(b"tree %d\0" % len(raw) + raw).hexdigest()


def _commit(folder: Path, tree: str) -> None:
    """Make the newest of two commits of the tree the branch `main`: its difference is empty."""
    parent = plain_git(folder, "commit-tree", tree, "-m", "start")
    commit = plain_git(folder, "commit-tree", tree, "-p", parent, "-m", "start")
    plain_git(folder, "update-ref", "refs/heads/main", commit)


def _write_levels(folder: Path, levels: int, names: Sequence[str]) -> None:
    """Give `main` a tree in which every folder has these names, each of them with the same."""
    id, mode = plain_git(folder, "hash-object", "-w", "--stdin", stdin=b"x\n"), "100644"
    trees = []
    for _ in range(levels):
        text, id = _tree(*((mode, name, id) for name in names))
        trees.append(text)
        mode = "40000"
    # One process writes all of them, also those that are nested deeper than git itself can add.
    plain_git(folder, "mktree", "--batch", "--missing", stdin="\n".join(trees).encode())
    _commit(folder, id)


def write_tree_bomb(folder: Path, levels: int = 10, width: int = 10) -> None:
    """Give `main` a tree of `levels + 1` objects that has `width ** levels` files."""
    _write_levels(folder, levels, [f"d{n:03}" for n in range(width)])


def write_nested_trees(folder: Path, levels: int, name: str = "d") -> None:
    """Give `main` one file in `levels` folders within one another."""
    _write_levels(folder, levels, [name])


def write_huge_file(folder: Path, size: int) -> None:
    """Give `main` one file of zeros, which compress to a thousandth."""
    zeros = folder / "zeros"
    zeros.touch()
    os.truncate(zeros, size)
    blob = plain_git(folder, "hash-object", "-w", "--no-filters", str(zeros.absolute()))
    zeros.unlink()
    text, _ = _tree(("100644", "zeros", blob))
    _commit(folder, plain_git(folder, "mktree", stdin=text.encode()))


def write_refs(folder: Path, count: int) -> None:
    """Add `count` branches at the commit of `main`."""
    commit = plain_git(folder, "rev-parse", "refs/heads/main")
    lines = [f"{commit} refs/heads/branch-{number:07}\n" for number in range(count)]
    lines.append(f"{commit} refs/heads/main\n")
    (folder / "packed-refs").write_text("# pack-refs with: sorted \n" + "".join(lines))
