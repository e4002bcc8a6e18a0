"""Detection of runs that repeat themselves.

It detects the five patterns of OpenHands: the same action with the same result, the same action
with errors, the same words without an action, two actions in turn, and a loop of condensations.
Actions and results are compared exactly, so that no progress is mistaken for a repetition.
"""

from collections.abc import Sequence
from functools import cached_property

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ActionBase, ObservationBase, Source
from resolver.events.log import Event
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

MIN_WAIT_SECONDS = 10.0
"""Duration from which on an action lets time pass, such as waiting for a build. What is before it
is not repeated by what follows."""

STEPS_AFTER_WARNING = 40
"""Number of steps after a warning within which another repetition ends the run.

After that, a repetition leads to a new warning.
"""

MAX_EXCERPT_LENGTH = 160
_IGNORED_FIELDS = {
    "id", "timestamp", "cause", "tool_call", "thought", "reply", "seconds", "source", "changed",
    "security_risk", "output_file",
}  # fmt: skip


class _Step:
    """An action with its observation. Steps are equal if both have the same content.

    The content is rendered when it is compared: most steps already differ in their action.
    """

    def __init__(self, action: ActionBase, observation: ObservationBase) -> None:
        self._action, self._observation = action, observation

    @cached_property
    def action(self) -> str:
        return self._action.model_dump_json(exclude=_IGNORED_FIELDS)

    @cached_property
    def result(self) -> str:
        return self._observation.model_dump_json(exclude=_IGNORED_FIELDS)

    @property
    def is_error(self) -> bool:
        """True if the action could not be executed or raised; exit codes don't matter."""
        observation = self._observation
        raised = bool(getattr(observation, "error", False))
        return raised or isinstance(observation, o.ErrorObservation)

    @property
    def quoted(self) -> str:
        return f"`{_quote_action(self._action)}`"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Step) and self.action == other.action and self.result == other.result
        )

    __hash__ = None  # type: ignore[assignment]


def find_repetition(events: Sequence[Event]) -> str | None:
    """Return a description of the repetition at the end of a log, which quotes the repeated
    actions; None if there is none."""
    steps: list[_Step] = []
    words: list[str] = []
    condensations, has_acted = 0, False
    results: dict[int, ObservationBase] = {}
    for event in reversed(events):
        if _starts_afresh(event) or _is_warning(event) or len(steps) == 2 * MAX_ROUNDS:
            break
        match event:
            case life.Condensation() if not has_acted and not words:
                condensations += 1
            case a.CondensationRequest():
                pass
            case a.Message() | a.Think():
                if event.source is Source.AGENT and not has_acted:
                    words.append(f"{type(event).__name__} {event.content}")
            case ActionBase(source=Source.AGENT):
                has_acted, result = True, results.pop(event.id, None)
                if getattr(result, "seconds", 0.0) >= MIN_WAIT_SECONDS:
                    break
                if result is not None:
                    steps.append(_Step(event, result))
            case ObservationBase(cause=int(cause)):
                results[cause] = event
            case _:
                pass
    if condensations >= MAX_CONDENSATIONS:
        return "the conversation is condensed again and again without any action in between"
    if words[:1] * MAX_IDENTICAL_MESSAGES == words[:MAX_IDENTICAL_MESSAGES] and words:
        return f"the same words {MAX_IDENTICAL_MESSAGES} times without any action in between"
    return _find_repeated_steps(steps)


def _find_repeated_steps(steps: Sequence[_Step]) -> str | None:
    """Return a description of the repetition in the last steps, the last one first."""
    if not steps:
        return None
    last = steps[0]
    if steps[:MAX_REPEATS] == [last] * MAX_REPEATS:
        return f"the same action with the same result {MAX_REPEATS} times: {last.quoted}"
    failing = [step.action for step in steps[:MAX_ERROR_REPEATS] if step.is_error]
    if failing == [last.action] * MAX_ERROR_REPEATS:
        return f"the same action fails {MAX_ERROR_REPEATS} times: {last.quoted}"
    pair = steps[:2]
    if steps == [*pair] * MAX_ROUNDS:
        quoted = ", then ".join(step.quoted for step in reversed(pair))
        return f"the same 2 actions in turn {MAX_ROUNDS} times: {quoted}"
    return None


def was_warned(events: Sequence[Event]) -> bool:
    """Return True if the agent was warned recently, so that another repetition ends the run."""
    steps = 0
    for event in reversed(events):
        if _starts_afresh(event) or steps > STEPS_AFTER_WARNING:
            return False
        if _is_warning(event):
            return True
        steps += isinstance(event, ActionBase) and event.source is Source.AGENT
    return False


def _is_warning(event: Event) -> bool:
    return isinstance(event, life.Warned) and event.about == "stuck"


def _starts_afresh(event: Event) -> bool:
    """Return True if a person wrote, or the run has ended because it was stuck."""
    if isinstance(event, a.Message):
        return event.source is Source.USER and event.cause is None
    return isinstance(event, o.AgentStateChanged) and event.state is RunState.STUCK


def _quote_action(action: ActionBase) -> str:
    """Return the action in one line, as a person would name it."""
    fields = ("command", "code", "path", "url", "query", "server", "name", "agent", "task")
    parts = [str(value) for field in fields if (value := getattr(action, field, ""))]
    if not isinstance(action, a.CmdRun | a.IPythonRunCell):
        parts.insert(0, str(getattr(action, "kind", "")))
    line = " ".join(" ".join(parts).split())
    return line if len(line) <= MAX_EXCERPT_LENGTH else f"{line[: MAX_EXCERPT_LENGTH - 1]}…"
