"""What is remembered of a thread, also after a kill in the middle of a line."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from resolver.controller.control import Control, MessageToAgent, Resume
from resolver.entrypoints.webhook.database import parse_database_url
from resolver.entrypoints.webhook.issue_history import (
    FOLDER,
    IMPORTED_FOLDER,
    ActiveRuns,
    IssueHistories,
)
from resolver.models.run import Actor, Command, Trigger, TriggerKind
from tests.parts.postgres import Postgres

START = datetime(2026, 1, 1, tzinfo=UTC)


def asked(seconds: int, id: int, command: Command = Command.FIX, words: str = "") -> Trigger:
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
        threads.started(asked(0, 1), run)
    assert histories(tmp_path).runs(asked(9, 9)) == ["b", "a"]


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
    threads.started(asked(0, 1), "20260101-000001-aaaaaa")  # a crash interrupted the import
    assert threads.import_files(tmp_path) == 2
    expected = ["20260101-000001-aaaaaa", "20260101-000009-bbbbbb"]
    assert threads.runs(asked(0, 1)) == expected
    assert threads.stop_after(asked(4, 4)) == "mona"
    assert threads.issue_of("octo/calc", 9) == 7
    assert threads.import_files(tmp_path) == 0
    (tmp_path / IMPORTED_FOLDER).rename(folder)
    assert threads.import_files(tmp_path) == 2
    assert threads.runs(asked(0, 1)) == expected


def test_the_history_is_the_same_for_all_processes_on_postgresql(
    postgres: Postgres, tmp_path: Path
) -> None:
    url = parse_database_url(postgres.url)
    one, other = IssueHistories(url), IssueHistories(url)
    trigger = asked(0, 1).model_copy(update={"repository": f"octo/{tmp_path.name}"})
    one.started(trigger, "a")
    other.started(trigger, "a")
    other.started(trigger, "b")
    other.opened(trigger, 9)
    assert one.runs(trigger) == ["a", "b"]
    assert one.issue_of(trigger.repository.upper(), 9) == 7
    one.close()
    other.close()


def test_a_pull_request_leads_to_its_issue(tmp_path: Path) -> None:
    threads = histories(tmp_path)
    threads.opened(asked(0, 1), 9)
    assert threads.issue_of("octo/calc", 9) == 7
    assert threads.issue_of("octo/calc", 7) is None


def test_a_stop_holds_for_what_was_asked_before_it(tmp_path: Path) -> None:
    threads = histories(tmp_path)
    threads.stopped(asked(5, 50, Command.STOP))
    assert threads.stop_after(asked(4, 40)) == "mona"
    assert threads.stop_after(asked(5, 49)) == "mona"
    assert threads.stop_after(asked(5, 51)) is None
    assert threads.stop_after(asked(6, 10)) is None


def test_words_that_come_too_late_are_given_back() -> None:
    at_work, control, start = ActiveRuns(), Control(), asked(0, 1)
    at_work.enter(start, control)
    early = asked(1, 2, Command.CONTINUE, "be quick")
    late = asked(2, 3, Command.CONTINUE, "use pytest -x")
    assert at_work.steer(early)
    assert [type(control.take()) for _ in range(2)] == [MessageToAgent, Resume]
    assert at_work.steer(late) and at_work.steer(late)
    assert at_work.leave(start) == [late]
    assert not at_work.steer(late)


def test_a_request_from_before_the_run_is_not_for_it() -> None:
    at_work = ActiveRuns()
    at_work.enter(asked(5, 50), Control())
    old = asked(4, 40, Command.STOP)
    assert not at_work.steer(old)
    assert at_work.started_by(old) is None
