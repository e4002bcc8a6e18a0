"""Builds a clean git directory for the sandbox and streams it as a tar.

It contains the base commit with its history, but no remote, hook or credential of the clone.

Layout: https://git-scm.com/docs/gitrepository-layout
"""

import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from resolver.git.git import HostGit, repository_config

_CHUNK = 1 << 20

_PACK_FILES = (".pack", ".idx", ".rev")

# Writable for everyone: the container engine unpacks the files as root, and the sandbox's
# unprivileged user has to be able to link and remove them.
_FOLDER, _PLAIN = 0o777, 0o666

_REFS_HEADER = "# pack-refs with: peeled fully-peeled sorted \n"


def git_dir_tar(git: HostGit, folder: Path, base: str, branch: str) -> Iterator[bytes]:
    """Yield an uncompressed tar of the files of a non-bare git directory, in chunks.

    branch: the branch that HEAD points to, "" for a detached HEAD.
    """
    config = repository_config(bare=False, wide=len(base) == 64)
    head = f"ref: refs/heads/{branch}\n" if branch else f"{base}\n"
    small = {"HEAD": head, "config": config}
    if branch:
        small["packed-refs"] = f"{_REFS_HEADER}{base} refs/heads/{branch}\n"
    # The history ends where it ends in the clone; without this file, git would miss the parents.
    shallow = folder / "shallow"
    if shallow.is_file():
        small["shallow"] = shallow.read_text("ascii")
    with tempfile.TemporaryDirectory(prefix="outgoing-", dir=folder) as place:
        for name in ("refs/heads", "objects/info", "objects/pack"):
            yield _head(name, 0, tarfile.DIRTYPE, _FOLDER)
        for name, text in small.items():
            data = text.encode("utf-8", "surrogateescape")
            yield _head(name, len(data), tarfile.REGTYPE, _PLAIN) + data + _padding(len(data))
        for path in _packs(git, folder, base, Path(place)):
            yield from _file(f"objects/pack/{path.name}", path)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _packs(git: HostGit, folder: Path, base: str, place: Path) -> list[Path]:
    """Return packs and their indexes with exactly the history of `base`.

    These are the clone's own packs if they contain nothing else, as in a new clone. Otherwise a new
    pack is written to `place`.
    """
    lines = git.text("count-objects", "-v").splitlines()
    counts = dict(line.split(": ", 1) for line in lines)
    # Objects of other branches, or of later commits, must not reach the sandbox. If the number of
    # packed objects is that of the history of `base`, the packs contain nothing else.
    has_loose = counts["count"] != "0" or "alternate" in counts
    if not has_loose and counts["in-pack"] == git.text("rev-list", "--objects", "--count", base):
        found = (folder / "objects" / "pack").iterdir()
    else:
        git.run(
            "pack-objects", "--revs", "--delta-base-offset", "--quiet", f"{place}/pack",
            stdin=f"{base}\n".encode(),
        )  # fmt: skip
        found = place.iterdir()
    return sorted(path for path in found if path.suffix in _PACK_FILES)


def _file(name: str, path: Path) -> Iterator[bytes]:
    size = path.stat().st_size
    yield _head(name, size, tarfile.REGTYPE, _PLAIN)
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk
    yield _padding(size)


def _head(name: str, size: int, kind: bytes, mode: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.mode = size, kind, mode
    return info.tobuf(tarfile.PAX_FORMAT)


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)
