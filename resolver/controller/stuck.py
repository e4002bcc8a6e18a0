"""Detection of runs that repeat themselves.

It works incrementally: the cost of a step does not depend on the length of the log.

It detects the five patterns of OpenHands (the same action with the same result, the same action
with errors, a monologue, alternating actions, a loop of condensations) and repetitions that differ
only in numbers. Differences that nobody chose (temporary paths, hashes, times) are ignored.

There are two levels of masking: `normalize_output` masks what differs between any two executions
and nobody chose (temporary paths, memory addresses, hashes, times, durations); `mask_numbers` masks
all numbers too.
"""

import re
from collections import deque
from functools import cached_property

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ActionBase, EventBase, ObservationBase, Source
from resolver.events.log import Event
from resolver.events.state import LogFollower, State
from resolver.models.run import RunState

_VARYING_TEXT = re.compile(
    r"/(?:tmp|var/tmp|var/folders|dev/shm)/[\w.+@%/-]+"  # temporary paths
    r"|\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"  # UUIDs
    r"|\b0x[0-9a-fA-F]+\b"  # addresses in memory
    r"|\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b"  # hashes
    r"|\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?"  # dates
    r"|\b\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?\b"  # times of day
    r"|\b1[5-9]\d{8}(?:\.\d+|\d{3})?\b"  # seconds and milliseconds since 1970, from 2017 on
    r"|\b\d+(?:\.\d+)?\s?(?:ns|us|µs|ms|s|secs?|seconds?|mins?|minutes?|h|hours?)\b"  # durations
    r"|\b(?:pid|PID)[ =:]+\d+"
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")

MAX_COMPARED_LENGTH = 65_536
"""Maximum length that is compared, in characters.

Of a longer text the head, the tail and the length are kept.
"""


def normalize_output(text: str) -> str:
    """Return `text` with everything masked that differs between executions of one command."""
    if len(text) > MAX_COMPARED_LENGTH:
        half = MAX_COMPARED_LENGTH // 2
        text = f"{text[:half]}[{len(text) - MAX_COMPARED_LENGTH}]{text[-half:]}"
    return _VARYING_TEXT.sub("#", text)


def mask_numbers(text: str) -> str:
    """Return `text`, already normalized, with all numbers masked."""
    return _NUMBER.sub("#", text)


MAX_REPEATS = 4
"""Number of identical actions with identical results that count as stuck."""

MAX_ERROR_REPEATS = 3
"""Number of identical actions, each answered with an error, that count as stuck."""

MAX_IDENTICAL_MESSAGES = 3
"""Number of identical messages or thoughts, with no action in between, that count as stuck."""

MAX_ROUNDS = 3
"""Number of rounds of the same two, three or four steps in turn that count as stuck."""

PERIODS = (2, 3, 4)
"""Lengths of the cycles that are looked for."""
MAX_CONDENSATIONS = 10
"""Number of condensations in a row, without an action in between, that count as stuck."""

MAX_WAITS = 12
"""Replaces MAX_REPEATS and MAX_ROUNDS for actions that only wait for something."""

MAX_SIMILAR_FAILURES = 8
"""Number of actions differing only in numbers that count as stuck if all fail alike."""

MAX_SIMILAR_SAME_RESULT = 10
"""Number of actions differing only in numbers that count as stuck if all have the same result."""

MAX_SIMILAR = 30
"""Number of actions differing only in numbers that count as stuck if their results do too.

The number is high because stepping through something can be legitimate work.
"""

STEPS_AFTER_WARNING = 40
"""Number of steps after a warning within which another repetition ends the run.

After that, a repetition leads to a new warning.
"""

KEPT_STEPS = max(MAX_SIMILAR, PERIODS[-1] * MAX_WAITS)
"""Number of steps that are kept; enough for every pattern."""

MAX_EXCERPT_LENGTH = 160
_IGNORED_FIELDS = {
    "id", "timestamp", "cause", "tool_call", "thought", "reply", "seconds", "source", "changed",
}  # fmt: skip
_WAITING_COMMANDS = ("sleep ", "wait ", "tail -f", "timeout ")


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
        self._steps: deque[_Step] = deque(maxlen=KEPT_STEPS)
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
                self._messages.append(f"{type(action).__name__} {normalize_output(content)}")
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
            self._steps.append(_Step(action, observation))
            self._since_warning += 1

    def _find_repetition(self) -> str | None:
        if self._condensations >= MAX_CONDENSATIONS:
            return "the conversation is condensed again and again without any action in between"
        if len(self._messages) == MAX_IDENTICAL_MESSAGES and len(set(self._messages)) == 1:
            return f"the same words {MAX_IDENTICAL_MESSAGES} times without any action in between"
        if not self._steps:
            return None
        return (
            self._find_same_result()
            or self._find_failing()
            or self._find_cycle()
            or self._find_similar()
        )

    def _count_repeats(self, limit: int, key: str) -> int:
        """Return the number of steps at the end, up to `limit`, that equal the last one.

        key: "exact", or "loose" to ignore numbers.
        """
        last = self._steps[-1]
        count = 0
        for step in reversed(self._steps):
            if count == limit or step.action_text(key) != last.action_text(key):
                break
            count += 1
        return count

    def _last_steps(self, count: int) -> list["_Step"]:
        return [self._steps[index] for index in range(-count, 0)]

    def _find_same_result(self) -> str | None:
        needed = MAX_WAITS if self._steps[-1].waits else MAX_REPEATS
        if self._count_repeats(needed, "exact") < needed:
            return None
        if len({step.result for step in self._last_steps(needed)}) > 1:
            return None
        return f"the same action with the same result {needed} times: {self._steps[-1].quoted}"

    def _find_failing(self) -> str | None:
        if self._count_repeats(MAX_ERROR_REPEATS, "exact") < MAX_ERROR_REPEATS:
            return None
        if not all(step.is_error for step in self._last_steps(MAX_ERROR_REPEATS)):
            return None
        return f"the same action fails {MAX_ERROR_REPEATS} times: {self._steps[-1].quoted}"

    def _find_cycle(self) -> str | None:
        for period in PERIODS:
            cycle = self._last_steps(period) if len(self._steps) >= period else []
            rounds = MAX_WAITS if any(step.waits for step in cycle) else MAX_ROUNDS
            if not cycle or len(self._steps) < period * rounds:
                continue
            if all(
                self._steps[-1 - n].is_like(self._steps[-1 - n % period])
                for n in range(period, period * rounds)
            ):
                quoted = ", then ".join(step.quoted for step in cycle)
                return f"the same {period} actions in turn {rounds} times: {quoted}"
        return None

    def _find_similar(self) -> str | None:
        """Return a description if the last actions differ only in numbers, else None."""
        count = self._count_repeats(MAX_SIMILAR, "loose")
        if count < MAX_SIMILAR_FAILURES or self._steps[-1].waits:
            return None
        steps = self._last_steps(count)
        last = steps[-1]
        failing = steps[-MAX_SIMILAR_FAILURES:]
        same_result = steps[-MAX_SIMILAR_SAME_RESULT:]
        needed = 0
        if all(step.failed and step.loose_result == last.loose_result for step in failing):
            needed = MAX_SIMILAR_FAILURES
        elif count >= MAX_SIMILAR_SAME_RESULT and all(
            step.result == last.result for step in same_result
        ):
            needed = MAX_SIMILAR_SAME_RESULT
        elif count >= MAX_SIMILAR and all(step.loose_result == last.loose_result for step in steps):
            needed = MAX_SIMILAR
        if not needed:
            return None
        return f"the same action {needed} times, only the numbers differ: {last.quoted}"


class _Step:
    """An action with its observation.

    Texts are normalized lazily, because most comparisons end at the text of the actions.
    """

    def __init__(self, action: ActionBase, observation: ObservationBase) -> None:
        self._action = action
        self._observation = observation

    def action_text(self, key: str) -> str:
        """Return the action's text for comparisons. key: "exact", or "loose" to ignore numbers."""
        return self._exact if key == "exact" else self._loose

    def is_like(self, other: "_Step") -> bool:
        """Return True if action and result are equal to those of the other step."""
        return self._exact == other._exact and self.result == other.result

    @cached_property
    def _exact(self) -> str:
        return _text(self._action)

    @cached_property
    def _loose(self) -> str:
        return mask_numbers(self._exact)

    @cached_property
    def result(self) -> str:
        """The normalized text of the observation."""
        return _text(self._observation)

    @cached_property
    def loose_result(self) -> str:
        """The normalized text of the observation without numbers."""
        return mask_numbers(self.result)

    @property
    def is_error(self) -> bool:
        """True if the action could not be executed or raised; exit codes don't matter."""
        raised = bool(getattr(self._observation, "error", False))
        return raised or isinstance(self._observation, o.ErrorObservation)

    @property
    def failed(self) -> bool:
        """True if the action could not be executed, or a command's exit code is not zero."""
        return self.is_error or bool(getattr(self._observation, "exit_code", 0))

    @cached_property
    def waits(self) -> bool:
        """True if the action only lets time pass, like `sleep` or reading a program's output."""
        match self._action:
            case a.CmdRun(is_input=True, command=command):
                return not command.strip()
            case a.CmdRun(command=text) | a.IPythonRunCell(code=text):
                return any(
                    word in f"{text} " or f"{word.strip()}(" in text for word in _WAITING_COMMANDS
                )
            case _:
                return False

    @property
    def quoted(self) -> str:
        """The action as it is quoted in a description."""
        return f"`{_quote_action(self._action)}`"


def _text(event: EventBase) -> str:
    return normalize_output(event.model_dump_json(exclude=_IGNORED_FIELDS))


def _quote_action(action: ActionBase) -> str:
    """Return the action in one line, as a person would name it."""
    fields = ("command", "code", "path", "url", "query", "server", "name", "agent", "task")
    parts = [str(value) for field in fields if (value := getattr(action, field, ""))]
    if not isinstance(action, a.CmdRun | a.IPythonRunCell):
        parts.insert(0, str(getattr(action, "kind", "")))
    line = " ".join(" ".join(parts).split())
    return line if len(line) <= MAX_EXCERPT_LENGTH else f"{line[: MAX_EXCERPT_LENGTH - 1]}…"
