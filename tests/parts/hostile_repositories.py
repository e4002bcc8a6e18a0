"""Content of bare repositories that is small on the server and large for those who read them.

Their objects are written as one pack, https://git-scm.com/docs/gitformat-pack, because git itself
takes minutes to make some of them, or fails.
"""

import hashlib
import struct
import zlib
from pathlib import Path

from tests.git.scenario import plain_git

_CHUNK = 1 << 20
_PACK_TYPES = {"commit": 1, "tree": 2, "blob": 3}


class PackWriter:
    """Collects objects and writes them into a new bare repository."""

    def __init__(self) -> None:
        self._entries: dict[bytes, bytes] = {}

    def add(self, kind: str, content: bytes) -> bytes:
        """Add an object and return its id as bytes."""
        header = f"{kind} {len(content)}\0".encode()
        identity = hashlib.sha1(header + content, usedforsecurity=False).digest()
        if identity not in self._entries:
            head = _entry_head(_PACK_TYPES[kind], len(content))
            self._entries[identity] = head + zlib.compress(content)
        return identity

    def add_zeros(self, size: int) -> bytes:
        """Add a file of zeros, which need not fit into memory, and return its id as bytes."""
        digest = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
        compressor = zlib.compressobj()
        parts = [_entry_head(_PACK_TYPES["blob"], size)]
        for start in range(0, size, _CHUNK):
            chunk = bytes(min(_CHUNK, size - start))
            digest.update(chunk)
            parts.append(compressor.compress(chunk))
        self._entries[digest.digest()] = b"".join([*parts, compressor.flush()])
        return digest.digest()

    def add_tree(self, *entries: tuple[str, str, bytes]) -> bytes:
        """Add a tree of entries with mode, name and id, which are in git's order."""
        return self.add(
            "tree", b"".join(f"{mode} {name}\0".encode() + id for mode, name, id in entries)
        )

    def add_commits(self, tree: bytes) -> bytes:
        """Add two commits of the tree and return the newer one, whose difference is empty."""
        person = "Ann <ann@example.com> 1700000000 +0000"
        head = f"tree {tree.hex()}\n"
        tail = f"author {person}\ncommitter {person}\n\nstart\n"
        parent = self.add("commit", f"{head}{tail}".encode())
        return self.add("commit", f"{head}parent {parent.hex()}\n{tail}".encode())

    def write(self, folder: Path, commit: bytes) -> None:
        """Write the objects to a bare repository, and make the commit its branch `main`."""
        body = (
            b"PACK" + struct.pack(">II", 2, len(self._entries)) + b"".join(self._entries.values())
        )
        pack = body + hashlib.sha1(body, usedforsecurity=False).digest()
        plain_git(folder, "index-pack", "--stdin", stdin=pack)
        plain_git(folder, "update-ref", "refs/heads/main", commit.hex())


def _entry_head(kind: int, size: int) -> bytes:
    head = bytearray([(kind << 4) | (size & 0x0F)])
    size >>= 4
    while size:
        head[-1] |= 0x80
        head.append(size & 0x7F)
        size >>= 7
    return bytes(head)


def write_tree_bomb(folder: Path, levels: int = 10, width: int = 10) -> None:
    """Give `main` a tree of `levels + 1` objects that has `width ** levels` files."""
    pack = PackWriter()
    entry, mode = pack.add("blob", b"x\n"), "100644"
    for _ in range(levels):
        entry = pack.add_tree(*((mode, f"d{n:03}", entry) for n in range(width)))
        mode = "40000"
    pack.write(folder, pack.add_commits(entry))


def write_nested_trees(folder: Path, levels: int) -> None:
    """Give `main` one file in `levels` folders within one another."""
    pack = PackWriter()
    entry, mode = pack.add("blob", b"x\n"), "100644"
    for _ in range(levels):
        entry, mode = pack.add_tree((mode, "d", entry)), "40000"
    pack.write(folder, pack.add_commits(entry))


def write_huge_file(folder: Path, size: int) -> None:
    """Give `main` one file of zeros, which compress to a thousandth."""
    pack = PackWriter()
    blob = pack.add_zeros(size)
    pack.write(folder, pack.add_commits(pack.add_tree(("100644", "zeros", blob))))


def write_refs(folder: Path, count: int) -> None:
    """Add `count` branches at the commit of `main`."""
    commit = plain_git(folder, "rev-parse", "refs/heads/main")
    lines = [f"{commit} refs/heads/branch-{number:07}\n" for number in range(count)]
    lines.append(f"{commit} refs/heads/main\n")
    (folder / "packed-refs").write_text("# pack-refs with: sorted \n" + "".join(lines))
