"""The state of a run, derived from its events by a fold and from nothing else.

The same events always give the same state; a prefix of the events gives the state at that point.
"""

from collections.abc import Iterable
from datetime import datetime

from pydantic import Field

from resolver.errors import Cause
from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ActionBase, EventBase, Source
from resolver.events.log import Event, parse_logged_event
from resolver.models.base import FrozenModel
from resolver.models.run import CheckedCommand, Completion, PlanItem, RunLimits, RunState, Tokens
from resolver.models.truncate import keep_last_lines

MAX_OUTPUT_TAIL = 2_000
"""Number of characters of output kept per command in `State.commands`."""

IDLE_STATES = frozenset({RunState.PAUSED, RunState.AWAITING_CONFIRMATION})
"""States in which the time of the run does not advance, because it waits for a person."""


class ModelMetrics(FrozenModel):
    """The calls of one model or one service, and their cost in US dollars."""

    calls: int = Field(default=0, description="Number of calls.")
    cost: float | None = Field(
        default=0.0, description="Their cost; null if the price of a reply is unknown."
    )
    priced: float = Field(default=0.0, description="Cost of the replies with a known price.")
    tokens: Tokens = Field(default=Tokens(), description="Tokens of their replies.")
    seconds: float = Field(default=0.0, description="Time that they took in all.")

    def plus(self, completion: Completion) -> "ModelMetrics":
        """Return the metrics with one more reply."""
        unknown = self.cost is None or completion.cost is None
        priced = self.priced + (completion.cost or 0.0)
        return ModelMetrics(
            calls=self.calls + 1,
            cost=None if unknown else priced,
            priced=priced,
            tokens=self.tokens + completion.tokens,
            seconds=self.seconds + completion.latency,
        )


