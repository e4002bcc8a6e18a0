"""A clean git directory for the sandbox, made by the host from objects and sent as a tar stream.

It holds the base commit with its history and nothing else: no remote, no hook, no credential.
"""

import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from resolver.workspace.git import HostGit

_CHUNK = 1 << 20

_CONFIG = """\
[core]
\trepositoryformatversion = {version}
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
"""
_REFS_HEADER = "# pack-refs with: peeled fully-peeled sorted \n"
_SHA256 = "[extensions]\n\tobjectformat = sha256\n"


def git_dir_tar(git: HostGit, folder: Path, base: str, branch: str) -> Iterator[bytes]:
    """Chunks of an uncompressed tar whose members are the files of a non-bare git directory.

    branch: what HEAD is on; "" for a detached HEAD.
    """
    is_sha256 = len(base) == 64
    config = _CONFIG.format(version=int(is_sha256)) + (_SHA256 if is_sha256 else "")
    head = f"ref: refs/heads/{branch}\n" if branch else f"{base}\n"
    small = {"HEAD": head, "config": config}
    if branch:
        small["packed-refs"] = f"{_REFS_HEADER}{base} refs/heads/{branch}\n"
    shallow = folder / "shallow"
    if shallow.is_file():
        small["shallow"] = shallow.read_text("ascii")
    with tempfile.TemporaryDirectory(prefix="outgoing-", dir=folder) as place:
        git.run(
            "pack-objects", "--revs", "--delta-base-offset", "--quiet", f"{place}/pack",
            stdin=f"{base}\n".encode(),
        )  # fmt: skip
        for name in ("refs/heads", "objects/info", "objects/pack"):
            yield _head(name, 0, tarfile.DIRTYPE, 0o755)
        for name, text in small.items():
            data = text.encode("utf-8", "surrogateescape")
            yield _head(name, len(data), tarfile.REGTYPE, 0o644) + data + _padding(len(data))
        for path in sorted(Path(place).iterdir()):
            yield from _file(f"objects/pack/{path.name}", path)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _file(name: str, path: Path) -> Iterator[bytes]:
    size = path.stat().st_size
    yield _head(name, size, tarfile.REGTYPE, 0o444)
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
