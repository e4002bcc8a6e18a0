"""A purge on each database, and of more runs than one statement may list."""

import json
import os
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import URL, insert

from resolver.entrypoints.webhook.folder_sweep import FolderSweep
from resolver.entrypoints.webhook.purge import MAX_VALUES, ServerPurge
from resolver.models.run import Actor, Trigger, TriggerKind
from resolver.runs.output import REQUEST
from resolver.storage.costs import SPENDING, SpendingLedger
from resolver.storage.database import ServerDatabase, parse_database_url
from resolver.storage.issue_history import IssueHistories
from resolver.storage.run_archive import (
    RUNS,
    LogLine,
    LogPosition,
    RunArchive,
    RunClaim,
)
from resolver.storage.run_store import OUTCOME
from tests.parts.postgres import Postgres

OLD, FRESH = "20260101-000001-abcdef", "20260301-000001-abcdef"
CLAIM = RunClaim(1, 1)
NOW = datetime(2026, 3, 2, tzinfo=UTC)
TRIGGER = Trigger(
    key="k",
    kind=TriggerKind.ISSUE_COMMENT,
    repository="Octo/Calc_1",
    number=7,
    actor=Actor(login="mona"),
    at=NOW,
)


@pytest.fixture(params=("sqlite", "postgresql"))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[URL]:
    """An empty database."""
    if request.param == "sqlite":
        yield parse_database_url(f"sqlite:///{tmp_path}/resolver.db")
        return
    server: Postgres = request.getfixturevalue("postgres")
    with server.new_database() as url:
        yield url


def test_a_purge_removes_the_rows_of_old_runs_and_then_of_the_repository(
    url: URL, tmp_path: Path
) -> None:
    archive, histories, ledger = RunArchive(url), IssueHistories(url), SpendingLedger(url)
    # an underscore matches any character in a pattern of SQL
    similar = TRIGGER.model_copy(update={"repository": "octo/calc-1"})
    for run in (OLD, FRESH):
        archive.record_claim(run, CLAIM)
        archive.append(run, CLAIM, LogPosition(), [LogLine("think", "{}")])
        archive.put_file(run, CLAIM, OUTCOME, b"{}")
        histories.record_run(TRIGGER, run)
        ledger.record_cost(run, TRIGGER.repository, 1.0, 0, NOW)
    histories.record_run(similar, OLD[:-1] + "0")

    def purge(repository: str = "") -> dict[str, int]:
        with closing(ServerDatabase(url)) as database:
            made = ServerPurge(database, tmp_path / "runs", None, dry_run=False)
            purged = (
                made.purge_repository(repository, NOW)
                if repository
                else made.purge_old(timedelta(days=30), NOW)
            )
        return {name.removeprefix("resolver_"): rows for name, rows in purged.rows.items() if rows}

    stored = {"events": 1, "archived_runs": 1, "run_files": 1, "run_chunks": 1}
    assert purge() == stored | {"issue_history": 2}
    assert (archive.state(OLD), histories.runs(TRIGGER.repository, TRIGGER.number)) == (
        None,
        [FRESH],
    )
    histories.record_run(similar, FRESH)
    assert purge("octo/calc_1") == stored | {"issue_history": 1, "spending": 2}
    assert (archive.state(FRESH), histories.runs(similar.repository, similar.number)) == (
        None,
        [FRESH],
    )
    assert purge() == {}
    assert FolderSweep(url, tmp_path / "runs").sweep() == 0
    for store in (archive, histories, ledger):
        store.close()


def write_folder(parent: Path, repository: str, run: str) -> None:
    """Write the folder of a run of the repository that ended when it was requested."""
    folder = parent / run
    folder.mkdir(parents=True)
    (folder / REQUEST).write_text(json.dumps({"trigger": {"repository": repository}}))
    (folder / OUTCOME).touch()
    ended_at = datetime.strptime(run[:8], "%Y%m%d").replace(tzinfo=UTC).timestamp()
    os.utime(folder / OUTCOME, (ended_at, ended_at))


def test_a_purge_for_an_owner_leaves_the_runs_of_all_others(url: URL, tmp_path: Path) -> None:
    """Also those of owners whose names begin alike, and of repositories with the owner's name."""
    database = ServerDatabase(url)
    archive, histories = RunArchive(url), IssueHistories(url)
    own, machine, other_machine = ("Octo_1/calc", "octo_1/other"), tmp_path / "a", tmp_path / "b"
    runs, expected = set(), set()
    for number, name in enumerate((*own, "octo-1/calc", "octo_12/calc", "acme/octo_1")):
        trigger = TRIGGER.model_copy(update={"repository": name, "number": number + 1})
        for month in (1, 3):
            run = f"20260{month}01-000001-00000{number}"
            runs.add(run)
            archive.record_claim(run, CLAIM)
            histories.record_run(trigger, run)
            for folder in (machine, other_machine):
                write_folder(folder, name, run)
            if month == 1 and name in own:
                expected.add(run)
    made = ServerPurge(database, machine, None, dry_run=False)
    purged = made.purge_old(timedelta(days=30), NOW, "OCTO_1")
    counts = purged.rows["resolver_archived_runs"], purged.rows["resolver_issue_history"]
    assert (purged.folders, *counts) == (2, 2, 2)
    assert {run for run in runs if archive.state(run) is None} == expected
    assert FolderSweep(url, other_machine).sweep() == 2
    for folder in (machine, other_machine):
        assert {path.name for path in folder.iterdir()} == runs - expected
    assert made.purge_old(timedelta(days=30), NOW).folders == 3, "those of all others"
    for store in (archive, histories, database):
        store.close()


def test_all_runs_of_a_repository_are_purged_however_many(tmp_path: Path) -> None:
    url = parse_database_url(f"sqlite:///{tmp_path}/resolver.db")
    database = ServerDatabase(url)
    runs = [f"20260301-000001-{number:06x}" for number in range(MAX_VALUES + 2)]
    spent = {"repository": "octo/calc_1", "day": "2026-03-01", "cost": 1.0, "unpriced": 0}
    written = {"request": 1, "claim": 1, "events": 0, "digest": "", "changes": 0}
    with database.writing() as connection:
        rows = [{"run": run, "reserved": 0.0, "until": 0.0} | spent for run in runs]
        connection.execute(insert(SPENDING), rows)
        connection.execute(insert(RUNS), [{"run": run} | written for run in runs])
    made = ServerPurge(database, tmp_path / "runs", None, dry_run=False)
    purged = made.purge_repository(TRIGGER.repository, NOW)
    assert purged.rows["resolver_archived_runs"] == len(runs)
    database.close()
