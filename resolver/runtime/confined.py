"""File access below a folder that a sandbox writes to, without following any link.

Each component of a path is opened relative to the folder before it (openat(2) with O_NOFOLLOW), so
replacing a component in the meantime has no effect.
"""

import contextlib
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

from resolver.errors import SandboxError

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


@contextmanager
def open_below(base: Path, path: str, flags: int) -> Iterator[int]:
    """Open the absolute `path`, which must lie below `base`, and yield its file descriptor.

    Raises SandboxError for a path elsewhere, a missing file, and a link in any component.
    """
    try:
        parts = _parts(str(PurePosixPath(path).relative_to(base)))
        with contextlib.ExitStack() as opened:
            folder = os.open(base, _FOLDER)
            opened.callback(os.close, folder)
            for name in parts[:-1]:
                folder = os.open(name, _FOLDER, dir_fd=folder)
                opened.callback(os.close, folder)
            file = os.open(parts[-1], flags | os.O_NOFOLLOW, dir_fd=folder)
            opened.callback(os.close, file)
            yield file
    except (OSError, ValueError) as error:
        raise SandboxError(
            f"{path} can't be reached in the sandbox's folder: {error}",
            "the run's event log shows what ran in the sandbox",
        ) from error


def unpack_below(tar: tarfile.TarFile, folder: int) -> None:
    """Unpack the files, folders and symbolic links of a tar into the open folder `folder`.

    Raises ValueError or OSError for other kinds of members and for names that lead elsewhere.
    """
    for member in tar:
        with contextlib.ExitStack() as opened:
            parts = _parts(member.name)
            parent = folder
            for name in parts if member.isdir() else parts[:-1]:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=parent)
                parent = os.open(name, _FOLDER, dir_fd=parent)
                opened.callback(os.close, parent)
            if member.isdir():
                continue
            with contextlib.suppress(FileNotFoundError):
                os.unlink(parts[-1], dir_fd=parent)
            content = tar.extractfile(member) if member.isreg() else None
            if content is not None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                file = os.open(parts[-1], flags, member.mode & 0o777, dir_fd=parent)
                with os.fdopen(file, "wb") as target:
                    shutil.copyfileobj(content, target)
            elif member.issym():
                os.symlink(member.linkname, parts[-1], dir_fd=parent)
            else:
                raise ValueError(f"{member.name} is neither file, folder nor symbolic link")


def remove_tree(folder: Path) -> None:
    """Remove the folder with everything in it, including folders without permissions.

    Call it only after the last process that could write there has ended.
    """
    for current, names, _ in os.walk(folder):
        for name in names:
            below = Path(current, name)
            if not below.is_symlink():
                below.chmod(0o700)
    shutil.rmtree(folder)


def _parts(path: str) -> tuple[str, ...]:
    """Return the components of a relative path without `..`. Raises ValueError for other paths."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts:
        raise ValueError(f"{path!r} is not a path below a folder")
    return parts
