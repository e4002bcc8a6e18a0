"""Tests of the history of an issue."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import insert

from resolver.models.run import Actor, Command, Trigger, TriggerKind
from resolver.storage.database import ServerDatabase, parse_database_url
from resolver.storage.issue_history import HISTORY, IssueHistories
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


def test_an_entry_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    threads = histories(tmp_path)
    threads.record_run(trigger_at(0, 1), "a")
    database = ServerDatabase(parse_database_url(f"sqlite:///{tmp_path}/resolver.db"))
    unknown = {
        "conversation": "octo/calc#7",
        "entry": '{"kind":"other"}',
        "identity": "x",
        "recorded_at": 0.0,
    }
    with database.writing() as connection:
        connection.execute(insert(HISTORY), unknown)
    database.close()
    threads.record_run(trigger_at(0, 1), "b")
    assert threads.runs("octo/calc", 7) == ["a", "b"]


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
