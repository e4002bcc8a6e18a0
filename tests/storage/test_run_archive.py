"""The archive of runs: what is stored, who may write, and what another machine gets of it."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import URL, insert, text

from resolver.entrypoints.webhook.run_recorder import RETRY_SECONDS, RunRecorder
from resolver.entrypoints.webhook.run_restore import ArchivedRunFolders
from resolver.errors import LeaseLost, LogError
from resolver.events.actions import Think
from resolver.events.stores import JsonlStore
from resolver.storage.database import (
    DatabaseError,
    ServerDatabase,
    parse_database_url,
)
from resolver.storage.earlier_runs import EVENTS, OUTCOME, PATCH, REQUEST
from resolver.storage.run_archive import (
    CHUNK_BYTES,
    CHUNKS,
    FILES,
    LogLine,
    LogPosition,
    RunArchive,
    RunClaim,
)
from resolver.storage.run_folders import LocalRunFolders
from tests.parts.postgres import Postgres

RUN = "20260101-000001-abcdef"
LINES = [LogLine("think", f'{{"id":{id},"kind":"think"}}') for id in range(4)]
FIRST, SECOND = RunClaim(1, 1), RunClaim(1, 2)


@pytest.fixture
def url(tmp_path: Path) -> URL:
    return parse_database_url(f"sqlite:///{tmp_path}/resolver.db")


@pytest.fixture
def archive(url: URL) -> Iterator[RunArchive]:
    archive = RunArchive(url)
    yield archive
    archive.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_archive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunArchive]:
    """An archive on each database."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            url = parse_database_url(f"sqlite:///{tmp_path}/resolver.db")
        else:
            postgres: Postgres = request.getfixturevalue("postgres")
            url = stack.enter_context(postgres.new_database())
        archive = RunArchive(url)
        yield archive
        archive.close()


def valid() -> None:
    """A lease that never ends."""


class Machine:
    """A data folder on the archive."""

    def __init__(self, archive: RunArchive, folder: Path) -> None:
        self.archive, self.folder = archive, folder / RUN
        self.folders = ArchivedRunFolders(archive, folder)

    def work(
        self, claim: RunClaim, *thoughts: str, name: str = "", text: str = "", removed: str = ""
    ) -> None:
        """Continue the run with these thoughts, write a file and remove another one."""
        with self.folders.recording(RUN, claim, valid) as recorder:
            store = JsonlStore(self.folder / EVENTS, copy=recorder)
            try:
                for thought in thoughts:
                    store.append(Think(id=len(store), content=thought))
                if removed:
                    (self.folder / removed).unlink()
                if name:
                    (self.folder / name).write_text(text)
            finally:
                store.close()

    @property
    def content(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.iterdir()}


@pytest.fixture
def machines(archive: RunArchive, tmp_path: Path) -> tuple[Machine, Machine]:
    return Machine(archive, tmp_path / "a"), Machine(archive, tmp_path / "b")


def test_lines_and_files_come_back(database_archive: RunArchive) -> None:
    database_archive.record_claim(RUN, FIRST)
    position = database_archive.append(RUN, FIRST, LogPosition(), LINES[:3])
    position = database_archive.append(RUN, FIRST, position, LINES[3:])
    state = database_archive.state(RUN)
    assert state is not None and state.log == position and position.events == 4
    assert list(database_archive.lines(RUN, 1, 3)) == [line.text.encode() for line in LINES[1:3]]

    large = os.urandom(2 * CHUNK_BYTES + 1)
    database_archive.put_file(RUN, FIRST, PATCH, b"first")
    database_archive.put_file(RUN, FIRST, PATCH, large)
    database_archive.put_file(RUN, FIRST, OUTCOME, b"")
    outcome, patch = database_archive.files(RUN)
    assert (database_archive.read_file(RUN, outcome), database_archive.read_file(RUN, patch)) == (
        b"",
        large,
    )
    database_archive.remove_file(RUN, FIRST, PATCH)
    assert [file.name for file in database_archive.files(RUN)] == [OUTCOME]
    changed = database_archive.state(RUN)
    assert changed is not None and changed.changes == 4


def test_an_older_claim_can_not_write_any_more(database_archive: RunArchive) -> None:
    database_archive.record_claim(RUN, FIRST)
    position = database_archive.append(RUN, FIRST, LogPosition(), LINES[:1])
    database_archive.record_claim(RUN, SECOND)
    writes: list[Callable[[], object]] = [
        lambda: database_archive.append(RUN, FIRST, position, LINES[1:2]),
        lambda: database_archive.put_file(RUN, FIRST, PATCH, b""),
        lambda: database_archive.remove_file(RUN, FIRST, PATCH),
        lambda: database_archive.clear_log(RUN, FIRST),
        lambda: database_archive.record_claim(RUN, FIRST),
    ]
    for write in writes:
        with pytest.raises(LeaseLost) as lost:
            write()
        assert lost.value.is_silent
    database_archive.append(RUN, SECOND, position, LINES[1:2])
    assert len(list(database_archive.lines(RUN, 0, 9))) == 2


