"""Stores the logs and files of a server's runs as objects in a folder or an S3-compatible bucket,
so that any machine can show a run and continue it.

    RUN/log/NUMBER-FIRST     lines of the log, from the event with the id FIRST on
    RUN/files/NUMBER/NAME    a file of the run, as the writer that began with object NUMBER left it

An object of a log is written on condition that there is none of its number. A writer begins with an
object that holds no event, so an earlier writer of the run, such as a machine that was suspended,
finds the next number taken and can't write any more, whatever it believes of itself (fencing, see
https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html). Of a file, the one of
the latest writer counts.
"""

import hashlib
import logging
import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import LocalStore, S3Store

from resolver.config.retries import RetryPolicy
from resolver.errors import LeaseLost, LogError, ResolverError, UsageError
from resolver.events.log import Event, check_lines
from resolver.github.events.quota_ledger import RUN_ID
from resolver.storage.database import DatabaseError
from resolver.storage.earlier_runs import EVENTS, OUTCOME, RESULT_FILES, EarlierRun

if TYPE_CHECKING:
    from obstore.store import ObjectStore

logger = logging.getLogger("resolver.storage")

REQUEST_SECONDS = 60
"""Time limit in seconds of one request to a bucket."""

CONNECT_SECONDS = 5

REQUEST_RETRY_TIME = timedelta(seconds=10)
"""How long a request is repeated while the bucket does not answer."""

WRITE_RETRIES = RetryPolicy(seconds=60.0, max_wait_seconds=5.0)
"""How long a write is repeated while the store can't be used. It is longer than a lease, so a
process that is cut off from everything loses its runs instead of failing them."""

MAX_FILE_BYTES = 100_000_000
"""Maximum size in bytes of a file that is stored."""

PARALLEL_READS = 16
"""Number of objects that are read at once."""

READ_AHEAD = 256
"""Number of objects of a log that are in memory while it is read."""

VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
)
"""Environment variables with the address and the credentials of a bucket. The client library reads
those of roles from the environment of the process itself."""

_RUN = re.compile(RUN_ID)
_BUCKET = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(?P<prefix>.*))?")
_SEGMENT = re.compile(r".*/(?P<number>\d{8})-(?P<first>\d{8})")
_CODE = re.compile(r"<Code>(\w+)</Code>")

_Stored = TypeVar("_Stored")


class RunStoreError(DatabaseError):
    """The store can't be reached or refuses a request."""


def is_run_id(text: str) -> bool:
    """Return True if the text has the form of a run's id."""
    return _RUN.fullmatch(text) is not None


@dataclass(frozen=True)
class _Segment:
    """An object of a log. first: id of the first event in it, or after it if it holds none."""

    key: str
    number: int
    first: int


