"""Detection of runs that repeat themselves.

It detects the five patterns of OpenHands: the same action with the same result, the same action
with errors, the same words without an action, two actions in turn, and a loop of condensations.
Actions and results are compared exactly, so that no progress is mistaken for a repetition. The cost
of a step does not depend on the length of the log.
"""

from collections import deque
from dataclasses import dataclass, field

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ActionBase, ObservationBase, Source
from resolver.events.log import Event
from resolver.events.state import LogFollower, State
from resolver.models.run import RunState

MAX_REPEATS = 4
"""Number of identical actions with identical results that count as stuck."""

MAX_ERROR_REPEATS = 3
"""Number of identical actions, each answered with an error, that count as stuck."""

MAX_IDENTICAL_MESSAGES = 3
"""Number of identical messages or thoughts, with no action in between, that count as stuck."""

MAX_ROUNDS = 3
"""Number of rounds of the same two steps in turn that count as stuck."""

MAX_CONDENSATIONS = 10
"""Number of condensations in a row, without an action in between, that count as stuck."""

MAX_WAITS = 12
"""Replaces MAX_REPEATS and MAX_ROUNDS for actions that let time pass, such as waiting for a build.
"""

MIN_WAIT_SECONDS = 10.0
"""Duration from which on an action counts as one that lets time pass."""

STEPS_AFTER_WARNING = 40
"""Number of steps after a warning within which another repetition ends the run.

After that, a repetition leads to a new warning.
"""

MAX_EXCERPT_LENGTH = 160
_IGNORED_FIELDS = {
    "id", "timestamp", "cause", "tool_call", "thought", "reply", "seconds", "source", "changed",
    "security_risk", "output_file",
}  # fmt: skip


@dataclass(frozen=True)
class _Step:
    """An action with its observation. Steps are equal if both have the same content.

    is_error: the action could not be executed or raised; exit codes don't matter.
    waits: the action let time pass.
    quoted: the action as it is quoted in a description.
    """

    action: str
    result: str
    is_error: bool = field(compare=False)
    waits: bool = field(compare=False)
    quoted: str = field(compare=False)


class StuckDetector:
    """Detects repetitions at the end of one log."""

    def __init__(self) -> None:
        self._log = LogFollower()
        self._clear()

    def find_repetition(self, state: State) -> str | None:
        """Process the new events and return a description of the repetition, None if there is none.

        The description quotes the repeated actions.
        """
        new_events, is_start = self._log.read(state)
        if is_start:
            self._clear()
        for event in new_events:
            self._process(event)
        return self._find_repetition() if self._after_warning else None

    @property
    def warned(self) -> bool:
        """True if a warning was given recently, so that another repetition ends the run."""
        return self._warned_at >= 0 and self._since_warning <= STEPS_AFTER_WARNING

    def _clear(self) -> None:
        self._steps: deque[_Step] = deque(maxlen=2 * MAX_WAITS)
        self._pending_actions: dict[int, ActionBase] = {}
        self._messages: deque[str] = deque(maxlen=MAX_IDENTICAL_MESSAGES)
        self._condensations = 0
        self._warned_at = -1
        self._since_warning = 0
        self._after_warning = True

    def _clear_steps(self) -> None:
        self._steps.clear()
        self._pending_actions.clear()
        self._messages.clear()
        self._condensations = 0

    def _process(self, event: Event) -> None:
        """Process one event.

        A warning clears the steps, so that only repetitions after it count.
        """
        match event:
            case life.Warned(about="stuck"):
                self._clear_steps()
                self._warned_at, self._since_warning = event.id, 0
            case o.AgentStateChanged(state=RunState.STUCK):
                self._clear()
            case a.Message(source=Source.USER):
                if event.cause is None:  # a person wrote it: start afresh
                    self._clear()
            case life.Condensation():
                self._condensations += 1
            case a.CondensationRequest():
                pass
            case ActionBase(source=Source.AGENT):
                self._process_action(event)
            case ObservationBase():
                self._process_observation(event)
            case _:
                pass

    def _process_action(self, action: ActionBase) -> None:
        self._condensations = 0
        self._after_warning = action.reply is None or action.reply > self._warned_at
        if not self._after_warning:  # the model wrote this action before it could see the warning
            return
        match action:
            case a.Message(content=content) | a.Think(content=content):
                self._messages.append(f"{type(action).__name__} {content}")
            case _:
                self._messages.clear()
                self._pending_actions = {action.id: action}

    def _process_observation(self, observation: ObservationBase) -> None:
        action = (
            self._pending_actions.pop(observation.cause, None)
            if observation.cause is not None
            else None
        )
        if action is not None:
            self._steps.append(_step_of(action, observation))
            self._since_warning += 1

    def _find_repetition(self) -> str | None:
        if self._condensations >= MAX_CONDENSATIONS:
            return "the conversation is condensed again and again without any action in between"
        if len(self._messages) == MAX_IDENTICAL_MESSAGES and len(set(self._messages)) == 1:
            return f"the same words {MAX_IDENTICAL_MESSAGES} times without any action in between"
        steps = list(self._steps)
        if not steps:
            return None
        last = steps[-1]
        repeats = MAX_WAITS if last.waits else MAX_REPEATS
        if steps[-repeats:] == [last] * repeats:
            return f"the same action with the same result {repeats} times: {last.quoted}"
        failing = [step.action for step in steps[-MAX_ERROR_REPEATS:] if step.is_error]
        if failing == [last.action] * MAX_ERROR_REPEATS:
            return f"the same action fails {MAX_ERROR_REPEATS} times: {last.quoted}"
        pair = steps[-2:]
        rounds = MAX_WAITS if any(step.waits for step in pair) else MAX_ROUNDS
        if steps[-2 * rounds :] == pair * rounds:
            quoted = ", then ".join(step.quoted for step in pair)
            return f"the same 2 actions in turn {rounds} times: {quoted}"
        return None


def _step_of(action: ActionBase, observation: ObservationBase) -> _Step:
    raised = bool(getattr(observation, "error", False))
    return _Step(
        action=action.model_dump_json(exclude=_IGNORED_FIELDS),
        result=observation.model_dump_json(exclude=_IGNORED_FIELDS),
        is_error=raised or isinstance(observation, o.ErrorObservation),
        waits=getattr(observation, "seconds", 0.0) >= MIN_WAIT_SECONDS,
        quoted=f"`{_quote_action(action)}`",
    )


def _quote_action(action: ActionBase) -> str:
    """Return the action in one line, as a person would name it."""
    fields = ("command", "code", "path", "url", "query", "server", "name", "agent", "task")
    parts = [str(value) for field in fields if (value := getattr(action, field, ""))]
    if not isinstance(action, a.CmdRun | a.IPythonRunCell):
        parts.insert(0, str(getattr(action, "kind", "")))
    line = " ".join(" ".join(parts).split())
    return line if len(line) <= MAX_EXCERPT_LENGTH else f"{line[: MAX_EXCERPT_LENGTH - 1]}…"