def test_lines_can_be_stored_again_but_no_others_in_their_place(
    database_archive: RunArchive,
) -> None:
    database_archive.record_claim(RUN, FIRST)
    stored = database_archive.append(RUN, FIRST, LogPosition(), LINES[:2])
    assert database_archive.append(RUN, FIRST, LogPosition(), LINES[:2]) == stored
    for other in (LINES[1:3], LINES[:1]):
        with pytest.raises(LogError, match="has 2 events of run"):
            database_archive.append(RUN, FIRST, LogPosition(), other)
    assert list(database_archive.lines(RUN, 0, 9)) == [line.text.encode() for line in LINES[:2]]


def test_a_later_request_of_the_same_run_has_the_newer_claim(archive: RunArchive) -> None:
    archive.record_claim(RUN, RunClaim(1, 5))
    archive.record_claim(RUN, RunClaim(2, 1))
    with pytest.raises(LeaseLost):
        archive.append(RUN, RunClaim(1, 5), LogPosition(), LINES[:1])


def test_another_machine_gets_everything_and_the_first_catches_up(
    machines: tuple[Machine, Machine],
) -> None:
    first, second = machines
    first.work(FIRST, "a", "b", name=REQUEST, text="{}")
    (first.folder / "notes.txt").write_text("stays here")
    second.work(SECOND, name=PATCH, text="+1\n")
    second.work(SECOND, "c", name=OUTCOME, text="{}", removed=REQUEST)
    assert second.content.keys() == {EVENTS, PATCH, OUTCOME}

    assert first.folders.folder_of(RUN) == first.folder
    assert first.content.pop("notes.txt") == b"stays here"
    assert {name: first.content[name] for name in second.content} == second.content
    assert REQUEST not in first.content
    assert first.content[EVENTS].count(b"\n") == 3
    for path in first.folder.iterdir():
        assert path.name == "notes.txt" or path.stat().st_mode & 0o077 == 0