class RunStore:
    """The logs and files of runs. Thread-safe.

    objects: where they are. address: names it in errors. folder: that of `objects` if it is one of
    this machine. Methods accept any text as the id of a run, and raise RunStoreError if the store
    can't be used. No error contains a credential.
    """

    def __init__(
        self, objects: "ObjectStore", address: str = "memory:", folder: Path | None = None
    ) -> None:
        self._objects, self.address, self._folder = objects, address, folder

    def events(self, run: str, after: int = -1) -> Iterator[Event]:
        """Yield the events of a run with an id above `after`; none if there is no such run.

        Raises LogError if the log is damaged.
        """
        return check_lines(f"{self.address}/{run}", "event", self.lines(run, after), after + 1)

    def lines(self, run: str, after: int = -1) -> Iterator[bytes]:
        """Yield the lines of the events with an id above `after`, with their newlines."""
        segments, start = self._segments(run), after + 1
        position = max((i for i, s in enumerate(segments) if s.first <= start), default=0)
        next_id = segments[position].first if segments else 0
        for data in self._read_all([segment.key for segment in segments[position:]]):
            for line in _lines_of(data):
                if next_id >= start:
                    yield line
                next_id += 1

    def files(self, run: str) -> frozenset[str]:
        """Return the names of the run's files, without its log. `OUTCOME` is among them if the run
        is over; the log is complete then."""
        return frozenset(self._file_keys(run))

    def file(self, run: str, name: str) -> bytes | None:
        """Return a file of the run; None if there is none, or if it is empty or too large."""
        key = self._file_keys(run).get(name)
        return self._read(key) if key is not None else None

    def exists(self, run: str) -> bool:
        """Return True if anything of the run is stored."""
        return bool(self._segments(run))

    def fetch(self, run: str, folder: Path) -> EarlierRun:
        """Write the log and the files of the run into an empty folder."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if lines := list(self.lines(run)):
            (folder / EVENTS).write_bytes(b"".join(lines))
        for name, key in self._file_keys(run).items():
            (folder / name).write_bytes(self._read(key) or b"")
        return EarlierRun(run, folder / EVENTS, folder / OUTCOME)

    def open_writer(
        self,
        run: str,
        folder: Path,
        require_valid: Callable[[], None] = lambda: None,
        retries: RetryPolicy = WRITE_RETRIES,
    ) -> "RunWriter":
        """Take over the run and fetch it into an empty folder. Earlier writers can't write any
        more.

        require_valid: raises LeaseLost once this process may not write any more.
        """
        while True:
            segments = self._segments(run)
            last = segments[-1] if segments else _Segment("", -1, 0)
            first = last.first + len(_lines_of(self._read(last.key) or b"")) if segments else 0
            # Unique, so that nobody takes the object of another writer for its own.
            beginning = f"# {uuid.uuid4()}\n".encode()
            if self.create(run, last.number + 1, first, beginning):
                break
        self.fetch(run, folder)
        return RunWriter(self, run, last.number + 1, folder, require_valid, retries)

    def create(self, run: str, number: int, first: int, data: bytes) -> bool:
        """Store an object of a log durably. Return False if there is another one of its number."""
        key = f"{run}/log/{number:08d}-{first:08d}"
        with self._translating_errors():
            try:
                self._objects.put(key, data, mode="create", use_multipart=False)
            except AlreadyExistsError:
                # A request whose answer was lost is repeated, and finds its own object.
                return self._read(key) == data
        self._sync(key)
        return True

    def put_file(self, run: str, writer: int, name: str, data: bytes) -> None:
        """Store a file of the run durably. writer: number of its first object. No data removes the
        file."""
        key = f"{run}/files/{writer:08d}/{name}"
        with self._translating_errors():
            # The parts of an interrupted multipart upload would stay in the bucket, unseen.
            self._objects.put(key, data, use_multipart=False)
        self._sync(key)

    def remove(self, is_removed: Callable[[str], bool]) -> int:
        """Remove the runs whose ids satisfy `is_removed`, and return their number."""
        with self._translating_errors():
            runs = self._objects.list_with_delimiter()["common_prefixes"]
            removed = [run for run in runs if is_run_id(run) and is_removed(run)]
            for run in removed:
                self._objects.delete([entry["path"] for entry in self._list(run)])
        return len(removed)

    def check(self) -> None:
        """Write, list, read and remove an object. Raises UsageError if that is not possible."""
        run = f"00000000-000000-{uuid.uuid4().hex[:6]}"
        try:
            self.put_file(run, 0, OUTCOME, b"resolver")
            self.file(run, OUTCOME)
            self.remove(run.__eq__)
        except RunStoreError as error:
            raise UsageError(error.what, error.next_step) from error

    def _segments(self, run: str) -> list[_Segment]:
        """Return the objects of the run's log in their order. A log that was started over begins
        with the last one that can hold the first event."""
        matches = (_SEGMENT.fullmatch(entry["path"]) for entry in self._list(run, "log"))
        segments = (_Segment(m[0], int(m["number"]), int(m["first"])) for m in matches if m)
        found = sorted(segments, key=lambda segment: segment.number)
        beginning = max((i for i, segment in enumerate(found) if not segment.first), default=0)
        return found[beginning:]

    def _file_keys(self, run: str) -> dict[str, str]:
        """Return the objects of the run's files. A name that is not one of a file of a run is left
        out, so that no object makes `fetch` write anything else."""
        entries = sorted(self._list(run, "files"), key=lambda entry: entry["path"])
        latest = {entry["path"].rpartition("/")[2]: entry for entry in entries}
        return {
            name: latest[name]["path"]
            for name in RESULT_FILES
            if name in latest and 0 < latest[name]["size"] <= MAX_FILE_BYTES
        }

    def _list(self, run: str, part: str = "") -> list[Any]:
        if not is_run_id(run):
            return []
        with self._translating_errors():
            return [entry for page in self._objects.list(f"{run}/{part}") for entry in page]

    def _read_all(self, keys: Sequence[str]) -> Iterator[bytes]:
        with ThreadPoolExecutor(PARALLEL_READS) as pool:
            for start in range(0, len(keys), READ_AHEAD):
                for data in pool.map(self._read, keys[start : start + READ_AHEAD]):
                    yield data or b""

    def _read(self, key: str) -> bytes | None:
        with self._translating_errors():
            try:
                return bytes(self._objects.get(key).bytes())
            except FileNotFoundError:
                return None

    def _sync(self, key: str) -> None:
        """Write an object of a folder to the disk, which the client library does not do."""
        if self._folder is None:
            return
        path = self._folder / key
        is_appended = path.parent.name == "log" and not path.name.endswith(f"-{0:08d}")
        with self._translating_errors():
            for changed in (path, path.parent, *(() if is_appended else path.parents[1:3])):
                descriptor = os.open(changed, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            raise _store_error(self.address, str(error)) from error


class RunWriter:
    """Stores what a run of this process writes: each line of its log at once, its files when
    `save_files` is called. Made by `RunStore.open_writer`. Implements `LogCopy`.

    number: of its first object. folder: of the run, as it was fetched.
    """

    def __init__(
        self,
        store: RunStore,
        run: str,
        number: int,
        folder: Path,
        require_valid: Callable[[], None],
        retries: RetryPolicy,
    ) -> None:
        self._store, self._run, self._number, self._folder = store, run, number, folder
        self._require_valid, self._retries = require_valid, retries
        self._next_number, self._count = number + 1, 0
        self._digest = hashlib.sha256()
        log = folder / EVENTS
        self._record(log.read_bytes().splitlines(keepends=True) if log.exists() else [])
        self._saved = {name: hash(self._content(name)) for name in RESULT_FILES}

    def open(self, lines: Iterable[bytes]) -> None:
        """Implement `LogCopy.open`.

        Only what the store does not have is written. A log that is no continuation of the stored
        one, because it was started over, replaces it. The files are written first: without its
        request, a log can't be continued.
        """
        self.save_files()
        texts = list(lines)
        if hashlib.sha256(b"".join(texts[: self._count])).digest() != self._digest.digest():
            self._count, self._digest = 0, hashlib.sha256()
        if new := texts[self._count :]:
            self._append(new)

    def append(self, number: int, line: bytes) -> None:
        """Implement `LogCopy.append`."""
        if number != self._count:
            raise LogError(f"event {number} can't be stored after {self._count} events")
        self._append([line])

    def save_files(self) -> None:
        """Store the files of the run that have changed, and remove those that are gone.

        Raises LeaseLost, and LogError if the store can't be used.
        """
        for name in RESULT_FILES:
            data = self._content(name)
            if hash(data) != self._saved[name]:
                self._persist(partial(self._store.put_file, self._run, self._number, name, data))
                self._saved[name] = hash(data)

    def try_to_save_files(self) -> None:
        """Call `save_files`, and log its errors."""
        try:
            self.save_files()
        except ResolverError as error:
            logger.error("the files of run %s are not stored: %s", self._run, error.what)

    def _append(self, lines: list[bytes]) -> None:
        data = b"".join(lines)
        create = partial(self._store.create, self._run, self._next_number, self._count, data)
        if not self._persist(create):
            raise LeaseLost(f"another process has taken over run {self._run}")
        self._next_number += 1
        self._record(lines)

    def _record(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self._count += 1
            self._digest.update(line)

    def _content(self, name: str) -> bytes:
        """Return a file of the run; nothing if there is none that can be stored."""
        path = self._folder / name
        if path.is_symlink() or not path.is_file():
            return b""
        if path.stat().st_size > MAX_FILE_BYTES:
            logger.warning("%s of run %s is too large to be stored", name, self._run)
            return b""
        return path.read_bytes()

    def _persist(self, write: Callable[[], _Stored]) -> _Stored:
        """Write, again and again while the store can't be used and this process may write."""

        def attempt() -> _Stored:
            self._require_valid()
            return write()

        try:
            return self._retries.call(
                attempt, lambda error: 0.0 if isinstance(error, RunStoreError) else None
            )
        except RunStoreError as error:
            raise LogError(error.what, error.next_step, error.cause) from error


