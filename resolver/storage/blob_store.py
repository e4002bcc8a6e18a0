"""Stores large files of runs as objects in an S3-compatible store.

The key of an object is the id of its run and the digest of its content, so no object is ever
replaced by another one, whoever writes it: a process that has lost its claim can at most leave an
object that no row of the database names. Objects are removed together with their run.
"""

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from sqlalchemy import URL

from resolver.errors import UsageError
from resolver.storage.database import DatabaseError

logger = logging.getLogger("resolver.storage")

REQUEST_SECONDS = 60
"""Time limit in seconds of one request."""

RETRY_TIME = timedelta(seconds=10)
"""How long a request is repeated while the store does not answer."""

MAX_RETRIES = 3

PAGE_OBJECTS = 1000
"""Number of objects that are listed or removed by one request."""

VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
)
"""Environment variables with the address and the credentials of the store. The client library reads
those of roles from the environment of the process itself."""

_ADDRESS = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(?P<prefix>.*))?")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]+)</Message>")
_STATUS = re.compile(r"status code: (\d{3})")
_REFUSALS = frozenset({"NoSuchBucket", "AccessDenied", "InvalidAccessKeyId", "InvalidBucketName"})
_DENIED = frozenset({"401", "403"})

PROBE = "probe/resolver"
"""Key of the object that `BlobStore.check` writes."""


class BlobStoreError(DatabaseError):
    """The object store can't be reached or refuses a request.

    code: of the store's answer, "" without one. is_refusal: True if the request would be refused
    again: the bucket or the permission is missing.
    """

    def __init__(self, address: str, reason: str, code: str = "", is_refusal: bool = False) -> None:
        next_step = (
            "create the bucket or correct RESOLVER_BLOB_STORE"
            if code == "NoSuchBucket"
            else "check RESOLVER_BLOB_STORE, AWS_ENDPOINT_URL, the credentials (AWS_ACCESS_KEY_ID, "
            "...) and that they may get, put, list and delete objects"
        )
        super().__init__(f"the object store {address} can't be used: {reason}", next_step)
        self.code, self.is_refusal = code, is_refusal


class BlobStore:
    """The objects below one prefix of a bucket. Thread-safe.

    address: `s3://BUCKET/PREFIX`. environment: has `VARIABLES`. Raises UsageError if the address
    can't be read. Methods raise BlobStoreError. No error contains a credential.
    """

    def __init__(self, address: str, environment: Mapping[str, str]) -> None:
        matched = _ADDRESS.fullmatch(address)
        if matched is None:
            raise UsageError(
                f"{address!r} is not the address of a bucket",
                "set RESOLVER_BLOB_STORE to s3://BUCKET or s3://BUCKET/PREFIX",
            )
        self.address = address
        config: Any = {name.lower(): environment.get(name) for name in VARIABLES}
        endpoint = config["aws_endpoint_url_s3"] or config["aws_endpoint_url"] or ""
        # The library is a large binary, which only servers with an object store need.
        from obstore.exceptions import BaseError
        from obstore.store import S3Store

        # A missing object or bucket is a FileNotFoundError.
        self._errors = (BaseError, OSError)
        self._store = S3Store(
            matched["bucket"],
            prefix=(matched["prefix"] or "").strip("/") or None,
            config={name: value for name, value in config.items() if value},  # type: ignore[arg-type]
            client_options={
                "timeout": timedelta(seconds=REQUEST_SECONDS),
                "connect_timeout": timedelta(seconds=5),
                "allow_http": endpoint.startswith("http://"),
            },
            retry_config={"max_retries": MAX_RETRIES, "retry_timeout": RETRY_TIME},
        )

    def check(self) -> None:
        """Write, read, list and remove an object. An unavailable store is logged.

        Raises UsageError if the bucket does not exist or the credentials don't suffice.
        """
        try:
            self.put(PROBE, b"resolver")
            self.get(PROBE)
            self._remove(self.keys(PROBE.partition("/")[0]))
        except BlobStoreError as error:
            if error.is_refusal:
                raise UsageError(error.what, error.next_step) from error
            logger.error("%s; large files stay in the database meanwhile", error.what)

    def put(self, key: str, data: bytes) -> None:
        """Store an object, in one step: nobody ever sees a part of it."""
        with self._translating_errors():
            # The parts of an interrupted multipart upload would stay in the bucket, unseen.
            self._store.put(key, data, use_multipart=False)

    def get(self, key: str, size: int | None = None) -> bytes | None:
        """Return an object; None if there is none, or if it has another size than `size`."""
        try:
            with self._translating_errors():
                result = self._store.get(key)
                is_as_expected = size is None or result.meta["size"] == size
                return bytes(result.bytes()) if is_as_expected else None
        except BlobStoreError as error:
            if error.code == "NoSuchKey":
                return None
            raise

    def remove_runs(self, is_removed: Callable[[str], bool]) -> None:
        """Remove the objects of the runs whose ids satisfy `is_removed`."""
        self._remove([key for key in self.keys() if is_removed(key.partition("/")[0])])

    def keys(self, run: str | None = None) -> list[str]:
        """Return the keys of all objects, or of those of one run."""
        with self._translating_errors():
            pages = self._store.list(run, chunk_size=PAGE_OBJECTS)
            return [entry["path"] for page in pages for entry in page]

    def _remove(self, keys: Sequence[str]) -> None:
        with self._translating_errors():
            for start in range(0, len(keys), PAGE_OBJECTS):
                self._store.delete(keys[start : start + PAGE_OBJECTS])

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        """Turn errors of the client library into BlobStoreError."""
        try:
            yield
        except self._errors as error:
            raise _store_error(self.address, str(error)) from error


def open_blob_store(
    address: str, database: URL, environment: Mapping[str, str]
) -> BlobStore | None:
    """Return the object store of a server; None if `address` is empty.

    Raises UsageError if the address can't be read or the database is SQLite.
    """
    if not address:
        return None
    if database.get_backend_name() == "sqlite":
        raise UsageError(
            "an object store needs PostgreSQL: with SQLite the files are in RESOLVER_DATA_DIR",
            "remove RESOLVER_BLOB_STORE, or set RESOLVER_DATABASE_URL=postgresql://HOST/NAME",
        )
    return BlobStore(address, environment)


def blob_key(run: str, digest: str) -> str:
    """Return the key of a file of a run. digest: SHA-256 of the content."""
    return f"{run}/{digest}"


def _store_error(address: str, text: str) -> BlobStoreError:
    """Return the error for the library's message, which contains the answer of the store."""
    found = [pattern.search(text) for pattern in (_CODE, _MESSAGE, _STATUS)]
    code, message, status = (match[1] if match else "" for match in found)
    first_line = (text.strip().splitlines() or ["no reason is given"])[0]
    reason = f"{code}: {message}" if code and message else first_line
    return BlobStoreError(address, reason, code, is_refusal=code in _REFUSALS or status in _DENIED)
