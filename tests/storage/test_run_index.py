"""Tests of what the index of runs knows of a conversation."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from resolver.models.run import Actor, Command, Trigger, TriggerKind
from resolver.storage.database import parse_database_url
from resolver.storage.run_index import RunIndex

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


def index(folder: Path) -> RunIndex:
    return RunIndex(parse_database_url(f"sqlite:///{folder}/resolver.db"))


def test_runs_are_remembered_in_order_and_once(tmp_path: Path) -> None:
    runs = index(tmp_path)
    for run in ("b", "a", "b"):
        runs.put(run, trigger_at(0, 1), {})
    assert index(tmp_path).runs_of("Octo/Calc", 7) == ["b", "a"]


def test_the_issue_is_that_of_the_start_and_not_that_from_before_an_outage(tmp_path: Path) -> None:
    runs, trigger = index(tmp_path), trigger_at(0, 1)
    runs.put("a", trigger.model_copy(update={"number": None}), {"state": "deferred"})
    runs.put("a", trigger, {"number": trigger.number, "subject": trigger.subject})
    assert runs.runs_of("octo/calc", 7) == ["a"]
