"""Reads trees of the host's clone, their differences and blobs, and writes others from them.

Differences are read in git's raw format (`diff-tree --raw -z`, `ls-tree -z`); the text of a diff is
never parsed: https://git-scm.com/docs/diff-format. Paths are bytes, as in git; `quote` makes them
readable. Symlinks are resolved within the tree, without a file system.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from resolver.config.temporary_directory import temporary_directory
from resolver.errors import PolicyViolation, WorkspaceError
from resolver.git.git import HostGit
from resolver.models.run import FileChange, Patch

SYMLINK = "120000"
GITLINK = "160000"
ABSENT = "000000"
"""The mode of a path that does not exist."""
_BATCH_BYTES = 32 << 20
"""Maximum number of bytes of blobs that are read at once; a larger blob is read by itself."""

Status = Literal["added", "modified", "deleted", "type_changed"]
STATUSES: dict[str, Status] = {
    "A": "added",
    "M": "modified",
    "D": "deleted",
    "T": "type_changed",
}
"""The kinds of changes by git's letters for them."""


@dataclass(frozen=True)
class TreeChange:
    """A path that differs between two trees.

    Modes are git's six octal digits, ABSENT where the path doesn't exist.
    """

    path: bytes
    status: Status
    old_mode: str
    new_mode: str
    old_id: str
    new_id: str

    @property
    def old_blob(self) -> str | None:
        """Object id of the old content. None if there was none, or for a submodule."""
        return None if self.old_mode in (ABSENT, GITLINK) else self.old_id

    @property
    def new_blob(self) -> str | None:
        """Object id of the new content. None if there is none, or for a submodule."""
        return None if self.new_mode in (ABSENT, GITLINK) else self.new_id


@dataclass(frozen=True)
class TreeEntry:
    """A file, symlink or submodule of a tree."""

    path: bytes
    mode: str
    id: str


def quote(path: bytes) -> str:
    """Return `path` for people: as it is, or in quotes with escapes as a Python literal.

    The latter is for names with quotes, backslashes, characters that are not printable, or bytes
    that are not UTF-8.
    """
    text = decode_path(path)
    return text if text.isprintable() and not {'"', "\\"} & set(text) else repr(text)


def decode_path(path: bytes) -> str:
    """Return `path` as text. Bytes that are not UTF-8 become surrogates, as in `os.fsdecode`."""
    return path.decode("utf-8", "surrogateescape")


def encode_path(path: str) -> bytes:
    """Return the path of which `decode_path` has made the text."""
    return path.encode("utf-8", "surrogateescape")


def read_changes(git: HostGit, base: str, tree: str) -> tuple[TreeChange, ...]:
    """Return the paths that differ, in tree order. A rename is a deletion and an addition."""
    args = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")
    parts = git.run(*args, base, tree).split(b"\0")[:-1]
    changes = []
    for meta, path in zip(parts[::2], parts[1::2], strict=True):
        old_mode, new_mode, old_id, new_id, status = meta.decode("ascii")[1:].split(" ")
        changes.append(TreeChange(path, STATUSES[status], old_mode, new_mode, old_id, new_id))
    return tuple(changes)


MAX_CHANGED_FILES = 100_000
"""Maximum number of files of a change that is read."""


def read_patch(
    git: HostGit, base: str, tree: str, limit: int, max_files: int = MAX_CHANGED_FILES
) -> Patch:
    """Return the change from `base` to `tree`.

    Raises PolicyViolation if it has more than `max_files` files, before any of them is read.

    limit: bytes of diff. A longer diff is truncated to one byte more than that, so that the caller
    can recognize it. If the files grow by more than `limit`, the content of binary and very large
    files is left out of the diff.
    """
    changes = read_changes(git, base, tree)
    if len(changes) > max_files:
        raise PolicyViolation(
            f"it touches {len(changes)} files, more than the {max_files} that are read",
            "look for generated files that git should ignore, and ask again",
        )
    args = ["--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index"]
    settings = []
    if growth(git, changes) > limit:
        # Files above this size are treated as binary, so git doesn't compute a diff of their lines.
        settings = [("core.bigFileThreshold", str(limit))]
    else:
        args.append("--binary")
    diff = git.attempt("diff-tree", "-p", *args, base, tree, settings=settings, limit=limit)
    if diff.status != 0 and not diff.truncated:
        raise WorkspaceError(f"the change can't be shown: {diff.stderr.strip()[-500:]}")
    counts = count_lines(git, "--no-renames", base, tree, settings=settings)
    files = tuple(
        FileChange(
            path=quote(c.path),
            status=c.status,
            old_mode=c.old_mode,
            new_mode=c.new_mode,
            additions=counts[c.path][0],
            deletions=counts[c.path][1],
        )
        for c in changes
    )
    return Patch(base=base, tree=tree, files=files, diff=diff.stdout)


