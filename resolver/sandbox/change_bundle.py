"""Writes the bundle of a change, with large files copied into it directly.

Git reads a new content three times before it is in a bundle, and searches for a delta base. A large
file that git would store byte for byte is read only once here.

The bundle begins with git's header, which names the commit and its prerequisite `base`. One pack
follows: first the blobs of the large files, written here, then the entries of a pack that git has
made of everything else, and a checksum over both. Formats:
https://git-scm.com/docs/gitformat-bundle, https://git-scm.com/docs/gitformat-pack
"""

import hashlib
import os
import shutil
import stat
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Final, NamedTuple

LARGE_BYTES: Final = 256 * 1024
"""Size in bytes from which a file is copied directly."""

REF: Final = "refs/resolver/change"
"""Name of the commit in the bundle."""

_CHUNK_BYTES: Final = 1 << 20
_BLOB_TYPE: Final = 3

# A zlib stream of stored (uncompressed) blocks, which costs half of what zlib needs to write the
# same. See RFC 1950 and https://www.rfc-editor.org/rfc/rfc1951#section-3.2.4
_ZLIB_HEADER: Final = b"\x78\x01"
_STORED_HEADER: Final = struct.Struct("<BHH")
_MAX_STORED_BYTES: Final = 0xFFFF

_PACK_HEADER_BYTES: Final = 12
_ATTRIBUTES: Final = ("text", "crlf", "eol", "filter", "ident", "working-tree-encoding")
"""Attributes that may make git store other bytes than the file has."""

Run = Callable[[Sequence[str], bytes], bytes]
"""Runs git with arguments and an input in the repository that the change is exported from."""


class PackedFiles(NamedTuple):
    """Large files whose contents are in the bundle.

    entries: mode and object id by path.
    objects: number of objects in the bundle so far, none of which the repository has.
    """

    entries: Mapping[bytes, tuple[bytes, bytes]]
    objects: int


def plain_files(root: str, names: Sequence[bytes], run: Run) -> list[bytes]:
    """Return those of the changed files that are large and that git stores unchanged."""
    large = [name for name in names if _is_large(os.fsencode(root), name)]
    if not large:
        return []
    output = run(["check-attr", "-z", "--stdin", *_ATTRIBUTES], b"\0".join(large) + b"\0")
    fields = output.split(b"\0")
    rows = zip(fields[:-1:3], fields[2::3], strict=True)
    converted = {name for name, value in rows if value not in (b"unspecified", b"unset")}
    return [name for name in large if name not in converted]


def pack_files(
    root: str, names: Sequence[bytes], base: str, bundle: IO[bytes], run: Run
) -> PackedFiles:
    """Begin a bundle with the contents of the files that the repository does not have."""
    entries: dict[bytes, tuple[bytes, bytes]] = {}
    while True:
        # Leave space for the headers, which `finish` writes once the number of objects is known.
        bundle.seek(_pack_start(base) + _PACK_HEADER_BYTES)
        bundle.truncate()
        written: dict[bytes, bytes] = {}
        for name in names:
            entry = _write_file(os.path.join(os.fsencode(root), name), base, bundle, written)
            if entry:
                entries[name] = entry
        queries = b"".join(object_id + b"\n" for object_id in written)
        answers = run(["cat-file", "--batch-check"], queries).splitlines() if queries else []
        known = {line[: len(base)] for line in answers if not line.endswith(b" missing")}
        if not known:
            return PackedFiles(entries, len(written))
        # Files with known contents were only moved or touched. Leave them to git, which knows
        # whether the host has these contents already, and write the bundle again without them.
        names = [name for name in names if name in entries and entries[name][1] not in known]


