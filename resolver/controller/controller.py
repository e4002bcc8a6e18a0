"""The loop: feed the state to the agent, add its action to the stream, see what came of it.

Synchronous, one thread. The runtime is a subscriber of the stream: by the time `add(action)`
returns, the observation is in the log and in the state.
"""

import logging
from typing import Protocol

from resolver.agents.base import Agent
from resolver.controller.limits import check_limits, limit_warning
from resolver.controller.outcome import outcome_of
from resolver.controller.stuck import find_repetition
from resolver.errors import LimitReached, ResolverError, Stopped
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ActionBase, ObservationBase, Source
from resolver.events.lifecycle import Condensation, Warned
from resolver.events.log import SANDBOX_ACTIONS, Event, Observation, SandboxAction
from resolver.events.state import State
from resolver.events.stream import Clock, EventStream
from resolver.model import Limits, Outcome, RunState
from resolver.templates import render

logger = logging.getLogger("resolver.controller")

MOST_AUTO_REPLIES = 3
"""How often an agent that waits for a person is told to go on by itself."""


class Executor(Protocol):
    """Does a sandbox action. Raises SandboxError when the sandbox is lost."""

    def execute(self, action: SandboxAction) -> Observation: ...


class Condenser(Protocol):
    """Chooses what the conversation may forget; None when nothing more can go."""

    def condense(self, state: State) -> Condensation | None: ...


class AgentController:
    """Runs one agent to an end or a limit.

    stream: the run's bus; `state` must already be subscribed to it, before this controller.
    executor: does the sandbox actions; subscribed here under the role "runtime".
    now: the stream's clock.
    """

    def __init__(
        self,
        agent: Agent,
        stream: EventStream,
        state: State,
        executor: Executor,
        condenser: Condenser,
        limits: Limits,
        now: Clock,
    ) -> None:
        self._agent = agent
        self._stream = stream
        self._state = state
        self._executor = executor
        self._condenser = condenser
        self._limits = limits
        self._now = now
        self._limit: str | None = None
        stream.subscribe("runtime", self._execute, essential=True)

    def run(self) -> Outcome:
        """Step until done or stopped. Never raises for what happens inside a step."""
        self._enter(RunState.RUNNING)
        while self._state.run_state is RunState.RUNNING:
            self._guarded_step()
        return outcome_of(self._state, self._limit)

    def _guarded_step(self) -> None:
        try:
            self._step()
        except LimitReached as limit:
            self._limit = limit.limit
            self._enter(RunState.LIMIT, limit.what)
        except Stopped as stopped:
            self._enter(RunState.STOPPED, stopped.what)
        except ResolverError as error:
            self._enter(RunState.ERROR, _sentences(error))
        except Exception as error:
            logger.exception("a step failed")
            self._enter(RunState.ERROR, f"a fault of Resolver itself: {error!r}")

    def _step(self) -> None:
        check_limits(self._state, self._limits, self._now())
        warning = limit_warning(self._state, self._limits, self._now())
        if warning:
            self._stream.add(warning)
        if self._is_stuck():
            return
        condensation = self._condenser.condense(self._state)
        if condensation:
            self._stream.add(condensation)
        action = self._stream.add(self._agent.step(self._state))
        self._answer(action)

    def _answer(self, action: ActionBase) -> None:
        """What the controller itself does about an action that the sandbox does not do."""
        match action:
            case a.Finish():
                self._enter(RunState.FINISHED)
            case a.Reject(reason=reason):
                self._enter(RunState.REJECTED, reason)
            case a.ChangeAgentState(state=wanted, reason=reason):
                self._enter(wanted, reason)
            case a.Message(wait_for_response=True):
                self._reply(action)
            case a.Message() | a.Think():
                self._observe(action, o.Null())
            case a.Invalid(reason=reason):
                self._observe(action, o.ErrorObservation(content=reason, code="invalid"))
            case a.CondensationRequest():
                self._condense_or_fail()
            case _ if not isinstance(action, SANDBOX_ACTIONS):
                reason = render("agent/unavailable.md.j2", kind=getattr(action, "kind", "")).strip()
                self._observe(action, o.ErrorObservation(content=reason, code="unavailable"))
            case _:
                pass

    def _observe(self, action: ActionBase, observation: ObservationBase) -> None:
        self._stream.add(observation.model_copy(update={"cause": action.id}))

    def _execute(self, event: Event) -> None:
        if isinstance(event, SANDBOX_ACTIONS):
            self._observe(event, self._executor.execute(event))

    def _reply(self, action: a.Message) -> None:
        if self._state.auto_replies >= MOST_AUTO_REPLIES:
            self._enter(RunState.STOPPED, "the agent waits for an answer and nobody is there")
            return
        words = render("agent/continue.md.j2").strip()
        self._stream.add(a.Message(content=words, source=Source.USER, cause=action.id))

    def _condense_or_fail(self) -> None:
        condensation = self._condenser.condense(self._state)
        if condensation is None:
            self._enter(RunState.ERROR, "the conversation does not fit into the model's context")
        else:
            self._stream.add(condensation)

    def _is_stuck(self) -> bool:
        """Tell the agent at the first sign; end the run when it goes on all the same."""
        since = self._told_at()
        repeats = find_repetition(self._state.events, since) if since is not None else None
        if repeats is None:
            return False
        if since:
            self._enter(RunState.STUCK, f"the agent repeats itself: {repeats}")
            return True
        message = render("agent/stuck_warning.md.j2", repeats=repeats).strip()
        self._stream.add(Warned(about="stuck", message=message, to_agent=True))
        return False

    def _told_at(self) -> int | None:
        """Id of the first action that can know of the warning; 0 when there was no warning yet,
        None while the rest of an earlier reply is done."""
        warned_at = self._state.last_stuck_warning
        if warned_at < 0:
            return 0
        for event in self._state.events[warned_at + 1 :]:
            if not isinstance(event, ActionBase) or event.source is not Source.AGENT:
                continue
            if event.reply is None or event.reply > warned_at:
                return event.id
        return None

    def _enter(self, state: RunState, reason: str = "") -> None:
        self._stream.add(o.AgentStateChanged(state=state, reason=reason))


def _sentences(error: ResolverError) -> str:
    """What went wrong and what to do, as a person reads it."""
    parts = (error.what.rstrip("."), error.next_step[:1].upper() + error.next_step[1:])
    return ". ".join(part.rstrip(".") for part in parts if part) + "."
