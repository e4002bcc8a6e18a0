"""Writes trees in the host's clone that differ from an existing one in some files.

Only git objects are read and written. Nothing is checked out, so that a hostile tree runs nothing.
"""

from collections.abc import Iterable

from resolver.config.temporary_directory import temporary_directory
from resolver.git.git import HostGit
from resolver.git.tree import TreeEntry


def write_tree(git: HostGit, tree: str, entries: Iterable[TreeEntry]) -> str:
    """Return the id of `tree` with these entries in place of its own.

    An entry with the mode ABSENT removes the path.
    """
    lines = b"".join(b"%s %s\t%s\0" % (e.mode.encode(), e.id.encode(), e.path) for e in entries)
    # An index that nothing else uses: nothing touches a working tree or a ref.
    with temporary_directory() as folder:
        index = {"GIT_INDEX_FILE": str(folder / "index")}
        git.run("read-tree", tree, environment=index)
        git.run(
            "update-index", "-z", "--add", "--replace", "--index-info",
            stdin=lines, environment=index,
        )  # fmt: skip
        return git.run("write-tree", environment=index).decode().strip()
