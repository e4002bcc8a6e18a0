"""The open event log of one run: file, stream, state, and queries about the run and its events."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path

from resolver.errors import ContextWindowExceeded, LogError, ModelError
from resolver.events.actions import CondensationRequest
from resolver.events.base import Source
from resolver.events.lifecycle import (
    AGENT,
    ModelReplied,
    Resumed,
    RunStarted,
    ServiceReplied,
    StageCompleted,
    Warned,
)
from resolver.events.log import Event, innermost, read_log
from resolver.events.observations import AgentStateChanged
from resolver.events.state import State
from resolver.events.stores import JsonlStore, LogCopy
from resolver.events.stream import Clock, EventRedactor, EventStream
from resolver.models.run import Completion, RunState

BRANCH_STAGE = "branch"
"""Name of the stage whose detail is the branch that is about to be written."""

DONE_STATES = frozenset({RunState.FINISHED, RunState.REJECTED})
"""States in which the agent has nothing left to do. A run in any other state can be resumed."""


class RunLog(AbstractContextManager["RunLog"]):
    """The log of a run: its store, its stream and its state.

    `state` is the first subscriber of `stream`, so all others see it up to date. copy: gets each
    line too. Raises LogError if the file is not the log of a run. before_append: see `EventStream`.
    """

    def __init__(
        self,
        path: Path,
        redact: EventRedactor,
        now: Clock,
        mode: int = 0o600,
        before_append: Callable[[], None] | None = None,
        copy: LogCopy | None = None,
    ) -> None:
        self._store = JsonlStore(path, mode, copy)
        self._now = now
        self.state = State.fold(self._store)
        if self.state.events:
            require_opening(self.state.events, path)
        self.stream = EventStream(self._store, redact, now, before_append)
        self.stream.subscribe("state", self.state.apply, essential=True)

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def opening(self) -> RunStarted | None:
        """The first event; None while the log is empty."""
        first = self.state.events[0] if self.state.events else None
        return first if isinstance(first, RunStarted) else None

    @property
    def is_done(self) -> bool:
        """True if the agent's work has ended for good."""
        return self.state.run_state in DONE_STATES

    @property
    def ended_at(self) -> datetime:
        """Time at which the agent's work ended. It is the same each time the log is opened."""
        changes = (
            event for event in reversed(self.state.events) if isinstance(event, AgentStateChanged)
        )
        last_change = next(changes, None)
        return last_change.timestamp if last_change else self._now()

    def start_index(self, run: str) -> int:
        """Return the position of the event with which `run` started or resumed the log.

        If there is none, returns the length of the log.
        """
        return start_position(self.state.events, run)

    def spent_before(self, run: str) -> float:
        """Return the US dollars that the log had cost before `run` resumed it.

        Replies without a known price are not included.
        """
        return State.fold(self.state.events[: start_position(self.state.events, run)]).priced

    def intended_branch(self, run: str) -> str | None:
        """Return the branch that `run` was about to write when it was interrupted, or None."""
        for event in reversed(self.state.events[self.start_index(run) :]):
            if isinstance(event, StageCompleted) and event.stage == BRANCH_STAGE:
                return event.detail
        return None

    def stage(self, stage: str, detail: str, seconds: float) -> None:
        """Record that a stage of the pipeline is complete."""
        self.stream.add(StageCompleted(stage=stage, detail=detail, seconds=round(seconds, 3)))

    def close(self) -> None:
        """Close the file. The state stays readable."""
        self._store.close()


def require_opening(events: list[Event], path: Path) -> RunStarted:
    """Return the first event of a log. Raises LogError if it is not the start of a run."""
    first = events[0] if events else None
    if not isinstance(first, RunStarted):
        raise LogError(
            f"{path} does not begin with the start of a run", "give the events.jsonl of a run"
        )
    return first


def start_position(events: Sequence[Event], run: str) -> int:
    """Return the position of the event with which `run` started or resumed the log.

    If there is none, returns the number of events.
    """
    for position, event in enumerate(events):
        if isinstance(event, RunStarted | Resumed) and event.run == run:
            return position
    return len(events)


def cost_of_run(events: Sequence[Event], run: str) -> tuple[float, int]:
    """Return the cost of `run` since it started or resumed the log.

    The result is the US dollars of the replies with a known price, and the number of replies
    without one.
    """
    state, earlier_state = State.fold(events), State.fold(events[: start_position(events, run)])
    return state.priced - earlier_state.priced, state.unpriced - earlier_state.unpriced


def is_resumable(path: Path) -> bool:
    """Return True if the log can be resumed: it is not damaged, and begins with a run."""
    try:
        require_opening(list(read_log(path)), path)
    except LogError:
        return False
    return True


def current_run(events: list[Event]) -> str:
    """Return the id of the run that the log belongs to now. Raises LogError if there is none."""
    for event in reversed(events):
        if isinstance(event, RunStarted | Resumed):
            return event.run
    raise LogError("the log has no start of a run", "give the events.jsonl of a run")


def reply_in(event: Event) -> tuple[str, Completion | ModelError] | None:
    """Return what the event records of a model's answer, at any depth, and the service that asked.

    The answer is a reply, or an error that the run survived. Returns None if the event records
    neither.
    """
    match innermost(event):
        case ModelReplied(completion=completion):
            return AGENT, completion
        case ServiceReplied(service=service, completion=completion):
            return service, completion
        case CondensationRequest(source=Source.AGENT):
            return AGENT, ContextWindowExceeded("the conversation did not fit when it was recorded")
        case Warned(about="condenser", message=message):
            return "condenser", ModelError(message)
        case _:
            return None
