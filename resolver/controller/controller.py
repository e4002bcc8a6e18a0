"""The loop: feed the state to the agent, add its action to the stream, see what came of it.

Synchronous, one thread. An action is in the log, and everybody was told of it, before it is judged
(confirmation.py), and it is judged before it is done. Nothing that matters is kept here: on a log
that was cut off at any event `run` goes on where it was.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from resolver.agents.base import Agent
from resolver.agents.replies import has_more
from resolver.config.templates import render
from resolver.controller import delegation
from resolver.controller.confirmation import Confirmation, Gate
from resolver.controller.control import Control
from resolver.controller.limits import check_limits, limit_warning, share_of
from resolver.controller.outcome import derive_outcome
from resolver.controller.recovery import OUTSIDE, unanswered_actions
from resolver.controller.requests import MAX_PAUSE, Level, Requests
from resolver.controller.stuck import StuckDetector
from resolver.errors import LimitReached, ResolverError, RunStopped, UsageError
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ActionBase, ObservationBase, Source
from resolver.events.lifecycle import Condensation, Warned
from resolver.events.log import SANDBOX_ACTIONS, Observation, SandboxAction
from resolver.events.state import State
from resolver.events.stream import Clock, EventStream
from resolver.memory.skills.recalling import NothingRecalled, Recaller
from resolver.models.run import Declined, Outcome, RunLimits, RunState

logger = logging.getLogger("resolver.controller")

MOST_AUTO_REPLIES = 3
"""How often in a row an agent that waits for a person is told to go on by itself."""

ENDS = frozenset(
    {
        RunState.FINISHED,
        RunState.REJECTED,
        RunState.ERROR,
        RunState.STOPPED,
        RunState.STUCK,
        RunState.LIMIT,
        RunState.REFUSED,
    }
)
"""States in which a run is over."""

ENDED_BY: Mapping[Declined, RunState] = {
    "": RunState.FINISHED,
    "cannot_reproduce": RunState.REJECTED,
    "already_fixed": RunState.REJECTED,
    "not_wanted": RunState.REJECTED,
    "needs_answer": RunState.AWAITING_USER_INPUT,
}
"""What a Finish leads to."""

AWAITING = frozenset({RunState.AWAITING_USER_INPUT, RunState.AWAITING_CONFIRMATION})
"""States that are an end as well, where nobody answers."""


class Executor(Protocol):
    """Does a sandbox action. Raises SandboxError when the sandbox is lost."""

    def execute(self, action: SandboxAction) -> Observation: ...


class CondensingView(Protocol):
    """Chooses what the conversation may forget; None when nothing more can go."""

    def condense(self, state: State) -> Condensation | None: ...


Condensers = Callable[[EventStream], CondensingView]
"""Makes the condenser of one agent's log. What it has to tell beside its answer goes on the stream.
"""


Hosted = Mapping[type[ActionBase], Callable[[Any], ObservationBase]]
NOTHING_HOSTED: Hosted = {}
NOTHING_ASKED = Confirmation()


class AgentController:
    """Runs one agent to an end or a limit.

    stream: the run's bus; `state` must already be subscribed to it, before this controller.
        The bounds are `state.limits`.
    condensers: makes this agent's condenser, and those of its delegates.
    executor: does the sandbox actions.
    now: the stream's clock.
    control: where requests of people wait; taken between two steps.
    most: the largest totals to which a person's request may extend the limits; None is no bound.
    max_pause: seconds that a pause may last; then the run is stopped, and can be continued.
    delegates: makes the agents of delegates; None refuses to delegate.
    hosted: what the host does itself and not the sandbox, by the type of the action. It raises
        nothing: a failure is an ErrorObservation.
    confirmation: which actions are refused, or wait for a person.
    recaller: knows which instructions and skills the agent is told next.
    parent: the controller of the run that this one is a delegate of; requests go by its rules.
    """

    def __init__(
        self,
        agent: Agent,
        stream: EventStream,
        state: State,
        executor: Executor,
        condensers: Condensers,
        now: Clock,
        *,
        control: Control | None = None,
        most: RunLimits | None = None,
        max_pause: float = MAX_PAUSE,
        delegates: delegation.Delegates | None = None,
        hosted: Hosted = NOTHING_HOSTED,
        recaller: Recaller | None = None,
        confirmation: Confirmation = NOTHING_ASKED,
        parent: "AgentController | None" = None,
    ) -> None:
        self._agent = agent
        self._stream = stream
        self._state = state
        self._executor = executor
        self._condensers = condensers
        self._condenser = condensers(stream)
        self._now = now
        self._delegates = delegates
        self._hosted = hosted
        self._recaller = recaller or NothingRecalled()
        level = Level(stream, state)
        self._requests: Requests = (
            parent._requests.below(level)
            if parent
            else Requests(control or Control(), (level,), now, most, max_pause)
        )
        self._stuck = StuckDetector()
        self._stopped: RunStopped | None = None
        self._gate = Gate(confirmation, self._requests, stream, state, now)

    def run(self) -> Outcome:
        """Step until done or stopped. Never raises for what happens inside a step.

        On a log that was loaded it goes on behind its last event; on one that has ended it gives
        that outcome at once, unless the caller has put the state back to RUNNING.
        """
        if self._state.run_state not in ENDS:
            self._guarded(self._begin)
        while self._state.run_state is RunState.RUNNING:
            self._guarded(self._step)
        return derive_outcome(self._state)

    def _guarded(self, part: Callable[[], None]) -> None:
        try:
            part()
        except LimitReached as limit:
            self._enter(RunState.LIMIT, limit.what)
        except RunStopped as stopped:
            self._stopped = stopped
            self._enter(RunState.STOPPED, stopped.what)
        except ResolverError as error:
            self._enter(RunState.ERROR, error.what, error)
        except Exception as error:
            logger.exception("a step failed")
            self._enter(RunState.ERROR, f"a fault of Resolver itself: {error!r}")

    def _begin(self) -> None:
        """Settle what a log that was cut off still owes; nothing in a new one."""
        if self._state.run_state in {RunState.LOADING, RunState.PAUSED}:
            self._enter(RunState.RUNNING)
        owed = unanswered_actions(self._state)
        for action in owed:
            self._settle(action)
        if not owed and self._state.run_state in AWAITING:
            self._enter(RunState.RUNNING)

    def _settle(self, action: ActionBase) -> None:
        if isinstance(action, OUTSIDE) and not self._gate.holds(action):
            words = render("agent/interrupted.md.j2").strip()
            self._observe(action, o.ErrorObservation(content=words, code="interrupted"))
        else:
            self._answer(action)

    def _step(self) -> None:
        self._requests.obey_all()
        # What a reply asks for beside its first action is paid for, and it was written before
        # anything that could be told now.
        in_reply = has_more(self._state)
        self._check_limits(in_reply)
        if not in_reply and not self._prepare_asking():
            return
        self._answer(self._stream.add(self._agent.step(self._state)))

    def _check_limits(self, in_reply: bool) -> None:
        try:
            check_limits(self._state, self._now())
        except LimitReached as reached:
            if reached.limit == "time" or not in_reply:
                raise

    def _prepare_asking(self) -> bool:
        """All that a model is told, or spared, before it is asked; False when the run has ended."""
        warning = limit_warning(self._state, self._now())
        if warning:
            self._stream.add(warning)
        if self._is_stuck():
            return False
        for recall, result in self._recaller.recall(self._state):
            self._observe(self._stream.add(recall), result)
        condensation = self._condenser.condense(self._state)
        if condensation:
            self._stream.add(condensation)
        return True

    def _answer(self, action: ActionBase) -> None:
        """Do the action, or what is to be done about it."""
        match action:
            case a.Finish(declined=declined):
                self._enter(ENDED_BY[declined], _first_line(action.message) if declined else "")
            case a.Reject(reason=reason):
                self._enter(RunState.REJECTED, reason)
            case a.ChangeAgentState(state=wanted, reason=reason):
                self._enter(wanted, reason)
            case a.Message(wait_for_response=True):
                self._wait(action)
            case a.Message() | a.Think():
                self._observe(action, o.Null())
            case a.PlanUpdate():
                self._observe(action, o.PlanUpdated(content="The plan is noted."))
            case a.Delegate():
                self._delegate(action)
            case a.Invalid(reason=reason):
                self._refuse(action, reason, "invalid")
            case a.CondensationRequest():
                self._condense_or_fail()
            case _ if type(action) in self._hosted:
                self._do(action, self._hosted[type(action)])
            case _ if isinstance(action, SANDBOX_ACTIONS):
                self._do(action, self._executor.execute)
            case _:
                kind = getattr(action, "kind", "")
                self._refuse(action, render("agent/unavailable.md.j2", kind=kind), "unavailable")

    def _observe(self, action: ActionBase, observation: ObservationBase) -> None:
        self._stream.add(observation.model_copy(update={"cause": action.id}))

    def _refuse(self, action: ActionBase, why: str, code: str) -> None:
        self._observe(action, o.ErrorObservation(content=why.strip(), code=code))

    def _do(self, action: ActionBase, how: Callable[[Any], ObservationBase]) -> None:
        """Do it if it may be done; where a person has not agreed yet the run ends waiting."""
        verdict = self._gate.judge(action)
        if verdict.allowed:
            self._observe(action, how(action))
        elif verdict.answer is not None:
            self._observe(action, verdict.answer)

    def _wait(self, question: a.Message) -> None:
        """The answer of a person who is there; else an automatic one, a bounded number of times.
        Without an answer the run ends with its question."""
        if self._state.run_state is not RunState.AWAITING_USER_INPUT:
            self._enter(RunState.AWAITING_USER_INPUT, _first_line(question.content))
        words = self._requests.answer()
        if words is not None:
            self._stream.add(a.Message(content=words, source=Source.USER))
        elif self._state.auto_replies < MOST_AUTO_REPLIES:
            words = render("agent/continue.md.j2").strip()
            self._stream.add(a.Message(content=words, source=Source.USER, cause=question.id))
        else:
            return
        self._enter(RunState.RUNNING)

    def _delegate(self, action: a.Delegate) -> None:
        """Run the delegate to its end, or on to it where the log has its beginning."""
        depth = len(self._requests.levels)
        if self._delegates is None or depth > delegation.MAX_DEPTH:
            self._refuse(action, render("agent/no_delegates.md.j2", depth=depth), "unavailable")
            return
        stream, state = delegation.open_stream(self._stream, self._state, action.id)
        may_delegate = depth < delegation.MAX_DEPTH
        try:
            agent = self._delegates(action.agent, stream, may_delegate=may_delegate)
        except UsageError as error:
            self._refuse(action, _sentences(error), "delegate")
            return
        share = state.limits if state.events else share_of(self._state, self._now())
        if share is None:
            self._refuse(action, render("agent/too_little_left.md.j2"), "delegate")
            return
        delegation.add_opening(stream, state, agent, share, action.task)
        child = AgentController(
            agent,
            stream,
            state,
            self._executor,
            self._condensers,
            self._now,
            delegates=self._delegates,
            hosted=self._hosted,
            recaller=self._recaller,
            confirmation=self._gate.confirmation,
            parent=self,
        )
        outcome = child.run()
        if outcome.state is RunState.AWAITING_CONFIRMATION:
            return  # the run waits with it, and goes on in the middle of it
        self._observe(action, delegation.delegate_result(action.agent, outcome, state))
        if child._stopped is not None:
            raise child._stopped

    def _condense_or_fail(self) -> None:
        condensation = self._condenser.condense(self._state)
        if condensation is None:
            self._enter(RunState.ERROR, "the conversation does not fit into the model's context")
        else:
            self._stream.add(condensation)

    def _is_stuck(self) -> bool:
        """Tell the agent at the first sign; end the run when it goes on all the same."""
        repeats = self._stuck.look(self._state)
        if repeats is None:
            return False
        if self._stuck.warned:
            self._enter(RunState.STUCK, f"the agent repeats itself: {repeats}")
            return True
        message = render("agent/stuck_warning.md.j2", repeats=repeats).strip()
        self._stream.add(Warned(about="stuck", message=message, to_agent=True))
        return False

    def _enter(self, state: RunState, reason: str = "", error: ResolverError | None = None) -> None:
        known = {"next_step": error.next_step, "because": error.cause} if error else {}
        self._stream.add(o.AgentStateChanged(state=state, reason=reason, **known))


def _sentences(error: ResolverError) -> str:
    """What went wrong and what to do, as a person reads it."""
    parts = (error.what.rstrip("."), error.next_step[:1].upper() + error.next_step[1:])
    return ". ".join(part.rstrip(".") for part in parts if part) + "."


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0].strip()
    return line if len(line) <= 300 else f"{line[:299]}…"
