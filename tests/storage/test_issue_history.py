"""Tests of the history of an issue."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from resolver.models.run import Actor, Command, Trigger, TriggerKind
from resolver.storage.database import parse_database_url
from resolver.storage.issue_history import IssueHistories

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
