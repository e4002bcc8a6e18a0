"""The thread that keeps a run's comment up to date: never in the way, silent once it is closed."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta

from resolver.errors import ForgeError
from resolver.events import actions as a
from resolver.events.lifecycle import ConfirmationAnswered, ModelReplied, StageCompleted
from resolver.events.log import Event
from resolver.events.observations import AgentStateChanged, CmdOutput, FileWriteResult
from resolver.events.state import State
from resolver.forge.progress import Progress
from resolver.forge.telling import MOST_FAILURES, Telling
from resolver.model import Completion, PlanItem, RunState
from resolver.verify.course import Following
from tests.forge import reports


class Board:
    """A forge that keeps what it is told. gone: after so many writes somebody has deleted it."""

    def __init__(self, slow: float = 0.0, fails: int = 0, gone: int = 1000) -> None:
        self.slow, self.fails, self.gone = slow, fails, gone
        self.written: list[Progress] = []
        self.asked = 0
        self.threads: set[int] = set()

    def tell_progress(self, progress: Progress, told: int | None) -> int | None:
        self.asked += 1
        self.threads.add(threading.get_ident())
        time.sleep(self.slow)
        if self.asked <= self.fails:
            raise ForgeError("GitHub is away")
        if len(self.written) >= self.gone:
            return None
        self.written.append(progress)
        return told or 7

    def close_dead(self, progress: Progress) -> None:
        """Nobody has died."""


def telling(board: Board, interval: float = 0.01) -> Telling:
    begun = Progress(
        trigger=reports.trigger(),
        run="r",
        since=reports.WHEN,
        until=reports.WHEN + timedelta(hours=4),
    )
    return Telling(
        lambda: board,
        begun,
        interval,
        Following().take,
        lambda text: text.replace("s3cret", "***"),
    )


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


class Log:
    """Feeds events as the stream does: the state first."""

    def __init__(self, told: Telling) -> None:
        self.state = State()
        self._take = told.follow(self.state)

    def add(self, event: Event) -> None:
        numbered = event.model_copy(update={"id": len(self.state.events)})
        self.state.apply(numbered)
        self._take(numbered)


REPLY = ModelReplied(completion=Completion(text="", model="m", cost=0.25))


def test_what_the_log_says_is_told() -> None:
    board = Board()
    told = telling(board)
    log = Log(told)
    told.start()
    log.add(StageCompleted(stage="sandbox"))
    log.add(REPLY)
    log.add(a.PlanUpdate(items=(PlanItem(title="Use s3cret", status="done"),)))
    log.add(AgentStateChanged(state=RunState.FINISHED))
    log.add(StageCompleted(stage="published"))
    until(lambda: board.written and board.written[-1].published)
    told.close()
    last = board.written[-1]
    assert (last.sandbox, last.iterations, last.cost, last.worked) == (True, 1, 0.25, True)
    assert [item.title for item in last.plan] == ["Use ***"]
    assert told.told == 7 and board.threads != {threading.get_ident()}


def test_the_checklist_is_told_without_secrets_and_of_the_log_from_its_beginning() -> None:
    board = Board()
    told = telling(board)
    state = State()
    for event in (
        a.CmdRun(id=0, command="pytest -q s3cret"),
        CmdOutput(id=1, content="", exit_code=1, cause=0),
    ):
        state.apply(event)
    take = told.follow(state)
    told.start()
    for event in (
        a.FileWrite(id=2, path="a.py", content=""),
        FileWriteResult(id=3, content="", path="a.py", cause=2),
    ):
        state.apply(event)
        take(event)
    until(lambda: board.written and board.written[-1].course.edited)
    told.close()
    course = board.written[-1].course
    assert course.reproduced and course.reproduced.command == "pytest -q ***"
    assert course.files == 1


def test_a_log_with_a_hostile_command_is_followed_from_its_beginning() -> None:
    state = State()
    for event in (
        a.CmdRun(id=0, command="echo \x005\x00 \x00" + "9" * 5_000 + "\x00"),
        CmdOutput(id=1, content="", exit_code=0, cause=0),
    ):
        state.apply(event)
    telling(Board()).follow(state)


def test_changes_within_an_interval_are_one_edit() -> None:
    board = Board()
    told = telling(board, interval=0.3)
    told.start()
    until(lambda: board.written)
    for number in range(500):
        told.show(iterations=number)
    time.sleep(0.5)
    told.close()
    assert len(board.written) <= 3 and board.written[-1].iterations == 499


def test_a_slow_forge_holds_nobody_up_and_after_the_close_nothing_is_written() -> None:
    board = Board(slow=0.3)
    told = telling(board)
    began = time.monotonic()
    told.start()
    for number in range(100):
        told.show(iterations=number)
    assert time.monotonic() - began < 0.25
    told.close()
    written = board.asked
    told.show(iterations=1000)
    time.sleep(0.4)
    assert board.asked == written


def test_an_interval_is_not_waited_for_at_the_end() -> None:
    told = telling(Board(), interval=60.0)
    told.start()
    time.sleep(0.05)
    began = time.monotonic()
    told.close()
    assert time.monotonic() - began < 1.0


def test_it_is_tried_again_after_a_failure_and_given_up_after_some() -> None:
    board = Board(fails=MOST_FAILURES - 1)
    told = telling(board)
    told.start()
    until(lambda: board.written)
    told.close()
    away = Board(fails=1000)
    told = telling(away)
    told.start()
    until(lambda: away.asked == MOST_FAILURES)
    time.sleep(0.1)
    told.close()
    assert away.asked == MOST_FAILURES and told.told is None


def test_a_deleted_comment_ends_it() -> None:
    board = Board(gone=1)
    told = telling(board)
    told.start()
    until(lambda: board.written)
    told.show(iterations=1)
    until(lambda: board.asked == 2)
    told.show(iterations=2)
    time.sleep(0.1)
    told.close()
    assert board.asked == 2 and told.told is None


def test_what_waits_for_a_person_is_left_in_the_comment_until_it_is_decided() -> None:
    board = Board()
    told = telling(board)
    log = Log(told)
    told.start()
    until(lambda: board.written)
    told.hold()
    written = len(board.written)
    told.show(iterations=5)
    time.sleep(0.1)
    assert len(board.written) == written
    log.add(ConfirmationAnswered(action=0, approved=True))
    log.add(REPLY)
    until(lambda: len(board.written) > written)
    told.close()


def test_one_that_was_never_started_can_be_closed() -> None:
    telling(Board()).close()
