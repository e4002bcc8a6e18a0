"""The store of runs: what comes back, who may write, and what a damaged or missing store does."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from resolver.config.retries import RetryPolicy
from resolver.errors import LeaseLost, LogError, UsageError
from resolver.storage.earlier_runs import BUNDLE, EVENTS, OUTCOME, PATCH, REQUEST
from resolver.storage.run_store import (
    MAX_FILE_BYTES,
    RunStore,
    RunStoreError,
    RunWriter,
    open_run_store,
)
from tests.parts.clock import PassingTime
from tests.parts.s3 import BUCKET, S3Server

RUN, OTHER_RUN = "20260101-000001-abcdef", "20260301-000001-abcdef"
ONCE = RetryPolicy(seconds=0)


def thought(id: int, text: str = "") -> bytes:
    event = {"kind": "think", "id": id, "timestamp": "2026-01-01T00:00:00Z", "content": text}
    return json.dumps(event).encode() + b"\n"


LINES = [thought(id) for id in range(10)]


@pytest.fixture(params=["memory", "folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> RunStore:
    """An empty store of each kind."""
    match request.param:
        case "memory":
            return RunStore(MemoryStore())
        case "folder":
            return open_run_store(None, tmp_path / "runs", {})
        case _:
            s3: S3Server = request.getfixturevalue("s3")
            return open_run_store(f"s3://{BUCKET}/{uuid.uuid4()}", tmp_path, s3.environment)


class Machine:
    """A machine that writes runs in folders of its own."""

    def __init__(self, store: RunStore, folder: Path) -> None:
        self.store, self.folder, self.attempts = store, folder, 0

    def take_over(self, run: str = RUN) -> tuple[RunWriter, Path]:
        self.attempts += 1
        folder = self.folder / f"{run}-{self.attempts}"
        return self.store.open_writer(run, folder, retries=ONCE), folder


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def append(writer: RunWriter, *ids: int) -> None:
    for id in ids:
        writer.append(id, LINES[id])


def test_another_machine_gets_the_log_and_the_files(store: RunStore, tmp_path: Path) -> None:
    first, second = Machine(store, tmp_path / "a"), Machine(store, tmp_path / "b")
    writer, folder = first.take_over()
    assert content(folder) == {} and store.files(RUN) == frozenset()
    writer.open(LINES[:3])
    append(writer, 3, 4)
    for name, text in {REQUEST: "{}", PATCH: "+1\n", BUNDLE: "x", "notes.txt": "local"}.items():
        (folder / name).write_text(text)
    writer.save_files()
    (folder / PATCH).write_text("+2\n")
    (folder / BUNDLE).unlink()
    writer.save_files()

    writer, folder = second.take_over()
    expected = {EVENTS: b"".join(LINES[:5]), REQUEST: b"{}", PATCH: b"+2\n"}
    assert content(folder) == expected
    writer.open(LINES[:5])
    append(writer, 5)
    (folder / OUTCOME).write_text("{}")
    (folder / PATCH).unlink()
    writer.save_files()
    assert store.files(RUN) == {REQUEST, OUTCOME}
    assert (store.file(RUN, REQUEST), store.file(RUN, PATCH)) == (b"{}", None)
    assert content(first.take_over()[1]).keys() == {EVENTS, REQUEST, OUTCOME}


def test_a_reader_follows_a_log_by_the_id_of_its_last_event(
    store: RunStore, tmp_path: Path
) -> None:
    writer, _ = Machine(store, tmp_path).take_over()
    assert store.exists(RUN) and list(store.events(RUN)) == []
    writer.open(LINES[:4])
    append(writer, 4, 5, 6)
    for after in range(-1, 8):
        expected = list(range(after + 1, 7))
        assert [event.id for event in store.events(RUN, after)] == expected
    Machine(store, tmp_path / "other").take_over()
    assert list(store.events(RUN, 6)) == []


def test_a_writer_that_was_taken_over_can_not_write_its_log_any_more(
    store: RunStore, tmp_path: Path
) -> None:
    first, second = Machine(store, tmp_path / "a"), Machine(store, tmp_path / "b")
    writer, folder = first.take_over()
    append(writer, 0)
    newer, newer_folder = second.take_over()
    with pytest.raises(LeaseLost) as lost:
        append(writer, 1)
    assert lost.value.is_silent
    (newer_folder / OUTCOME).write_text("newer")
    newer.save_files()
    (folder / OUTCOME).write_text("older")
    writer.save_files()
    append(newer, 1)
    assert [event.id for event in store.events(RUN)] == [0, 1]
    assert store.file(RUN, OUTCOME) == b"newer"


def test_a_log_that_starts_over_replaces_the_stored_one(store: RunStore, tmp_path: Path) -> None:
    machine = Machine(store, tmp_path)
    writer, _ = machine.take_over()
    writer.open(LINES[:3])
    writer, _ = machine.take_over()
    writer.open([thought(0, "anew")])
    append(writer, 1)
    assert list(store.lines(RUN)) == [thought(0, "anew"), LINES[1]]
    writer, folder = machine.take_over()
    assert (folder / EVENTS).read_bytes() == thought(0, "anew") + LINES[1]
    append(writer, 2)
    assert len(list(store.events(RUN))) == 3


@pytest.mark.parametrize("run", ["../x", "", "x", f"{RUN}/..", f"{RUN}\n", "/etc", "0" * 1000])
def test_untrusted_text_is_no_run(run: str, store: RunStore) -> None:
    assert not store.exists(run) and list(store.events(run)) == []
    assert store.file(run, "passwd") is None and store.files(run) == frozenset()


HOSTILE_NAMES = ("escaped", EVENTS, ".ssh", "a/b", "id_rsa")


def test_an_object_makes_a_machine_write_nothing_else(tmp_path: Path) -> None:
    objects = MemoryStore()
    store = RunStore(objects)
    for name in HOSTILE_NAMES:
        objects.put(f"{RUN}/files/00000000/{name}", b"hostile")
        objects.put(f"{RUN}/log/{name}", b"hostile")
    objects.put(f"{RUN}/files/00000000/{PATCH}", b"+1\n")
    assert content(Machine(store, tmp_path).take_over()[1]) == {PATCH: b"+1\n"}


def test_a_file_that_is_too_large_or_a_link_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = RunStore(MemoryStore())
    writer, folder = Machine(store, tmp_path).take_over()
    with open(folder / PATCH, "wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    (folder / BUNDLE).symlink_to("/etc/passwd")
    (folder / OUTCOME).write_text("{}")
    writer.save_files()
    assert store.files(RUN) == {OUTCOME}
    assert "patch.diff of run" in caplog.text and "too large" in caplog.text


DAMAGES: list[Callable[[Path], object]] = [
    lambda log: sorted(log.iterdir())[2].write_bytes(b'{"id": nothing}\n'),
    lambda log: sorted(log.iterdir())[2].unlink(),
    lambda log: sorted(log.iterdir())[2].write_bytes(LINES[7]),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_log_is_an_error(damage: Callable[[Path], object], tmp_path: Path) -> None:
    store = open_run_store(None, tmp_path / "runs", {})
    append(Machine(store, tmp_path).take_over()[0], 0, 1, 2)
    damage(tmp_path / "runs" / RUN / "log")
    with pytest.raises(LogError, match=f"{RUN}, event 2"):
        list(store.events(RUN))


def test_a_write_waits_for_the_store_as_long_as_the_lease_is_valid(tmp_path: Path) -> None:
    folder, away, passing, lease = tmp_path / "runs", tmp_path / "away", PassingTime(), 60.0
    returns_at = 5.0

    def take_away() -> None:
        folder.rename(away)
        folder.write_text("not a folder")

    def sleep(seconds: float) -> None:
        passing.sleep(seconds)
        if passing.now >= returns_at and away.exists():
            folder.unlink()
            away.rename(folder)

    def require_valid() -> None:
        if passing.now > lease:
            raise LeaseLost("the lease has ended")

    store = open_run_store(None, folder, {})
    retries = RetryPolicy(20, 1, 5, sleep, lambda: passing.now)
    writer = store.open_writer(RUN, tmp_path / "work", require_valid, retries)
    take_away()
    append(writer, 0)
    assert returns_at <= passing.now < 20 and list(store.lines(RUN)) == LINES[:1]
    returns_at = 1000.0
    take_away()
    with pytest.raises(LogError, match="can't be used"):
        append(writer, 1)
    assert 15 < passing.now < 40
    with pytest.raises(RunStoreError):
        store.exists(RUN)
    lease = passing.now + 10
    with pytest.raises(LeaseLost):
        append(writer, 1)
    assert passing.now <= lease + 5


class LostAnswers(MemoryStore):
    """Stores objects, but the first answer to each is lost and the request is repeated."""

    def put(self, *arguments: object, **options: object) -> object:  # type: ignore[override]
        super().put(*arguments, **options)  # type: ignore[arg-type]
        return super().put(*arguments, **options)  # type: ignore[arg-type]


def test_a_repeated_write_finds_its_own_object(tmp_path: Path) -> None:
    store = RunStore(LostAnswers())
    append(Machine(store, tmp_path).take_over()[0], 0, 1)
    assert list(store.lines(RUN)) == LINES[:2]


def test_a_start_checks_the_store(s3: S3Server, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="NoSuchBucket") as caught:
        open_run_store("s3://missing", tmp_path, s3.environment).check()
    assert "canary" not in f"{caught.value.what} {caught.value.next_step}"
    with pytest.raises(UsageError, match="can't be used"):
        gone = s3.environment | {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
        open_run_store("s3://runs", tmp_path, gone).check()
    (tmp_path / "file").write_text("")
    for address in ("s3://", "s3://A b/c", "ftp://x", str(tmp_path / "file")):
        with pytest.raises(UsageError):
            open_run_store(address, tmp_path, s3.environment)
