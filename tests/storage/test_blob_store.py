"""Large files of runs in an S3-compatible store: stored, restored, removed, and its failures."""

import logging
import os
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import URL, func, select

from resolver.entrypoints.webhook.request_queue import RequestQueue
from resolver.entrypoints.webhook.retention import RetentionTask
from resolver.entrypoints.webhook.run_restore import restore_files
from resolver.errors import LeaseLost, LogError, UsageError
from resolver.runs.output import PATCH
from resolver.storage.blob_store import BlobStore, open_blob_store
from resolver.storage.database import (
    DatabaseError,
    ServerDatabase,
    parse_database_url,
)
from resolver.storage.run_archive import (
    CHUNKS,
    MIN_BLOB_BYTES,
    RunArchive,
    RunClaim,
)
from resolver.storage.run_store import OUTCOME
from tests.parts.s3 import BUCKET, S3Server

RUN, OTHER_RUN = "20260101-000001-abcdef", "20260301-000001-abcdef"
FIRST, SECOND = RunClaim(1, 1), RunClaim(1, 2)
LARGE, LARGER = os.urandom(MIN_BLOB_BYTES), os.urandom(MIN_BLOB_BYTES + 1)


@pytest.fixture
def address() -> str:
    """A prefix without objects."""
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@pytest.fixture
def blobs(s3: S3Server, address: str) -> BlobStore:
    return BlobStore(address, s3.environment)


@pytest.fixture
def url(tmp_path: Path) -> URL:
    return parse_database_url(f"sqlite:///{tmp_path}/resolver.db")


@pytest.fixture
def archive(url: URL, blobs: BlobStore) -> Iterator[RunArchive]:
    archive = RunArchive(url, blobs=blobs)
    archive.record_claim(RUN, FIRST)
    yield archive
    archive.close()


def count(blobs: BlobStore, run: str = RUN) -> int:
    return len(blobs.keys(run))


def chunks(url: URL) -> int:
    database = ServerDatabase(url)
    with database.reading() as connection:
        found = connection.scalar(select(func.count()).select_from(CHUNKS))
    database.close()
    return found or 0


def test_a_large_file_is_an_object_and_comes_back_on_another_machine(
    archive: RunArchive, blobs: BlobStore, url: URL, tmp_path: Path
) -> None:
    archive.put_file(RUN, FIRST, PATCH, LARGE)
    archive.put_file(RUN, FIRST, OUTCOME, b"{}")
    assert (count(blobs), chunks(url)) == (1, 1)
    other = tmp_path / "other"
    other.mkdir()
    restore_files(archive, RUN, other)
    assert (other / PATCH).read_bytes() == LARGE
    assert (other / OUTCOME).read_bytes() == b"{}"

    archive.put_file(RUN, FIRST, PATCH, b"small")
    restore_files(archive, RUN, other)
    assert (other / PATCH).read_bytes() == b"small"
    archive.put_file(RUN, FIRST, PATCH, LARGER)
    archive.remove_file(RUN, FIRST, PATCH)
    restore_files(archive, RUN, other)
    assert not (other / PATCH).exists()


def test_the_objects_of_old_runs_are_removed_with_their_rows(
    archive: RunArchive, blobs: BlobStore, url: URL, tmp_path: Path
) -> None:
    archive.record_claim(OTHER_RUN, FIRST)
    for run in (RUN, OTHER_RUN):
        archive.put_file(run, FIRST, PATCH, LARGE)
    blobs.put(f"{RUN}/without-a-row", b"left by a process that lost its claim")
    queue = RequestQueue(url)
    task = RetentionTask(ServerDatabase(url), queue, tmp_path, 30, blobs)
    task.remove_old(datetime(2026, 3, 2, tzinfo=UTC))
    queue.close()
    assert (count(blobs), count(blobs, OTHER_RUN)) == (0, 1)
    assert [len(archive.files(run)) for run in (RUN, OTHER_RUN)] == [0, 1]


def test_a_lost_claim_changes_no_object_of_the_newer_one(archive: RunArchive) -> None:
    archive.put_file(RUN, FIRST, PATCH, LARGER)
    archive.record_claim(RUN, SECOND)
    archive.put_file(RUN, SECOND, PATCH, LARGE)
    with pytest.raises(LeaseLost):
        archive.put_file(RUN, FIRST, PATCH, LARGER)
    with pytest.raises(LeaseLost):
        archive.remove_file(RUN, FIRST, PATCH)
    [file] = archive.files(RUN)
    assert archive.read_file(RUN, file) == LARGE


def test_a_file_goes_to_the_database_while_the_store_is_gone(
    archive: RunArchive, s3: S3Server, url: URL, caplog: pytest.LogCaptureFixture
) -> None:
    archive.put_file(RUN, FIRST, PATCH, LARGE)
    [in_store] = archive.files(RUN)
    with s3.stopped(), caplog.at_level(logging.WARNING):
        archive.put_file(RUN, FIRST, OUTCOME, LARGER)
        [message] = caplog.messages
        assert (
            f"{OUTCOME} of run {RUN} is stored in the database: the object store s3://" in message
        )
        assert "canary" not in message and "\n" not in message
        # A request that needs the file is repeated later, as without the database.
        with pytest.raises(DatabaseError, match="can't be used"):
            archive.read_file(RUN, in_store)
    by_name = {file.name: file for file in archive.files(RUN)}
    assert archive.read_file(RUN, by_name[OUTCOME]) == LARGER and chunks(url) == 2
    assert archive.read_file(RUN, by_name[PATCH]) == LARGE


def test_a_missing_or_another_object_is_a_damaged_file(
    archive: RunArchive, blobs: BlobStore
) -> None:
    archive.put_file(RUN, FIRST, PATCH, LARGE)
    [file] = archive.files(RUN)
    for other in (b"short", b"x" * len(LARGE)):
        blobs.put(file.blob, other)
        with pytest.raises(LogError, match="is damaged"):
            archive.read_file(RUN, file)
    blobs.remove_runs(RUN.__eq__)
    with pytest.raises(LogError, match="is damaged"):
        archive.read_file(RUN, file)


def test_a_start_checks_the_bucket_and_the_credentials(
    s3: S3Server, blobs: BlobStore, caplog: pytest.LogCaptureFixture
) -> None:
    blobs.check()
    assert blobs.keys() == [], "the check leaves nothing"
    with pytest.raises(UsageError, match="NoSuchBucket") as caught:
        BlobStore("s3://missing", s3.environment).check()
    assert caught.value.next_step == "create the bucket or correct RESOLVER_BLOB_STORE"
    stranger = s3.environment | {"AWS_ACCESS_KEY_ID": "AKIASTRANGER"}
    with pytest.raises(UsageError, match="InvalidAccessKeyId") as caught:
        BlobStore(f"s3://{BUCKET}/x", stranger).check()
    assert "AWS_ACCESS_KEY_ID" in caught.value.next_step
    assert caplog.messages == []
    with s3.stopped():
        blobs.check()
    [message] = caplog.messages
    assert message.endswith("large files stay in the database meanwhile")


@pytest.mark.parametrize("address", ["bucket", "s3://", "https://host/bucket", "s3://A b/c"])
def test_an_address_names_a_bucket(address: str) -> None:
    with pytest.raises(UsageError, match="is not the address of a bucket"):
        BlobStore(address, {})


def test_an_object_store_needs_postgresql(url: URL) -> None:
    assert open_blob_store("", url, {}) is None
    with pytest.raises(UsageError, match="needs PostgreSQL"):
        open_blob_store("s3://runs", url, {})