class State:
    """The state of the run after the events seen so far. Only `apply` changes it.

    events: all events; the index is the id.
    limits: the limits in force: those at the start of the run, or their last extension.
    iterations: number of the model's replies so far, including those to delegates.
    cost: US dollars; None if the price of any reply is unknown.
    metrics: usage and cost per model, by its name.
    services: the same per service that made the call, as agent or condenser.
    priced: US dollars of the replies with a known price. The budget is compared with this value.
    pending: executable actions without an observation yet, by their id.
    commands: commands that ended, with exit codes, in order, including those of delegates.
    files_touched: repository paths that actions changed, including those of delegates.
    changed_files: number of files that differ from the base commit after the last action; None if
        the log does not have it.
    plan: the last version of the agent's plan.
    warned: topics of the warnings so far (`Warned.about`). After an extension of the limits,
        warnings about limits are issued again.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.run_state = RunState.LOADING
        self.reason: str | None = None
        self.next_step: str | None = None
        self.because: Cause | None = None
        self.iterations = 0
        self.tokens = Tokens()
        self.metrics: dict[str, ModelMetrics] = {}
        self.services: dict[str, ModelMetrics] = {}
        self.priced = 0.0
        self.unpriced = 0
        self.limits = RunLimits()
        self.seconds = 0.0
        self.last_at: datetime | None = None
        self.finish: a.Finish | None = None
        self.pending: dict[int, EventBase] = {}
        self.commands: list[CheckedCommand] = []
        self._begun_commands: dict[tuple[int | None, ...], str] = {}
        self.files_touched: list[str] = []
        self.changed_files: int | None = None
        self.plan: tuple[PlanItem, ...] = ()
        self.divergences: list[life.ReplayDiverged] = []
        self.auto_replies = 0
        self.warned: set[str] = set()

    @classmethod
    def fold(cls, events: Iterable[Event]) -> "State":
        """Return the state after `events`."""
        state = cls()
        for event in events:
            state.apply(event)
        return state

    @property
    def cost(self) -> float | None:
        """Cost so far in US dollars; None if the price of any reply is unknown."""
        return None if self.unpriced else self.priced

    def elapsed(self, now: datetime) -> float:
        """Return the seconds that the run has worked until `now`.

        Pauses, and times in which no process executed the run, are not counted.
        """
        if self.last_at is None or self.run_state in IDLE_STATES:
            return self.seconds
        return self.seconds + max(0.0, (now - self.last_at).total_seconds())

    def apply(self, event: Event) -> None:
        """Update the state with the next event."""
        self.events.append(event)
        if not isinstance(event, life.Resumed):
            self.seconds = self.elapsed(event.timestamp)
        self.last_at = event.timestamp
        if isinstance(event, ActionBase) and event.observation:
            self.pending[event.id] = event
        elif event.cause is not None:
            self.pending.pop(event.cause, None)
        self._count(event, event.id)
        match event:
            case life.RunStarted(limits=limits):
                self.limits = limits
            case life.LimitsExtended(limits=limits):
                self.limits = limits
                self.warned = {w for w in self.warned if not w.startswith("limit:")}
            case life.ReplayDiverged():
                self.divergences.append(event)
            case life.Warned(about=about):
                self.warned.add(about)
            case a.PlanUpdate(items=items):
                self.plan = items
            case o.AgentStateChanged(state=new, reason=reason):
                self.run_state, self.reason = new, reason
                self.next_step, self.because = event.next_step, event.because
            case a.Finish():
                self.finish = event
            case a.Message(source=Source.USER):
                self.auto_replies = 0 if event.cause is None else self.auto_replies + 1
            case _:
                pass

    def _count(self, event: Event, event_id: int, path: tuple[int, ...] = ()) -> None:
        """Add what counts for the whole run, whether the agent or a delegate of it has done it.

        event_id: of the event in this log. path: ids of the delegations that led to the event.
        """
        match event:
            case life.DelegateEvent(delegate=delegate):
                self._count(parse_logged_event(event.event), event_id, (*path, delegate))
            case life.ModelReplied(completion=completion):
                self.iterations += 1
                self._add_completion(completion, life.AGENT)
            case life.ServiceReplied(completion=completion, service=service):
                self._add_completion(completion, service)
            case a.CmdRun(is_input=False, source=Source.AGENT):
                self._begun_commands[*path, event.id] = event.command
            case o.SandboxObservation(changed=changed):
                if changed is not None:
                    self._add_changes(changed)
                command = self._begun_commands.pop((*path, event.cause), None)
                if command is not None and isinstance(event, o.CmdOutput):
                    self._add_command(command, event, event_id)
            case _:
                pass

    def _add_completion(self, completion: Completion, service: str) -> None:
        self.tokens = self.tokens + completion.tokens
        for metrics, name in ((self.metrics, completion.model), (self.services, service)):
            metrics[name] = metrics.get(name, ModelMetrics()).plus(completion)
        if completion.cost is None:
            self.unpriced += 1
        else:
            self.priced += completion.cost

    def _add_command(self, command: str, output: o.CmdOutput, event_id: int) -> None:
        checked = CheckedCommand(
            command=command,
            exit_code=output.exit_code,
            event_id=event_id,
            output_tail=keep_last_lines(output.content, MAX_OUTPUT_TAIL),
        )
        self.commands.append(checked)

    def _add_changes(self, changed: o.ChangedPaths) -> None:
        self.changed_files = changed.differing
        known = set(self.files_touched)
        self.files_touched += [path for path in changed.paths if path not in known]


class LogFollower:
    """Follows the log of an agent over many states: finds the events that are new in each."""

    def __init__(self) -> None:
        self._count = 0
        self._last: Event | None = None

    def read(self, state: State) -> tuple[list[Event], bool]:
        """Return the new events, and True if they are the first ones of a log.

        They are if nothing was read before, or the state does not continue what was read: nothing
        that is known from earlier calls applies then.
        """
        events, count = state.events, self._count
        is_start = not count or len(events) < count or events[count - 1] is not self._last
        self._count, self._last = len(events), events[-1] if events else None
        return events[0 if is_start else count :], is_start
