"""Copies what an active run writes into the archive: each line of its log at once, its files after
each stage."""

import hashlib
import logging
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from pydantic_core import from_json

from resolver.errors import LogError, ResolverError
from resolver.runs.stages import StageValues
from resolver.storage.database import DatabaseError
from resolver.storage.earlier_runs import RESULT_FILES
from resolver.storage.event_table import PAGE_ROWS
from resolver.storage.run_archive import (
    MAX_ARCHIVED_BYTES,
    ArchivedState,
    LogLine,
    LogPosition,
    RunArchive,
    RunClaim,
)

logger = logging.getLogger("resolver.entrypoints.webhook")

RETRY_SECONDS = 60.0
"""Time in seconds for which a write is repeated while the database can't be used. It is longer than
a lease, so a process that is cut off from the database loses its runs instead of failing them."""

RETRY_INTERVAL_SECONDS = 1.0

MAX_BATCH_BYTES = 1_000_000
"""Size in bytes from which lines that are archived together are written."""

_Stored = TypeVar("_Stored")


class RunRecorder:
    """Archives one run of this process. Implements `LogCopy`.

    archive, run, claim: where and with which right it writes. stored: the state that
    `RunArchive.record_claim` returned. folder: of the run. require_valid: raises LeaseLost once
    this process may not write any more. wait, clock: for retries, in seconds.
    """

    def __init__(
        self,
        archive: RunArchive,
        run: str,
        claim: RunClaim,
        stored: ArchivedState,
        folder: Path,
        require_valid: Callable[[], None] = lambda: None,
        wait: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._archive, self._run, self._claim = archive, run, claim
        self._position, self._folder = stored.log, folder
        self._require_valid, self._wait, self._clock = require_valid, wait, clock
        self._digests = {file.name: file.digest for file in archive.files(run)}
        self._stamps: dict[str, tuple[int, int, int]] = {}

    def open(self, lines: Iterable[bytes]) -> None:
        """Implement `LogCopy.open`.

        Only the lines that the archive does not have are written. If the log is not a continuation
        of the archived one, because it was started over, that one is replaced. The files are
        written first: without its request, a log can't be continued.
        """
        self.save_files()
        texts = [line.removesuffix(b"\n") for line in lines]
        stored = self._position
        if LogPosition().after(texts[: stored.events]) != stored:
            self._persist(lambda: self._archive.clear_log(self._run, self._claim))
            self._position = stored = LogPosition()
        for batch in _batches(texts[stored.events :]):
            self._append(batch)

    def append(self, number: int, kind: str, line: str) -> None:
        """Implement `LogCopy.append`."""
        if number != self._position.events:
            raise LogError(f"event {number} can't be archived after {self._position.events} events")
        self._append([LogLine(kind, line)])

    def _append(self, lines: list[LogLine]) -> None:
        position = self._position
        self._position = self._persist(
            lambda: self._archive.append(self._run, self._claim, position, lines)
        )

    def save_files(self) -> None:
        """Archive the files of the run that have changed, and remove those that are gone.

        Raises LeaseLost, and LogError if the database can't be used.
        """
        for name in RESULT_FILES:
            self._save_file(name)

    def try_to_save_files(self) -> None:
        """Call `save_files`, and log its errors."""
        try:
            self.save_files()
        except ResolverError as error:
            logger.error("the files of run %s are not archived: %s", self._run, error.what)

    def observe_stage(self, values: StageValues) -> None:  # noqa: ARG002 - see `RunRequest.observe`
        """Archive the files after a stage of the run. See `RunRequest.observe`."""
        self.try_to_save_files()

    def _save_file(self, name: str) -> None:
        data, stamp = self._read_changed(name)
        if stamp is None:
            if name in self._digests:
                self._persist(lambda: self._archive.remove_file(self._run, self._claim, name))
                del self._digests[name]
        elif data is not None:
            digest = hashlib.sha256(data).hexdigest()
            if self._digests.get(name) != digest:
                self._persist(lambda: self._archive.put_file(self._run, self._claim, name, data))
                self._digests[name] = digest
        if stamp is not None:
            self._stamps[name] = stamp

    def _read_changed(self, name: str) -> tuple[bytes | None, tuple[int, int, int] | None]:
        """Return the content of the file, None if it is unchanged, and its stamp, None if there is
        no such file or it is too large."""
        try:
            descriptor = os.open(self._folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None, None
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return None, None
            stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
            if self._stamps.get(name) == stamp:
                return None, stamp
            if status.st_size > MAX_ARCHIVED_BYTES:
                logger.warning("%s of run %s is too large to be archived", name, self._run)
                return None, None
            return file.read(), stamp

    def _persist(self, write: Callable[[], _Stored]) -> _Stored:
        """Write, again and again while the database can't be used and the lease is valid.

        Raises LogError when the time for that is over.
        """
        deadline = self._clock() + RETRY_SECONDS
        while True:
            self._require_valid()
            try:
                return write()
            except DatabaseError as error:
                if self._clock() >= deadline:
                    raise LogError(error.what, error.next_step, error.cause) from error
                logger.warning("run %s waits for the database: %s", self._run, error.what)
                self._wait(RETRY_INTERVAL_SECONDS)


def _batches(texts: Iterable[bytes]) -> Iterator[list[LogLine]]:
    """Yield the lines in batches of limited number and size."""
    batch: list[LogLine] = []
    size = 0
    for text in texts:
        batch.append(LogLine(str(from_json(text)["kind"]), text.decode()))
        size += len(text)
        if len(batch) >= PAGE_ROWS or size >= MAX_BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
