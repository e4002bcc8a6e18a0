"""Builds a tree from two others in the host's clone: one tree, with some files of another.

Only git objects are read and written. Nothing is checked out, so that a hostile tree runs nothing.
"""

import tempfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from resolver.git.git import HostGit
from resolver.git.tree import TreeChange, read_changes


def overlay_tree(
    git: HostGit,
    base: str,
    tree: str,
    wanted: Callable[[str], bool],
    removed: Collection[str] = (),
    blobs: Mapping[str, str] | None = None,
) -> tuple[str, tuple[str, ...]]:
    """Return the tree `base` with the added and changed files of `tree` that are wanted.

    The second value holds the paths of these files. Deleted files stay as they are in `base`,
    except those in `removed`.
    wanted: called with the path of each file that differs.
    blobs: for files that differ, the id of the content that they are to have. They count as wanted.
    """
    given = blobs or {}
    differing = [c for c in read_changes(git, base, tree) if c.new_blob]
    chosen = [c for c in differing if _text(c) in given or wanted(_text(c))]
    if not chosen:
        return git.text("rev-parse", f"{base}^{{tree}}"), ()
    entries = b"".join(
        b"%s %s\t%s\0" % (c.new_mode.encode(), given.get(_text(c), c.new_id).encode(), c.path)
        for c in chosen
    )
    entries += b"".join(
        b"0 %s\t%s\0" % (b"0" * 40, path.encode("utf-8", "surrogateescape")) for path in removed
    )
    with tempfile.TemporaryDirectory(prefix="index-") as folder:
        # A private index: read-tree and write-tree touch neither a working tree nor a ref.
        index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        git.run("read-tree", base, environment=index)
        git.run(
            "update-index", "-z", "--add", "--replace", "--index-info",
            stdin=entries, environment=index,
        )  # fmt: skip
        made = git.run("write-tree", environment=index).decode().strip()
    return made, tuple(_text(c) for c in chosen)


def _text(change: TreeChange) -> str:
    return change.path.decode("utf-8", "surrogateescape")
