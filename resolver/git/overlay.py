"""Writes trees in the host's clone that differ from an existing one in some files.

Only git objects are read and written. Nothing is checked out, so that a hostile tree runs nothing.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from resolver.config.temporary_directory import temporary_directory
from resolver.git.git import HostGit
from resolver.git.tree import ABSENT, TreeEntry, decode_path, encode_path, read_changes


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
    base: id of a commit or tree.
    wanted: called with the path of each file that differs.
    blobs: for files that differ, the id of the content that they are to have. They count as wanted.
    """
    given = blobs or {}
    differing = {decode_path(c.path): c for c in read_changes(git, base, tree) if c.new_blob}
    chosen = {path: c for path, c in differing.items() if path in given or wanted(path)}
    if not chosen:
        return git.text("rev-parse", f"{base}^{{tree}}"), ()
    entries = [
        TreeEntry(c.path, c.new_mode, given.get(path, c.new_id)) for path, c in chosen.items()
    ]
    no_object = "0" * len(base)
    entries += [TreeEntry(encode_path(path), ABSENT, no_object) for path in removed]
    return write_tree(git, base, entries), tuple(chosen)


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


def write_blob(git: HostGit, content: bytes) -> str:
    """Write the content of a file and return its id."""
    blob = git.run("hash-object", "-w", "--no-filters", "--stdin", stdin=content)
    return blob.decode().strip()


@contextmanager
def _private_index(git: HostGit, tree: str) -> Iterator[dict[str, str]]:
    """Yield the variables with which git uses an index of `tree` that nothing else uses.

    Nothing touches a working tree or a ref.
    """
    with temporary_directory() as folder:
        index = {"GIT_INDEX_FILE": str(folder / "index")}
        git.run("read-tree", tree, environment=index)
        yield index
