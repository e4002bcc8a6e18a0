"""The step loop: query the agent with the state, append its action to the log, execute it.

It is synchronous and uses one thread. An action is appended to the log, and all subscribers have
seen it, before it is checked (confirmation.py); it is checked before it is executed. The controller
keeps no state of its own that matters: given a log that was cut off after any event, `run`
continues from there.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from resolver.agents.base import Agent
from resolver.agents.replies import has_pending_actions
from resolver.config.templates import render
from resolver.controller import delegation
from resolver.controller.confirmation import Confirmation, Gate
from resolver.controller.control import MAX_PAUSE_SECONDS, Control, ControlRequestHandler, Level
from resolver.controller.limits import check_limits, delegate_limits, derive_outcome, limit_warning
from resolver.controller.recovery import SANDBOX_LOST, lost_sandboxes, unanswered_actions
from resolver.controller.stuck import find_repetition, was_warned
from resolver.errors import (
    LimitReached,
    ResolverError,
    RunStopped,
    SandboxLost,
    StepInterrupted,
    UsageError,
)
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.actions import SandboxAction
from resolver.events.base import ActionBase, ObservationBase, Source
from resolver.events.lifecycle import Warned
from resolver.events.state import State
from resolver.events.stream import Clock, EventStream
from resolver.memory.condensers.view import LogCondenser
from resolver.memory.skills.library import Library
from resolver.memory.skills.recaller import SkillRecaller
from resolver.models.run import (
    AWAITING_STATES,
    FINAL_STATES,
    DeclineReason,
    Outcome,
    RunLimits,
    RunState,
)

logger = logging.getLogger("resolver.controller")

MAX_AUTO_REPLIES = 3
"""Maximum number of consecutive automatic replies to an agent that waits for a person."""

MAX_LOST_SANDBOXES = 2
"""Number of sandboxes that may end during the same action. The action is then the likely cause, so
the agent is told instead of repeating it."""

STATE_BY_DECLINED_REASON: Mapping[DeclineReason | None, RunState] = {
    None: RunState.FINISHED,
    "answered": RunState.FINISHED,
    "cannot_reproduce": RunState.REJECTED,
    "already_fixed": RunState.REJECTED,
    "not_wanted": RunState.REJECTED,
    "needs_answer": RunState.AWAITING_USER_INPUT,
}
"""The state that each `declined` reason of a `Finish` leads to."""


class Executor(Protocol):
    """Executes actions in the sandbox."""

    def execute(self, action: SandboxAction) -> ObservationBase:
        """Return the result of the action. Raises SandboxLost if the sandbox has ended or
        hangs, and SandboxError if it can't be used any more."""
        ...


Condensers = Callable[[EventStream], LogCondenser]
"""Creates the condenser for one agent's log.

The condenser may add events to that stream, like warnings and the replies of its model.
"""


HostHandlers = Mapping[type[ActionBase], Callable[[Any], ObservationBase]]
"""Functions that execute actions on the host instead of in the sandbox, by type of action. A hosted
function returns an ErrorObservation for a failure and raises nothing."""


@dataclass(frozen=True)
class ControllerParts:
    """What the controllers of a run and of its delegates share.

    executor: executes actions in the sandbox.
    condensers: creates the condensers of the agent and its delegates.
    now: the clock of the stream.
    control: the queue of people's requests; they are handled between two steps.
    max_limits: the highest totals to which requests may extend the limits; None means no maximum.
    max_pause: seconds after which a paused run is stopped; it can be resumed later.
    delegates: creates the agents of delegates; with None, delegation is refused.
    recaller: decides which instructions and skills the agent gets next.
    confirmation: which actions are refused, or wait for a person.
    """

    executor: Executor
    condensers: Condensers
    now: Clock
    control: Control = field(default_factory=Control)
    max_limits: RunLimits | None = None
    max_pause: float = MAX_PAUSE_SECONDS
    delegates: delegation.Delegates | None = None
    host_handlers: HostHandlers = field(default_factory=dict)
    recaller: SkillRecaller = field(default_factory=lambda: SkillRecaller(Library()))
    confirmation: Confirmation = field(default_factory=Confirmation)


