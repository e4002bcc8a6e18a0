"""Tests of the history of an issue, also after a kill in the middle of a line."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from resolver.models.run import Actor, Command, Trigger, TriggerKind
from resolver.storage.database import parse_database_url
from resolver.storage.issue_history import FOLDER, IMPORTED_FOLDER, IssueHistories
from tests.parts.postgres import Postgres

START = datetime(2026, 1, 1, tzinfo=UTC)


def trigger_at(seconds: int, id: int, command: Command = Command.FIX, words: str = "") -> Trigger:
    return Trigger(
        key=f"issue_comment:{id}",
        kind=TriggerKind.ISSUE_COMMENT,
        repository="Octo/Calc",
        number=7,
        actor=Actor(login="mona"),
        command=command,
        instruction=words,
        at=START + timedelta(seconds=seconds),
        comment_id=id,
    )


def histories(folder: Path) -> IssueHistories:
    return IssueHistories(parse_database_url(f"sqlite:///{folder}/resolver.db"))


def test_runs_are_remembered_in_order_and_once(tmp_path: Path) -> None:
    threads = histories(tmp_path)
    for run in ("b", "a", "b"):
        threads.record_run(trigger_at(0, 1), run)
    assert histories(tmp_path).runs("Octo/Calc", 7) == ["b", "a"]


OLD_FILE = (
    b'\n{"kind":"run","run":"20260101-000001-aaaaaa"}\n'
    b'\n{"kind":"run","ru'
    b'\n{"kind":"stop","run":"","stop":{"key":"issue_comment:5","kind":"issue_comment",'
    b'"repository":"Octo/Calc","number":7,"actor":{"login":"mona"},"command":"stop",'
    b'"instruction":"","at":"2026-01-01T00:00:05Z","comment_id":5}}\n'
    b'\n{"kind":"run","run":"20260101-000009-bbbbbb"}\n'
    b'\n{"kind":"from a newer release"}\n'
)
"""As an earlier release wrote it, with a line that a kill cut off."""


def test_the_files_of_an_earlier_release_are_imported_once(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / "octo~calc~7.jsonl").write_bytes(OLD_FILE)
    (folder / "octo~calc~9.jsonl").write_bytes(b'\n{"kind":"issue","run":"","number":7}\n')
    threads = histories(tmp_path)
    threads.record_run(trigger_at(0, 1), "20260101-000001-aaaaaa")  # a crash interrupted the import
    assert threads.import_files(tmp_path) == 2
    expected = ["20260101-000001-aaaaaa", "20260101-000009-bbbbbb"]
    assert threads.runs("octo/calc", 7) == expected
    assert threads.stop_after(trigger_at(4, 4)) == "mona"
    assert threads.issue_of("octo/calc", 9) == 7
    assert threads.import_files(tmp_path) == 0
    (tmp_path / IMPORTED_FOLDER).rename(folder)
    assert threads.import_files(tmp_path) == 2
    assert threads.runs("octo/calc", 7) == expected


def test_the_history_is_the_same_for_all_processes_on_postgresql(
    postgres: Postgres, tmp_path: Path
) -> None:
    url = parse_database_url(postgres.url)
    first, second = IssueHistories(url), IssueHistories(url)
    trigger = trigger_at(0, 1).model_copy(update={"repository": f"octo/{tmp_path.name}"})
    first.record_run(trigger, "a")
    second.record_run(trigger, "a")
    second.record_run(trigger, "b")
    second.record_pull_request(trigger, 9)
    assert first.runs(trigger.repository, 7) == ["a", "b"]
    assert first.issue_of(trigger.repository.upper(), 9) == 7
    first.close()
    second.close()


def test_a_pull_request_leads_to_its_issue(tmp_path: Path) -> None:
    threads = histories(tmp_path)
    threads.record_pull_request(trigger_at(0, 1), 9)
    assert threads.issue_of("octo/calc", 9) == 7
    assert threads.issue_of("octo/calc", 7) is None


def test_a_stop_holds_for_what_was_asked_before_it(tmp_path: Path) -> None:
    threads = histories(tmp_path)
    threads.record_stop(trigger_at(5, 50, Command.STOP))
    assert threads.stop_after(trigger_at(4, 40)) == "mona"
    assert threads.stop_after(trigger_at(5, 49)) == "mona"
    assert threads.stop_after(trigger_at(5, 51)) is None
    assert threads.stop_after(trigger_at(6, 10)) is None
