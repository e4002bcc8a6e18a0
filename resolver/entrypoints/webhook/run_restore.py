"""Brings the local folder of a run up to date from the archive, so that a run of another machine
can be continued or shown.

The archive is the truth: a local log that is the beginning of the archived one gets the missing
lines, any other one is replaced. A line that only the local log has, at its end, was being written
when the process died; it is kept as long as nobody else has continued the run.
"""

import hashlib
import logging
import os
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from resolver.entrypoints.webhook.bounded_cache import BoundedCache
from resolver.entrypoints.webhook.run_recorder import RunRecorder
from resolver.errors import LogError, ResolverError
from resolver.events.log import complete_lines
from resolver.storage.database import DatabaseError
from resolver.storage.earlier_runs import EVENTS, RESULT_FILES
from resolver.storage.run_archive import (
    ArchivedFile,
    ArchivedState,
    LogPosition,
    RunArchive,
    RunClaim,
)
from resolver.storage.run_folders import existing_run_folder
from resolver.storage.run_store import is_run_id

logger = logging.getLogger("resolver.entrypoints.webhook")

MAX_REMEMBERED_RUNS = 1000
"""Number of runs whose restored state is remembered, so that they are not compared again."""

LOCKS = 64
"""Number of locks that the runs share."""


@dataclass(frozen=True)
class _LocalLog:
    """The complete lines of a local log. size: of these lines in bytes."""

    position: LogPosition
    size: int


class ArchivedRunFolders:
    """The local folders of archived runs, below the data folder. Implements `RunFolders`.

    Thread-safe. Only one process uses the data folder.
    """

    def __init__(self, archive: RunArchive, folder: Path) -> None:
        self._archive, self._folder = archive, folder
        self._locks = tuple(threading.Lock() for _ in range(LOCKS))
        self._active: set[str] = set()
        self._restored = BoundedCache[str, tuple[ArchivedState, int]](MAX_REMEMBERED_RUNS)

    def folder_of(self, run: str) -> Path | None:
        """Implement `RunFolders.folder_of`. Errors are logged."""
        if not is_run_id(run):
            return None
        try:
            self.restore(run)
        except (ResolverError, OSError) as error:
            logger.warning("run %s is shown as this machine knows it: %s", run, error)
        return existing_run_folder(self._folder, run)

    def restore(self, run: str) -> None:
        """Bring the folder of a run up to date, unless the run is active in this process.

        Raises DatabaseError, LogError if what is stored is damaged, and OSError.
        """
        with self._lock_of(run):
            if run in self._active:
                return
            state = self._archive.state(run)
            if state is not None:
                self._restore(run, state)

    @contextmanager
    def recording(
        self, run: str, claim: RunClaim, require_valid: Callable[[], None]
    ) -> Iterator[RunRecorder]:
        """Take over the run, bring its folder up to date, and archive what is written into it until
        the end of the block.

        require_valid: raises LeaseLost once this process may not write any more. Raises LeaseLost
        if there is a newer claim, and what `restore` raises. DatabaseError, after which the request
        is repeated, is raised as well while an earlier claim of this process has not ended.
        """
        with self._lock_of(run):
            state = self._archive.record_claim(run, claim)
            if run in self._active:
                # That claim is revoked now, but until its thread ends it owns the folder.
                raise DatabaseError(f"an earlier attempt of run {run} has not ended yet")
            self._restore(run, state)
            self._active.add(run)
        try:
            folder = self._folder / run
            recorder = RunRecorder(self._archive, run, claim, state, folder, require_valid)
            try:
                yield recorder
            finally:
                recorder.try_to_save_files()
        finally:
            self._restored.pop(run)
            self._active.discard(run)

    def _lock_of(self, run: str) -> threading.Lock:
        """Return the lock of one run. A few runs share it."""
        return self._locks[zlib.crc32(run.encode()) % LOCKS]

    def _restore(self, run: str, state: ArchivedState) -> None:
        folder = self._folder / run
        log_size, known = _size_of(folder / EVENTS), self._restored.get(run)
        if known == (state, log_size):
            return
        if state.log.events or state.changes:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        restore_log(self._archive, run, state.log, folder)
        if state.changes and (known is None or known[0].changes != state.changes):
            restore_files(self._archive, run, folder)
        self._restored.put(run, (state, _size_of(folder / EVENTS)))


def restore_log(archive: RunArchive, run: str, stored: LogPosition, folder: Path) -> None:
    """Make the log in the folder equal to the archived one, or a continuation of it.

    Raises LogError if the archived log is damaged.
    """
    path = folder / EVENTS
    local = _read_local_log(path, stored.events)
    if local.position == stored:
        return
    start = local.position.events
    missing = list(archive.lines(run, start, stored.events))
    if local.position.after(missing) == stored:
        _append_lines(path, local.size, missing)
        return
    lines = list(archive.lines(run, 0, stored.events)) if start else missing
    if LogPosition().after(lines) != stored:
        raise LogError(
            f"the stored log of run {run} is damaged or is being replaced",
            "try again; if that does not help, start a new run",
        )
    _replace_file(folder, EVENTS, b"".join(line + b"\n" for line in lines))


def restore_files(archive: RunArchive, run: str, folder: Path) -> None:
    """Make the files in the folder equal to the archived ones.

    Names that are no files of a run are skipped, so that a row of the database can't make this
    write anywhere else. Raises LogError if a file is damaged.
    """
    stored = {file.name: file for file in archive.files(run)}
    for name in stored.keys() - set(RESULT_FILES):
        logger.warning("a stored file of run %s has the unknown name %.100r", run, name)
    for name in RESULT_FILES:
        file = stored.get(name)
        if file is None:
            (folder / name).unlink(missing_ok=True)
        elif not _has_content(folder / name, file):
            _replace_file(folder, name, archive.read_file(run, file))


def _read_local_log(path: Path, limit: int) -> _LocalLog:
    """Return the first complete lines of the log, at most `limit`."""
    position, size = LogPosition(), 0
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return _LocalLog(position, size)
    with open(descriptor, "rb") as file:
        try:
            for line in complete_lines(path, file):
                if position.events == limit:
                    break
                position, size = position.after([line[:-1]]), size + len(line)
        except LogError:
            return _LocalLog(LogPosition(), 0)  # it can't be a log that Resolver has written
    return _LocalLog(position, size)


def _append_lines(path: Path, size: int, lines: Iterable[bytes]) -> None:
    """Write the lines after the first `size` bytes of the file."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.truncate(size)
        file.seek(size)
        for line in lines:
            file.write(line + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _replace_file(folder: Path, name: str, data: bytes) -> None:
    """Write a file by renaming a complete one, so that a crash leaves the old or the new one."""
    temporary = folder / f".{name}.restored"
    temporary.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with open(os.open(temporary, flags, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / name)


def _has_content(path: Path, file: ArchivedFile) -> bool:
    """Return True if the local file is a regular one with the content of the archived one."""
    if _size_of(path) != file.size:
        return False
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as local:
            return hashlib.file_digest(local, "sha256").hexdigest() == file.digest
    except OSError:
        return False


def _size_of(path: Path) -> int:
    """Return the size of a file in bytes; -1 if there is none."""
    try:
        return path.lstat().st_size
    except OSError:
        return -1
