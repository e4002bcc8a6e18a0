"""Tar streams in both directions: wrap a file or folder for the sandbox, take a file out of it.

A stream that comes out may have been shaped by the sandbox and is not trusted.
"""

import io
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from resolver.errors import SandboxError

_CHUNK: Final = 1024 * 1024
_BLOCK: Final = tarfile.BLOCKSIZE


def wrap_file(name: str, content: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a tar stream with one file, `name`.

    The content is written to a temporary file first, because its size precedes it in the stream.
    """
    with tempfile.TemporaryFile() as spool:
        for chunk in content:
            spool.write(chunk)
        member = tarfile.TarInfo(name)
        member.size, member.mode = spool.tell(), 0o644
        spool.seek(0)
        yield member.tobuf(tarfile.PAX_FORMAT)
        while chunk := spool.read(_CHUNK):
            yield chunk
        yield bytes(-member.size % _BLOCK + 2 * _BLOCK)


def wrap_folder(name: str) -> bytes:
    """Return a tar with one empty folder, `name`, that everybody may write to."""
    member = tarfile.TarInfo(name)
    member.type, member.mode = tarfile.DIRTYPE, 0o777
    return member.tobuf(tarfile.PAX_FORMAT) + bytes(2 * _BLOCK)


def take_file(tar: Iterator[bytes], destination: Path, max_bytes: int) -> None:
    """Write the one regular file of a tar stream to `destination`, which must not exist.

    Raises SandboxError for anything else: a link, a device, a folder, a second member, a file of
    more than `max_bytes` bytes, a stream that breaks off. In those cases no file is left at
    `destination`.
    """
    try:
        with destination.open("xb") as target:
            _copy_only_file(tar, target, max_bytes)
    except FileExistsError as error:
        raise SandboxError(f"{destination} exists already", "name another file") from error
    except (tarfile.TarError, EOFError, ValueError, OverflowError, OSError) as error:
        destination.unlink(missing_ok=True)
        raise _unexpected(f"the stream is broken: {error}") from error
    except BaseException:
        destination.unlink(missing_ok=True)
        raise


def _copy_only_file(tar: Iterator[bytes], target: IO[bytes], max_bytes: int) -> None:
    with tarfile.open(fileobj=_Reader(tar), mode="r|", bufsize=_BLOCK * 128) as archive:
        member = archive.next()
        if member is None or member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise _unexpected("it is not a regular file")
        if member.sparse is not None or member.size > max_bytes:
            raise _unexpected(f"it has {member.size:,} bytes, the limit is {max_bytes:,}")
        content = archive.extractfile(member)
        while content is not None and (chunk := content.read(_CHUNK)):
            target.write(chunk)
        if target.tell() != member.size:
            raise _unexpected("the stream broke off")
        if archive.next() is not None:
            raise _unexpected("it is more than one file")


def _unexpected(why: str) -> SandboxError:
    return SandboxError(
        f"the sandbox handed out something else than the file asked for: {why}",
        "the run's event log shows what ran in the sandbox",
    )


class _Reader(io.RawIOBase):
    """A stream of chunks as a readable file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        parts, left = [], size
        while left:
            if not self._rest:
                self._rest = next(self._chunks, b"")
                if not self._rest:
                    break
            part, self._rest = self._rest[:left], self._rest[left:]
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