def count_lines(
    git: HostGit, *args: str, settings: Sequence[tuple[str, str]] = ()
) -> dict[bytes, tuple[int | None, int | None]]:
    """Return added and deleted lines of each path, None for binary files.

    args: options of `git diff-tree` and two trees. A renamed file has its new path.
    """
    output = git.run(
        "diff-tree", "-r", "-z", "--numstat", "--no-ext-diff", "--no-textconv", *args,
        settings=settings,
    )  # fmt: skip
    counts: dict[bytes, tuple[int | None, int | None]] = {}
    fields = iter(output.split(b"\0")[:-1])
    for record in fields:
        added, deleted, path = record.split(b"\t", 2)
        if not path:  # a rename: the old and the new name follow as fields of their own
            next(fields)
            path = next(fields)
        counts[path] = (None, None) if added == b"-" else (int(added), int(deleted))
    return counts


def growth(git: HostGit, changes: Iterable[TreeChange]) -> int:
    """Return the number of bytes by which files grow, summed up. Files that shrink count as 0."""
    changes = tuple(changes)
    blobs = {b for c in changes for b in (c.old_blob, c.new_blob) if b is not None}
    sizes = read_sizes(git, blobs)
    return sum(
        max(0, sizes[c.new_blob] - (sizes[c.old_blob] if c.old_blob else 0))
        for c in changes
        if c.new_blob is not None
    )


def read_tree(git: HostGit, tree: str) -> Iterator[TreeEntry]:
    """Yield every file, symlink and submodule of a tree, or of the tree of a commit."""
    for record in git.run("ls-tree", "-r", "-z", "--full-tree", tree).split(b"\0")[:-1]:
        yield _parse_entry(record)


def _parse_entry(record: bytes) -> TreeEntry:
    meta, _, path = record.partition(b"\t")
    mode, _, id = meta.decode("ascii").split(" ")
    return TreeEntry(path, mode, id)


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


def read_sizes(git: HostGit, blobs: Iterable[str]) -> dict[str, int]:
    """Return the size of each blob in bytes."""
    blob_ids = sorted(set(blobs))
    if not blob_ids:
        return {}
    stdin = "".join(f"{blob}\n" for blob in blob_ids).encode()
    output = git.run("cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=stdin)
    return {
        name: int(size) for name, size in (line.split() for line in output.decode().splitlines())
    }


def read_blobs(
    git: HostGit, blobs: Iterable[str], max_bytes: int | None = None
) -> Iterator[tuple[str, bytes]]:
    """Yield the id and content of each blob once, reading them in batches of limited size.

    max_bytes: blobs that are larger are left out.
    """
    batch: list[str] = []
    size = 0
    for blob, length in read_sizes(git, blobs).items():
        if max_bytes is not None and length > max_bytes:
            continue
        if batch and size + length > _BATCH_BYTES:
            yield from _read_batch(git, batch)
            batch, size = [], 0
        batch.append(blob)
        size += length
    if batch:
        yield from _read_batch(git, batch)


def _read_batch(git: HostGit, blobs: list[str]) -> Iterator[tuple[str, bytes]]:
    output = git.run("cat-file", "--batch", stdin="".join(f"{b}\n" for b in blobs).encode())
    # A record is "<id> <type> <size>\n<content>\n": https://git-scm.com/docs/git-cat-file
    position = 0
    for _ in blobs:
        header_end = output.index(b"\n", position)
        name, _, size = output[position:header_end].decode("ascii").split(" ")
        start = header_end + 1
        position = start + int(size) + 1
        yield name, output[start : position - 1]


_MAX_SYMLINKS = 40
"""Maximum number of links that are followed, as in Linux.

A longer chain is treated as a loop: https://man7.org/linux/man-pages/man7/path_resolution.7.html
"""


def resolve_symlink(links: Mapping[bytes, bytes], link: bytes) -> bytes | None:
    """Return the path in the repository that `link` leads to, None if it leads outside.

    links: target of every symlink of the tree. An absolute target, a path above the root, and
    anything in `.git` are outside. A link into a loop leads to itself.
    """
    path = link.split(b"/")[:-1]
    remaining = [link.split(b"/")[-1]]
    hops = 0
    while remaining:
        name = remaining.pop(0)
        if name in (b"", b"."):
            continue
        if name == b"..":
            if not path:
                return None
            path.pop()
            continue
        if name.lower() == b".git":
            return None
        path.append(name)
        target = links.get(b"/".join(path))
        if target is None:
            continue
        hops += 1
        if hops > _MAX_SYMLINKS:
            return link
        if target.startswith(b"/"):
            return None
        path.pop()
        remaining = target.split(b"/") + remaining
    return b"/".join(path)


def escaping_symlinks(links: Mapping[bytes, bytes]) -> set[tuple[bytes, bytes]]:
    """Return the links that lead out of the repository, with their targets."""
    return {
        (link, target) for link, target in links.items() if resolve_symlink(links, link) is None
    }


def read_chunks(path: Path) -> Iterator[bytes]:
    """Yield the content of a file in parts of at most 1 MiB."""
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            yield chunk
