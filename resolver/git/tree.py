"""Reads what differs between two trees, and blobs, from the host's clone. Text is never parsed.

Paths are bytes, as git keeps them; `quote` makes them fit for a person.
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
"""Bytes of blobs held in memory at once."""

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
    """One changed path. Modes are git's six digits, "000000" where there is nothing."""

    path: bytes
    status: Status
    old_mode: str
    new_mode: str
    old_id: str
    new_id: str

    @property
    def old_blob(self) -> str | None:
        """Object id of the old content, None when there was none (or it is a submodule)."""
        return None if self.old_mode in (_ABSENT, GITLINK) else self.old_id

    @property
    def new_blob(self) -> str | None:
        """Object id of the new content, None when there is none (or it is a submodule)."""
        return None if self.new_mode in (_ABSENT, GITLINK) else self.new_id


@dataclass(frozen=True)
class TreeEntry:
    """A file, symlink or submodule of a tree."""

    path: bytes
    mode: str
    id: str


def quote(path: bytes) -> str:
    """`path` the way git prints it: as it is, or in double quotes with C escapes.

    Printable UTF-8 is kept readable; of a path that is not UTF-8 each byte over 127 is escaped.
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
    """Every path that differs, by tree order; a rename is a deletion and an addition."""
    fields = git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", base, tree)
    parts = fields.split(b"\0")[:-1]
    changes = []
    for meta, path in zip(parts[::2], parts[1::2], strict=True):
        old_mode, new_mode, old_id, new_id, status = meta.decode("ascii")[1:].split(" ")
        changes.append(TreeChange(path, _STATUS[status], old_mode, new_mode, old_id, new_id))
    return tuple(changes)


def read_patch(git: HostGit, base: str, tree: str, limit: int) -> Patch:
    """The change from `base` to `tree`.

    limit: bytes. A larger diff is cut there (one byte over, so that the cut can be seen), and
    where the files grow by more, contents of binary and very large files are left out of it.
    """
    changes = read_changes(git, base, tree)
    args = ["--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index"]
    settings = []
    if growth(git, changes) > limit:
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
    """Bytes by which files become longer, summed; what becomes shorter does not count back."""
    changes = tuple(changes)
    blobs = {b for c in changes for b in (c.old_blob, c.new_blob) if b is not None}
    sizes = read_sizes(git, blobs)
    return sum(
        max(0, sizes[c.new_blob] - (sizes[c.old_blob] if c.old_blob else 0))
        for c in changes
        if c.new_blob is not None
    )


def read_tree(git: HostGit, tree: str) -> Iterator[TreeEntry]:
    """Every file, symlink and submodule of a tree (or of a commit's)."""
    for record in git.run("ls-tree", "-r", "-z", "--full-tree", tree).split(b"\0")[:-1]:
        meta, _, path = record.partition(b"\t")
        mode, _, id = meta.decode("ascii").split(" ")
        yield TreeEntry(path, mode, id)


def read_sizes(git: HostGit, blobs: Iterable[str]) -> dict[str, int]:
    """Sizes of blobs in bytes."""
    asked = sorted(set(blobs))
    if not asked:
        return {}
    stdin = "".join(f"{blob}\n" for blob in asked).encode()
    out = git.run("cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=stdin)
    return {name: int(size) for name, size in (line.split() for line in out.decode().splitlines())}


def read_blobs(git: HostGit, blobs: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Each blob once, with its content; few at a time are held in memory."""
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
    out = git.run("cat-file", "--batch", stdin="".join(f"{b}\n" for b in blobs).encode())
    at = 0
    for _ in blobs:
        end = out.index(b"\n", at)
        name, _, size = out[at:end].decode("ascii").split(" ")
        start = end + 1
        at = start + int(size) + 1
        yield name, out[start : at - 1]