class AgentController:
    """Runs one agent until it finishes, fails or reaches a limit.

    stream: the event stream of the run. `state`, which has the limits, must be subscribed to it
    already, before this controller.
    parent: takes the requests of the run that this one is a delegate of; None for the run itself.
    """

    def __init__(
        self,
        agent: Agent,
        stream: EventStream,
        state: State,
        parts: ControllerParts,
        parent: ControlRequestHandler | None = None,
    ) -> None:
        self._agent = agent
        self._stream = stream
        self._state = state
        self._parts = parts
        self._condenser = parts.condensers(stream)
        level = Level(stream, state)
        self._requests = (
            parent.for_delegate(level)
            if parent
            else ControlRequestHandler(
                parts.control, (level,), parts.now, parts.max_limits, parts.max_pause
            )
        )
        self._stopped: RunStopped | None = None
        self._gate = Gate(parts.confirmation, self._requests, stream, state)

    def run(self) -> Outcome:
        """Step until the run has ended and return its outcome.

        Only SandboxLost propagates: the run then continues with another controller on its log.

        A loaded log is continued after its last event. If that run has ended, its outcome is
        returned, unless the caller has set the state back to RUNNING.
        """
        if self._state.run_state not in FINAL_STATES:
            self._run_guarded(self._begin)
        while self._state.run_state is RunState.RUNNING:
            self._run_guarded(self._step)
        return derive_outcome(self._state)

    def _run_guarded(self, part: Callable[[], None]) -> None:
        """Execute a part of the run, and enter the state that its error leads to."""
        try:
            part()
        except LimitReached as limit:
            self._enter(RunState.LIMIT, limit.what)
        except RunStopped as stopped:
            self._enter(RunState.STOPPED, stopped.what)
            self._stopped = stopped
        except StepInterrupted:
            pass  # the next step raises what the reason is
        except SandboxLost:
            raise
        except ResolverError as error:
            self._enter(RunState.ERROR, error.what, error)
        except Exception as error:
            logger.exception("a step failed")
            self._enter(RunState.ERROR, f"an internal error of Resolver: {error!r}")

    def _begin(self) -> None:
        """Handle the actions whose results are missing in a loaded log, if there are any."""
        if self._state.run_state in {RunState.LOADING, RunState.PAUSED}:
            self._enter(RunState.RUNNING)
        unanswered = unanswered_actions(self._state)
        for action in unanswered:
            self._settle_unanswered(action)
        if not unanswered and self._state.run_state in AWAITING_STATES:
            self._enter(RunState.RUNNING)

    def _settle_unanswered(self, action: ActionBase) -> None:
        if action.is_external and not self._gate.is_held(action):
            content = render("agent/interrupted.md.j2").strip()
            self._observe(action, o.ErrorObservation(content=content, code="interrupted"))
        elif lost_sandboxes(self._state, action) >= MAX_LOST_SANDBOXES:
            content = render("agent/sandbox_lost.md.j2", count=MAX_LOST_SANDBOXES).strip()
            self._observe(action, o.ErrorObservation(content=content, code=SANDBOX_LOST))
        else:
            self._handle(action)

    def _step(self) -> None:
        self._requests.handle_all()
        # All actions of a reply are paid for already, and the model wrote them before it could
        # see a new warning: only the time limit ends the run in the middle of a reply.
        in_reply = has_pending_actions(self._state)
        self._check_limits(in_reply)
        if not in_reply and not self._prepare_query():
            return
        self._handle(self._stream.add(self._agent.step(self._state)))

    def _check_limits(self, in_reply: bool) -> None:
        try:
            check_limits(self._state, self._parts.now())
        except LimitReached as error:
            if error.limit == "time" or not in_reply:
                raise

    def _prepare_query(self) -> bool:
        """Add warnings, skills and a condensation for the model. Return False if the run ended."""
        warning = limit_warning(self._state, self._parts.now())
        if warning:
            self._stream.add(warning)
        if self._is_stuck():
            return False
        for recall, result in self._parts.recaller.recall(self._state):
            self._observe(self._stream.add(recall), result)
        condensation = self._condenser.condense(self._state)
        if condensation:
            self._stream.add(condensation)
        return True

    def _handle(self, action: ActionBase) -> None:
        """Execute the action, or handle it in the controller."""
        match action:
            case a.Finish(declined=declined):
                self._enter(
                    STATE_BY_DECLINED_REASON[declined],
                    _first_line(action.message) if declined else None,
                )
            case a.Reject(reason=reason):
                self._enter(RunState.REJECTED, reason)
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
                self._condense_or_fail(action)
            case _ if handler := self._parts.host_handlers.get(type(action)):
                self._execute(action, handler)
            case _ if isinstance(action, SandboxAction):
                self._execute(action, self._parts.executor.execute)
            case _:
                kind = getattr(action, "kind", "")
                self._refuse(action, render("agent/unavailable.md.j2", kind=kind), "unavailable")

    def _observe(self, action: ActionBase, observation: ObservationBase) -> None:
        self._stream.add(observation.model_copy(update={"cause": action.id}))

    def _refuse(self, action: ActionBase, reason: str, code: str) -> None:
        self._observe(action, o.ErrorObservation(content=reason.strip(), code=code))

    def _execute(self, action: ActionBase, execute: Callable[[Any], ObservationBase]) -> None:
        """Execute the action if the gate allows it. Add nothing if it waits for approval."""
        decision = self._gate.check(action)
        if isinstance(decision, o.ErrorObservation):
            self._observe(action, decision)
        elif decision == "allowed":
            try:
                observation = execute(action)
            except SandboxLost as error:
                # In the log of this agent, so that the next controller knows during which action.
                self._stream.add(Warned(about=SANDBOX_LOST, message=error.what))
                raise
            self._observe(action, observation)

    def _wait(self, question: a.Message) -> None:
        """Add a person's answer or, a limited number of times, an automatic one."""
        if self._state.run_state is not RunState.AWAITING_USER_INPUT:
            self._enter(RunState.AWAITING_USER_INPUT, _first_line(question.content))
        content = self._requests.answer()
        if content is not None:
            self._stream.add(a.Message(content=content, source=Source.USER))
        elif self._state.auto_replies < MAX_AUTO_REPLIES:
            content = render("agent/continue.md.j2").strip()
            self._stream.add(a.Message(content=content, source=Source.USER, cause=question.id))
        else:
            return
        self._enter(RunState.RUNNING)

    def _delegate(self, action: a.Delegate) -> None:
        """Run the delegate until it ends, or resume it if the log contains its beginning."""
        depth = len(self._requests.levels)
        delegates = self._parts.delegates
        if delegates is None or depth > delegation.MAX_DEPTH:
            self._refuse(action, render("agent/no_delegates.md.j2", depth=depth), "unavailable")
            return
        stream, state = delegation.open_stream(self._stream, self._state, action.id)
        may_delegate = depth < delegation.MAX_DEPTH
        try:
            agent = delegates(action.agent, stream, may_delegate=may_delegate)
        except UsageError as error:
            self._refuse(action, f"{error.what}; {error.next_step}", "delegate")
            return
        share = state.limits if state.events else delegate_limits(self._state, self._parts.now())
        if share is None:
            self._refuse(action, render("agent/too_little_left.md.j2"), "delegate")
            return
        delegation.add_opening(stream, state, agent, share, action.task)
        child = AgentController(agent, stream, state, self._parts, self._requests)
        outcome = child.run()
        if outcome.state is RunState.AWAITING_CONFIRMATION:
            return  # the whole run waits; later it resumes in the middle of the delegate
        self._observe(action, delegation.delegate_result(action.agent, outcome, state))
        if child._stopped is not None:
            raise child._stopped

    def _condense_or_fail(self, request: a.CondensationRequest) -> None:
        condensation = self._condenser.condense(self._state)
        if condensation is None:
            self._enter(RunState.ERROR, render("agent/too_long.md.j2", request=request).strip())
        else:
            self._stream.add(condensation)

    def _is_stuck(self) -> bool:
        """Warn the agent of a first repetition, end the run at another; return True then."""
        repeats = find_repetition(self._state.events)
        if repeats is None:
            return False
        if was_warned(self._state.events):
            self._enter(RunState.STUCK, repeats)
            return True
        message = render("agent/stuck_warning.md.j2", repeats=repeats).strip()
        self._stream.add(Warned(about="stuck", message=message, to_agent=True))
        return False

    def _enter(
        self, state: RunState, reason: str | None = None, error: ResolverError | None = None
    ) -> None:
        details = {"next_step": error.next_step, "because": error.cause} if error else {}
        self._stream.add(o.AgentStateChanged(state=state, reason=reason, **details))


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0].strip()
    return line if len(line) <= 300 else f"{line[:299]}…"
