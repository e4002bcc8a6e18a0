"""What is remembered of a thread, also after a kill in the middle of a line."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from resolver.controller.control import Control, MessageToAgent, Resume
from resolver.entrypoints.webhook.issue_history import FOLDER, ActiveRuns, IssueHistories
from resolver.models.run import Actor, Command, Trigger, TriggerKind

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


def test_runs_are_remembered_in_order_and_once(tmp_path: Path) -> None:
    threads = IssueHistories(tmp_path)
    for run in ("b", "a", "b"):
        threads.started(asked(0, 1), run)
    assert IssueHistories(tmp_path).runs(asked(9, 9)) == ["b", "a"]


def test_a_torn_line_takes_no_other_along(tmp_path: Path) -> None:
    threads = IssueHistories(tmp_path)
    threads.started(asked(0, 1), "a")
    [file] = (tmp_path / FOLDER).iterdir()
    with open(file, "ab") as opened:
        opened.write(b'{"kind":"run","ru')
    threads.started(asked(0, 1), "b")
    assert threads.runs(asked(0, 1)) == ["a", "b"]


def test_a_pull_request_leads_to_its_issue(tmp_path: Path) -> None:
    threads = IssueHistories(tmp_path)
    threads.opened(asked(0, 1), 9)
    assert threads.issue_of("octo/calc", 9) == 7
    assert threads.issue_of("octo/calc", 7) is None


def test_a_stop_holds_for_what_was_asked_before_it(tmp_path: Path) -> None:
    threads = IssueHistories(tmp_path)
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
