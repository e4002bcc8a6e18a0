"""Tests of the thread that updates a run's progress comment."""

import threading
from datetime import timedelta
from typing import Any

from resolver.events import actions as a
from resolver.events.lifecycle import (
    ConfirmationAnswered,
    ModelReplied,
    StageCompleted,
)
from resolver.events.log import Event
from resolver.events.observations import AgentStateChanged
from resolver.events.state import State
from resolver.github.comments.progress import (
    ProgressReporter,
    RunProgress,
)
from resolver.models.run import Completion, PlanItem, RunState
from tests.github import reports
from tests.parts.waiting import until


class Board:
    """A forge that records the progress that is reported to it.

    gone: number of writes after which somebody has deleted the comment.
    answers: set while it answers; until then, whoever reports to it waits.
    """

    def __init__(self, gone: int = 1000) -> None:
        self.gone = gone
        self.answers = threading.Event()
        self.answers.set()
        self.written: list[RunProgress] = []
        self.write_count = 0
        self.threads: set[int] = set()

    def write_progress(self, progress: RunProgress, comment_id: int | None) -> int | None:
        self.write_count += 1
        self.threads.add(threading.get_ident())
        assert self.answers.wait(60)
        if len(self.written) >= self.gone:
            return None
        self.written.append(progress)
        return comment_id or 7

    def close_killed_runs(self, *_: Any) -> int:
        return 0


def initial() -> RunProgress:
    return RunProgress(
        trigger=reports.trigger(),
        run="r",
        since=reports.WHEN,
        until=reports.WHEN + timedelta(hours=4),
    )


def telling(board: Board, interval: float = 0.01) -> ProgressReporter:
    return ProgressReporter(
        lambda: board, initial(), interval, lambda text: text.replace("s3cret", "***")
    )


class Log:
    """Feeds events as the stream does: the state first."""

    def __init__(self, reporter: ProgressReporter) -> None:
        self.state = State()
        self._take = reporter.follow(self.state)

    def add(self, event: Event) -> None:
        numbered = event.model_copy(update={"id": len(self.state.events)})
        self.state.apply(numbered)
        self._take(numbered)


REPLY = ModelReplied(completion=Completion(text="", model="m", cost=0.25))


def test_progress_follows_the_log() -> None:
    board = Board()
    reporter = telling(board)
    log = Log(reporter)
    reporter.start()
    log.add(StageCompleted(stage="sandbox"))
    log.add(REPLY)
    log.add(a.PlanUpdate(items=(PlanItem(title="Use s3cret", status="done"),)))
    log.add(AgentStateChanged(state=RunState.FINISHED))
    log.add(StageCompleted(stage="published"))
    until(lambda: board.written and board.written[-1].published)
    reporter.close()
    last = board.written[-1]
    assert (last.sandbox, last.iterations, last.cost, last.worked) == (True, 1, 0.25, True)
    assert [item.title for item in last.plan] == ["Use ***"]
    assert last.changed_files == 0, "the sandbox has not named any"
    assert reporter.comment_id == 7 and board.threads != {threading.get_ident()}


def test_a_slow_server_does_not_block_and_nothing_is_written_after_close() -> None:
    board = Board()
    board.answers.clear()
    reporter = telling(board)
    reporter.start()
    until(lambda: board.write_count)
    for number in range(100):
        reporter.show(iterations=number)
    assert board.written == []
    board.answers.set()
    reporter.close()
    written = board.write_count
    reporter.show(iterations=1000)
    assert board.write_count == written
    [writer] = board.threads
    assert writer not in {thread.ident for thread in threading.enumerate()}


def test_a_deleted_comment_ends_the_progress_updates() -> None:
    board = Board(gone=1)
    reporter = telling(board)
    reporter.start()
    until(lambda: board.written)
    [writer] = [t for t in threading.enumerate() if t.ident in board.threads]
    reporter.show(iterations=1)
    until(lambda: board.write_count == 2)
    reporter.show(iterations=2)
    until(lambda: not writer.is_alive())  # nothing is left that could write again
    reporter.close()
    assert board.write_count == 2 and reporter.comment_id is None


def test_a_pending_approval_stays_in_the_comment_until_it_is_decided() -> None:
    board = Board()
    reporter = telling(board)
    log = Log(reporter)
    reporter.start()
    until(lambda: board.written)
    reporter.hold()
    written = len(board.written)
    reporter.show(iterations=5)
    assert len(board.written) == written
    log.add(ConfirmationAnswered(action=0, approved=True))
    log.add(REPLY)
    until(lambda: len(board.written) > written)
    reporter.close()