def open_run_store(address: str | None, folder: Path, environment: Mapping[str, str]) -> RunStore:
    """Return the store of a server.

    address: a folder, or `s3://BUCKET/PREFIX`; None for `folder`. environment: has `VARIABLES`.
    Raises UsageError.
    """
    if address and (":/" in address or address.startswith("s3:")):
        return RunStore(_open_bucket(address, environment), address)
    folder = Path(address or folder).absolute()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _usage_error(f"the folder {folder} can't be written: {error.strerror}") from error
    return RunStore(LocalStore(folder, automatic_cleanup=True), str(folder), folder)


def _open_bucket(address: str, environment: Mapping[str, str]) -> S3Store:
    matched = _BUCKET.fullmatch(address)
    if matched is None:
        raise _usage_error(f"{address!r} is not the address of a bucket")
    config: Any = {name.lower(): environment[name] for name in VARIABLES if environment.get(name)}
    endpoint = config.get("aws_endpoint_url_s3") or config.get("aws_endpoint_url") or ""
    return S3Store(
        matched["bucket"],
        prefix=(matched["prefix"] or "").strip("/") or None,
        config=config,
        client_options={
            "timeout": timedelta(seconds=REQUEST_SECONDS),
            "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
            "allow_http": endpoint.startswith("http://"),
        },
        retry_config={"max_retries": 3, "retry_timeout": REQUEST_RETRY_TIME},
    )


def _lines_of(data: bytes) -> list[bytes]:
    """Return the lines of events in an object of a log, with their newlines."""
    return [line + b"\n" for line in data.split(b"\n") if line.startswith(b"{")]


def _usage_error(what: str) -> UsageError:
    return UsageError(what, "set RESOLVER_RUN_STORE to a folder, s3://BUCKET or s3://BUCKET/PREFIX")


def _store_error(address: str, text: str) -> RunStoreError:
    """Return the error for the library's message, whose later lines have details of a request."""
    code = _CODE.search(text)
    reason = code[1] if code else (text.splitlines() or ["no reason is given"])[0]
    return RunStoreError(
        f"the store of runs {address} can't be used: {reason}",
        "check RESOLVER_RUN_STORE, the room on its disk, and for a bucket AWS_ENDPOINT_URL, the "
        "credentials, and that they may get, put, list and delete objects",
    )
