"""Reads the differences between two trees, and blobs, from the host's clone.

It reads git's raw format (`diff-tree --raw -z`, `ls-tree -z`) and never parses the text of a diff:
https://git-scm.com/docs/diff-format. Paths are bytes, as in git; `quote` makes them readable.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from resolver.errors import WorkspaceError
from resolver.git.git import HostGit
from resolver.models.run import FileChange, Patch

SYMLINK = "120000"
GITLINK = "160000"
_ABSENT = "000000"
_BATCH = 32 << 20
"""Maximum number of bytes of blobs that are read at once; a larger blob is read by itself."""

Status = Literal["added", "modified", "deleted", "type_changed"]
_STATUS: dict[str, Status] = {
    "A": "added",
    "M": "modified",
    "D": "deleted",
    "T": "type_changed",
}
_ESCAPES = {
    7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\",
}  # fmt: skip


@dataclass(frozen=True)
class TreeChange:
    """A path that differs between two trees.

    Modes are git's six octal digits, "000000" where the path doesn't exist.
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
        return None if self.old_mode in (_ABSENT, GITLINK) else self.old_id

    @property
    def new_blob(self) -> str | None:
        """Object id of the new content. None if there is none, or for a submodule."""
        return None if self.new_mode in (_ABSENT, GITLINK) else self.new_id


@dataclass(frozen=True)
class TreeEntry:
    """A file, symlink or submodule of a tree."""

    path: bytes
    mode: str
    id: str


def quote(path: bytes) -> str:
    """Return `path` as git prints it: unchanged, or in double quotes with C escapes.

    Printable UTF-8 is not escaped. In a path that is not valid UTF-8, every byte above 127 is
    escaped.
    """
    try:
        text = path.decode()
    except UnicodeDecodeError:
        return f'"{"".join(_escape(chr(b)) if b < 128 else _octal(bytes([b])) for b in path)}"'
    escaped = "".join(_escape(c) for c in text)
    return text if escaped == text else f'"{escaped}"'


def _escape(char: str) -> str:
    known = _ESCAPES.get(ord(char))
    return known or (char if char.isprintable() else _octal(char.encode()))


def _octal(data: bytes) -> str:
    return "".join(f"\\{byte:03o}" for byte in data)


def read_changes(git: HostGit, base: str, tree: str) -> tuple[TreeChange, ...]:
    """Return the paths that differ, in tree order. A rename is a deletion and an addition."""
    args = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")
    fields = git.read_objects(*args, base, tree)
    parts = fields.split(b"\0")[:-1]
    changes = []
    for meta, path in zip(parts[::2], parts[1::2], strict=True):
        old_mode, new_mode, old_id, new_id, status = meta.decode("ascii")[1:].split(" ")
        changes.append(TreeChange(path, _STATUS[status], old_mode, new_mode, old_id, new_id))
    return tuple(changes)


def read_patch(git: HostGit, base: str, tree: str, limit: int) -> Patch:
    """Return the change from `base` to `tree`.

    limit: bytes of diff. A longer diff is truncated to one byte more than that, so that the caller
    can recognize it. If the files grow by more than `limit`, the content of binary and very large
    files is left out of the diff.
    """
    changes = read_changes(git, base, tree)
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
    counts = _count_lines(git, base, tree, settings)
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


def _count_lines(
    git: HostGit, base: str, tree: str, settings: list[tuple[str, str]]
) -> dict[bytes, tuple[int | None, int | None]]:
    """Return added and deleted lines of each path, None for binary files."""
    out = git.run(
        "diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv",
        base, tree, settings=settings,
    )  # fmt: skip
    counts: dict[bytes, tuple[int | None, int | None]] = {}
    for record in out.split(b"\0")[:-1]:
        added, deleted, path = record.split(b"\t", 2)
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
    for record in _list_tree(git, tree).split(b"\0")[:-1]:
        yield _entry(record)


def find_entry(git: HostGit, tree: str, path: bytes) -> TreeEntry | None:
    """Return the file, symlink or submodule at `path` of a tree, None if there is none."""
    listing = _list_tree(git, tree)
    end = -1
    # The end of another path that contains a tab may look like the whole path, so each place that
    # matches is compared.
    while (end := listing.find(b"\t" + path + b"\0", end + 1)) >= 0:
        entry = _entry(listing[listing.rfind(b"\0", 0, end) + 1 : end + 1 + len(path)])
        if entry.path == path:
            return entry
    return None


def _list_tree(git: HostGit, tree: str) -> bytes:
    return git.read_objects("ls-tree", "-r", "-z", "--full-tree", tree)


def _entry(record: bytes) -> TreeEntry:
    meta, _, path = record.partition(b"\t")
    mode, _, id = meta.decode("ascii").split(" ")
    return TreeEntry(path, mode, id)


def read_sizes(git: HostGit, blobs: Iterable[str]) -> dict[str, int]:
    """Return the size of each blob in bytes."""
    asked = sorted(set(blobs))
    if not asked:
        return {}
    stdin = "".join(f"{blob}\n" for blob in asked).encode()
    out = git.read_objects("cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=stdin)
    return {name: int(size) for name, size in (line.split() for line in out.decode().splitlines())}


def read_blobs(git: HostGit, blobs: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the id and content of each blob once, reading them in batches of limited size."""
    batch: list[str] = []
    size = 0
    for blob, length in read_sizes(git, blobs).items():
        if batch and size + length > _BATCH:
            yield from _read_batch(git, batch)
            batch, size = [], 0
        batch.append(blob)
        size += length
    if batch:
        yield from _read_batch(git, batch)


def _read_batch(git: HostGit, blobs: list[str]) -> Iterator[tuple[str, bytes]]:
    # A record is "<id> <type> <size>\n<content>\n": https://git-scm.com/docs/git-cat-file
    out = git.read_objects("cat-file", "--batch", stdin="".join(f"{b}\n" for b in blobs).encode())
    at = 0
    for _ in blobs:
        end = out.index(b"\n", at)
        name, _, size = out[at:end].decode("ascii").split(" ")
        start = end + 1
        at = start + int(size) + 1
        yield name, out[start : at - 1]