def finish(bundle: IO[bytes], count: int, pack: IO[bytes], base: str, commit: str) -> None:
    """Append git's own pack with the other objects, and write the headers and the checksum.

    bundle: the file that `pack_files` has begun, with `count` objects.
    pack: git's pack, whose entries are copied without its header and checksum.
    """
    pack.seek(0)
    object_count = count + int.from_bytes(pack.read(_PACK_HEADER_BYTES)[8:], "big")
    bundle.seek(0, os.SEEK_END)
    shutil.copyfileobj(pack, bundle, _CHUNK_BYTES)
    # Offsets of deltas in the copied entries stay valid: they are relative to the entry itself
    # (OBJ_OFS_DELTA).
    bundle.seek(-_hash(base).digest_size, os.SEEK_END)
    bundle.truncate()
    bundle.seek(0)
    bundle.write(_bundle_header(base, commit) + b"PACK\0\0\0\2" + object_count.to_bytes(4, "big"))
    bundle.seek(_pack_start(base))
    digest = _hash(base)
    while chunk := bundle.read(_CHUNK_BYTES):
        digest.update(chunk)
    bundle.write(digest.digest())
    bundle.flush()


def _is_large(root: bytes, name: bytes) -> bool:
    """Return True for a regular file of at least LARGE_BYTES whose parent folders are no links."""
    path = os.path.join(root, name)
    try:
        status = os.lstat(path)
    except OSError:
        return False
    if not stat.S_ISREG(status.st_mode) or status.st_size < LARGE_BYTES:
        return False
    # If a parent folder was replaced by a symbolic link, git sees no file here.
    return os.path.realpath(path) == os.path.join(os.path.realpath(root), name)


def _write_file(
    path: bytes, base: str, bundle: IO[bytes], written: dict[bytes, bytes]
) -> tuple[bytes, bytes] | None:
    """Append a file's content, unless it is there already, and return its mode and object id.

    None if the file can't be read as a whole.
    """
    start = bundle.tell()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        is_file = stat.S_ISREG(status.st_mode)
        object_id = _write_blob(file, status.st_size, base, bundle) if is_file else b""
    if not object_id or object_id in written:
        bundle.seek(start)
        bundle.truncate()
    if not object_id:
        return None
    written[object_id] = path
    return b"100755" if status.st_mode & stat.S_IXUSR else b"100644", object_id


def _write_blob(file: IO[bytes], size: int, base: str, bundle: IO[bytes]) -> bytes:
    """Append a blob and return its object id; b"" if the file becomes shorter meanwhile."""
    digest = _hash(base)
    digest.update(b"blob %d\0" % size)
    bundle.write(_entry_header(size) + _ZLIB_HEADER)
    checksum = zlib.adler32(b"")
    bytes_left = size
    while bytes_left and (chunk := file.read(min(bytes_left, _CHUNK_BYTES))):
        digest.update(chunk)
        checksum = zlib.adler32(chunk, checksum)
        for start in range(0, len(chunk), _MAX_STORED_BYTES):
            block = memoryview(chunk)[start : start + _MAX_STORED_BYTES]
            bundle.write(_STORED_HEADER.pack(0, len(block), ~len(block) & 0xFFFF))
            bundle.write(block)
        bytes_left -= len(chunk)
    bundle.write(_STORED_HEADER.pack(1, 0, 0xFFFF) + checksum.to_bytes(4, "big"))
    return b"" if bytes_left else digest.hexdigest().encode()


def _entry_header(size: int) -> bytes:
    """Return the header of a pack entry: the type, and the size in a variable number of bytes.

    The first byte holds four bits of the size and the others seven each, the lowest first.
    """
    header = bytearray([_BLOB_TYPE << 4 | size & 15])
    size >>= 4
    while size:
        header[-1] |= 128
        header.append(size & 127)
        size >>= 7
    return bytes(header)


def _hash(base: str) -> "hashlib._Hash":
    return hashlib.sha256() if len(base) == 64 else hashlib.sha1()


def _bundle_header(base: str, commit: str) -> bytes:
    kind = "# v3 git bundle\n@object-format=sha256" if len(base) == 64 else "# v2 git bundle"
    return f"{kind}\n-{base}\n{commit} {REF}\n\n".encode()


def _pack_start(base: str) -> int:
    return len(_bundle_header(base, base))
