"""Writes trees in the host's clone that differ from an existing one in some files.

Only git objects are read and written. Nothing is checked out, so that a hostile tree runs nothing.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from resolver.config.temporary_directory import temporary_directory
from resolver.git.git import HostGit
from resolver.git.tree import TreeEntry


def write_tree(git: HostGit, tree: str, entries: Iterable[TreeEntry]) -> str:
    """Return the id of `tree` with these entries in place of its own.

    An entry with the mode ABSENT removes the path.
    """
    lines = b"".join(b"%s %s\t%s\0" % (e.mode.encode(), e.id.encode(), e.path) for e in entries)
    with _private_index(git, tree) as index:
        git.run(
            "update-index", "-z", "--add", "--replace", "--index-info",
            stdin=lines, environment=index,
        )  # fmt: skip
        return git.run("write-tree", environment=index).decode().strip()


@contextmanager
def _private_index(git: HostGit, tree: str) -> Iterator[dict[str, str]]:
    """Yield the variables with which git uses an index of `tree` that nothing else uses.

    Nothing touches a working tree or a ref.
    """
    with temporary_directory() as folder:
        index = {"GIT_INDEX_FILE": str(folder / "index")}
        git.run("read-tree", tree, environment=index)
        yield index