def test_a_page_follows_a_run_of_another_machine(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    assert second.folders.folder_of(RUN) is None
    with first.folders.recording(RUN, FIRST, valid) as recorder:
        store = JsonlStore(first.folder / EVENTS, copy=recorder)
        for number in range(3):
            store.append(Think(id=number, content=str(number)))
            assert second.folders.folder_of(RUN) == second.folder
            assert second.content == {EVENTS: (first.folder / EVENTS).read_bytes()}
        assert first.folders.folder_of(RUN) == first.folder
        store.close()


def test_a_line_that_only_the_dead_machine_has_is_kept_unless_another_continued(
    machines: tuple[Machine, Machine],
) -> None:
    first, second = machines
    first.work(FIRST, "a")
    store = JsonlStore(first.folder / EVENTS)  # killed before the line was in the database
    store.append(Think(id=1, content="only here"))
    store.close()
    first.work(SECOND, "b")
    assert first.content[EVENTS].count(b"\n") == 3

    store = JsonlStore(first.folder / EVENTS)
    store.append(Think(id=3, content="lost"))
    store.close()
    second.work(RunClaim(1, 3), "d")
    assert first.folders.folder_of(RUN) == first.folder
    assert first.content == second.content
    assert b"lost" not in first.content[EVENTS] and b"only here" in first.content[EVENTS]


def test_a_revoked_writer_leaves_its_local_log_as_it_was(
    machines: tuple[Machine, Machine],
) -> None:
    first, second = machines
    with first.folders.recording(RUN, FIRST, valid) as recorder:
        store = JsonlStore(first.folder / EVENTS, copy=recorder)
        store.append(Think(id=0, content="a"))
        second.work(SECOND, "b")
        with pytest.raises(LeaseLost):
            store.append(Think(id=1, content="stale"))
        assert len(store) == 1
        (first.folder / OUTCOME).write_text("{}")
        store.close()
    assert first.content[EVENTS].count(b"\n") == 1
    second.folders.restore(RUN)
    assert second.content.keys() == {EVENTS}


def test_one_process_does_not_work_on_a_run_twice(machines: tuple[Machine, Machine]) -> None:
    first, _ = machines
    with (
        first.folders.recording(RUN, FIRST, valid),
        pytest.raises(DatabaseError, match="has not ended"),
        first.folders.recording(RUN, SECOND, valid),
    ):
        pass
    first.work(RunClaim(1, 3), "a")
    assert first.content[EVENTS].count(b"\n") == 1


def test_a_log_that_starts_over_replaces_the_archived_one(
    machines: tuple[Machine, Machine],
) -> None:
    first, second = machines
    first.work(FIRST, "a", "b")
    with first.folders.recording(RUN, SECOND, valid) as recorder:
        (first.folder / EVENTS).rename(first.folder / "damaged")
        store = JsonlStore(first.folder / EVENTS, copy=recorder)
        store.append(Think(id=0, content="anew"))
        store.close()
    second.folders.restore(RUN)
    assert second.content[EVENTS] == first.content[EVENTS]


HOSTILE_NAMES = ("../escaped", "/tmp/escaped", EVENTS, ".ssh", "a/b", "", f"../{RUN}/{OUTCOME}")


def test_a_row_of_the_database_writes_nothing_else(
    url: URL, machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    first, second = machines
    first.work(FIRST, "a", name=PATCH, text="+1\n")
    [file] = first.archive.files(RUN)
    database = ServerDatabase(url)
    with database.writing() as connection:
        for name in HOSTILE_NAMES:
            row = {"run": RUN, "name": name}
            values = {"size": file.size, "digest": file.digest, "changed": 0.0, "blob": ""}
            connection.execute(insert(FILES), row | values)
            connection.execute(insert(CHUNKS), row | {"number": 0, "data": b"+1\n"})
    database.close()
    before = {path for path in tmp_path.rglob("*") if "resolver.db" not in path.name}
    second.folders.restore(RUN)
    assert second.content == first.content
    after = {path for path in tmp_path.rglob("*") if "resolver.db" not in path.name}
    new = after - before - {second.folder.parent, second.folder}
    assert new == {second.folder / EVENTS, second.folder / PATCH}
    assert not Path("/tmp/escaped").exists()


def test_links_in_the_folder_are_replaced_and_not_followed(
    machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    first, second = machines
    first.work(FIRST, "a", name=PATCH, text="+1\n")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    second.folder.mkdir(parents=True)
    for name in (EVENTS, PATCH):
        (second.folder / name).symlink_to(victim)
    with pytest.raises(OSError):
        second.folders.restore(RUN)
    (second.folder / EVENTS).unlink()
    second.folders.restore(RUN)
    assert victim.read_text() == "precious"
    assert second.content == first.content


@pytest.mark.parametrize("run", ["../x", "", "x", f"{RUN}/..", f"{RUN}\n", "0" * 1000])
def test_an_untrusted_id_names_no_folder(
    run: str, machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    assert machines[0].folders.folder_of(run) is None
    assert LocalRunFolders(tmp_path).folder_of(run) is None


DAMAGED_FILES = (
    f"UPDATE {CHUNKS.name} SET data = x'00'",
    f"DELETE FROM {CHUNKS.name}",
    f"UPDATE {FILES.name} SET size = 2000000000",
)


def test_damaged_rows_are_an_error_and_the_local_folder_is_shown(
    url: URL, machines: tuple[Machine, Machine]
) -> None:
    first, second = machines
    first.work(FIRST, "a", "b", name=PATCH, text="+1\n")
    database = ServerDatabase(url)

    def damage(statement: str) -> None:
        with database.writing() as connection:
            connection.execute(text(statement))
        with pytest.raises(LogError):
            second.folders.restore(RUN)
        assert second.folders.folder_of(RUN) == second.folder

    for number, statement in enumerate(DAMAGED_FILES):
        damage(statement)
        assert PATCH not in second.content
        first.archive.put_file(RUN, FIRST, PATCH, f"{number}".encode())
    second.folders.restore(RUN)
    assert second.content[PATCH] == b"2"
    (second.folder / EVENTS).unlink()
    damage("DELETE FROM resolver_events WHERE id = 0")
    database.close()


class LostDatabase(RunArchive):
    """An archive whose database can't be used for a number of writes."""

    failures = 0

    def append(
        self, run: str, claim: RunClaim, position: LogPosition, lines: list[LogLine]
    ) -> LogPosition:
        """Store the lines, but lose the answer."""
        after = super().append(run, claim, position, lines)
        if self.failures:
            self.failures -= 1
            raise DatabaseError("the connection was lost")
        return after


class Lease:
    """Counts the waits, and ends after a number of them. The clock advances with each wait."""

    def __init__(self, waits: int = 10**6) -> None:
        self.waits, self.time = waits, 0.0

    def wait(self, seconds: float) -> None:
        self.waits, self.time = self.waits - 1, self.time + seconds

    def require_valid(self) -> None:
        """Raise LeaseLost at its end."""
        if self.waits <= 0:
            raise LeaseLost("the lease has ended")


def test_a_write_is_repeated_until_the_database_is_back(url: URL, tmp_path: Path) -> None:
    archive, lease = LostDatabase(url), Lease()
    state = archive.record_claim(RUN, FIRST)
    recorder = RunRecorder(
        archive, RUN, FIRST, state, tmp_path, lease.require_valid, lease.wait, lambda: lease.time
    )
    store = JsonlStore(tmp_path / EVENTS, copy=recorder)
    archive.failures = 3
    store.append(Think(id=0, content="a"))
    assert lease.time == 3
    store.append(Think(id=1, content="b"))
    stored = b"".join(line + b"\n" for line in archive.lines(RUN, 0, 9))
    assert stored == (tmp_path / EVENTS).read_bytes()

    archive.failures = 10**6
    with pytest.raises(LogError, match="connection was lost"):
        store.append(Think(id=2, content="c"))
    assert lease.time == 3 + RETRY_SECONDS
    lease.waits = 2
    with pytest.raises(LeaseLost):
        store.append(Think(id=2, content="c"))
    assert len(store) == 2
    store.close()
    archive.close()
