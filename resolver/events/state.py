"""State is derived: a fold over the events, and nothing else.

The same events always give the same state; a prefix's events give the state at that time.
"""

from collections.abc import Iterable
from datetime import datetime

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import EventBase, Source
from resolver.events.log import RUNNABLE, Event
from resolver.model import CheckedCommand, Completion, Limits, PlanItem, RunState, Tokens

TAIL = 2_000
"""Characters of output kept for a command in `State.commands`."""


class State:
    """What is true of the run after the events seen so far. Only `apply` changes it.

    events: all of them, by id.
    limits: the bounds in force: those the run started with, as extended since.
    iterations: replies of the model so far, those to delegates included.
    cost: US dollars; None as soon as one reply's price is unknown.
    priced: US dollars of the replies whose price is known (what the budget is held against).
    pending: ids of runnable actions that have no observation yet.
    commands: commands that ended, with exit codes, in order.
    files_touched: repository paths written through the editor.
    plan: the agent's plan as it last wrote it.
    delegate: id of the delegate action whose child is at work, None when there is none.
    warned: what the run was warned about so far (`Warned.about`); a limit that was extended is
        warned about again.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.run_state = RunState.LOADING
        self.reason = ""
        self.iterations = 0
        self.tokens = Tokens()
        self.priced = 0.0
        self.unpriced = 0
        self.limits = Limits()
        self.started_at: datetime | None = None
        self.seconds = 0.0
        self.last_at: datetime | None = None
        self.last_error = ""
        self.finish: a.Finish | None = None
        self.pending: dict[int, EventBase] = {}
        self.commands: list[CheckedCommand] = []
        self.files_touched: list[str] = []
        self.plan: tuple[PlanItem, ...] = ()
        self.delegate: int | None = None
        self.divergences: list[life.ReplayDiverged] = []
        self.auto_replies = 0
        self.warned: set[str] = set()
        self.last_stuck_warning = -1

    @classmethod
    def fold(cls, events: Iterable[Event]) -> "State":
        """The state after `events`."""
        state = cls()
        for event in events:
            state.apply(event)
        return state

    @property
    def cost(self) -> float | None:
        """US dollars so far, None when some reply had no known price."""
        return None if self.unpriced else self.priced

    def at(self, event_id: int) -> "State":
        """The state right after the event `event_id`; the last one's is this state again."""
        return State.fold(self.events[: event_id + 1])

    def elapsed(self, now: datetime) -> float:
        """Seconds that the run has been at work until `now`: without pauses, and without the time
        in which no process had it."""
        if self.last_at is None or self.run_state is RunState.PAUSED:
            return self.seconds
        return self.seconds + max(0.0, (now - self.last_at).total_seconds())

    def apply(self, event: Event) -> None:
        """Take in the next event."""
        self.events.append(event)
        if not isinstance(event, life.Resumed):
            self.seconds = self.elapsed(event.timestamp)
        self.started_at = self.started_at or event.timestamp
        self.last_at = event.timestamp
        if type(event) in RUNNABLE:
            self.pending[event.id] = event
        elif event.cause is not None:
            self._settle(event)
        match event:
            case life.RunStarted(limits=limits):
                self.limits = limits
            case life.LimitsExtended(limits=limits):
                self.limits = limits
                self.warned = {w for w in self.warned if not w.startswith("limit:")}
            case life.ModelReplied(completion=completion):
                self._count(completion)
            case life.DelegateEvent(event=data):
                if data.get("kind") == "model_replied":
                    self._count(Completion.model_validate(data["completion"]))
            case life.ReplayDiverged():
                self.divergences.append(event)
            case life.Warned(about=about):
                self.warned.add(about)
                if about == "stuck":
                    self.last_stuck_warning = event.id
            case a.PlanUpdate(items=items):
                self.plan = items
            case a.Delegate():
                self.delegate = event.id
            case o.ErrorObservation(content=content):
                self.last_error = content
            case o.AgentStateChanged(state=new, reason=reason):
                self.run_state, self.reason = new, reason
            case a.Finish():
                self.finish = event
            case a.Message(source=Source.USER):
                self.auto_replies += 1 if event.cause is not None else 0
            case _:
                pass

    def _count(self, completion: Completion) -> None:
        self.iterations += 1
        self.tokens = self.tokens + completion.tokens
        if completion.cost is None:
            self.unpriced += 1
        else:
            self.priced += completion.cost

    def _settle(self, event: Event) -> None:
        action = self.pending.pop(event.cause, None) if event.cause is not None else None
        if event.cause == self.delegate:
            self.delegate = None
        match action, event:
            case a.CmdRun(is_input=False), o.CmdOutput():
                self.commands.append(
                    CheckedCommand(
                        command=action.command,
                        exit_code=event.exit_code,
                        event_id=event.id,
                        output_tail=event.content[-TAIL:],
                    )
                )
            case ((a.FileWrite() | a.FileEdit()), (o.FileWriteResult() | o.FileEditResult())):
                if event.path not in self.files_touched:
                    self.files_touched.append(event.path)
            case _:
                pass
