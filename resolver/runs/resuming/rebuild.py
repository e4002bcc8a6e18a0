"""Rebuilds a sandbox from a log by executing the logged actions again in a fresh sandbox.

Only actions that can change the sandbox are executed, in the order of the log, including those of
delegates. Views of files change nothing and are left out unless their results are to be compared.
Actions that reach outside of the sandbox (browser, MCP) are never executed twice. The model is not
asked again: its decisions are in the log.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from resolver.controller.controller import Executor
from resolver.controller.recovery import EXTERNAL_ACTIONS, Difference, find_difference
from resolver.events.actions import (
    CmdRun,
    FileEdit,
    FileRead,
    FileWrite,
    IPythonRunCell,
)
from resolver.events.base import EventBase, Source
from resolver.events.lifecycle import DelegateEvent
from resolver.events.log import (
    OBSERVATION_TYPES,
    Event,
    Observation,
    SandboxAction,
    parse_logged_event,
)
from resolver.events.observations import CmdOutput, ErrorObservation, IPythonOutput
from resolver.runtime.runtime import ERROR_CODES

REDONE = (CmdRun, IPythonRunCell, FileRead, FileWrite, FileEdit)
"""Actions that are executed in the sandbox and can be repeated."""

_DONE_ALL_THE_SAME = frozenset({*ERROR_CODES.values(), "mcp"})
"""Error codes of actions that were executed and failed."""

_Key = tuple[int, ...]


@dataclass(frozen=True)
class RecordedAction:
    """An action that was executed according to the log, with its observation.

    event_id: id of the action's event in the outermost log, also for the action of a delegate.
    """

    event_id: int
    action: EventBase
    observation: EventBase


@dataclass(frozen=True)
class Reexecution:
    """Result of executing a log again.

    actions: how many were executed.
    differences: the actions whose result differs from the recorded one, in order.
    skipped: the actions that reach outside, as (event id, kind).
    """

    actions: int
    differences: tuple[tuple[RecordedAction, Difference], ...]
    skipped: tuple[tuple[int, str], ...]


def recorded_actions(events: Iterable[Event]) -> Iterator[RecordedAction]:
    """Yield the agents' executed actions, in the order in which they ended.

    An action without an observation was not executed as far as the log knows, and a denied one was
    not executed at all. The project's set-up, which the run itself executes in every sandbox, is
    not included.
    """
    # Event ids are unique only within one agent's log, so the key includes the path of delegates.
    pending: dict[_Key, tuple[int, EventBase]] = {}
    for outer, level, event in _with_delegates(events):
        if isinstance(event, REDONE + EXTERNAL_ACTIONS) and event.source is Source.AGENT:
            pending[*level, event.id] = (outer, event)
        elif isinstance(event, OBSERVATION_TYPES) and event.cause is not None:
            found = pending.pop((*level, event.cause), None)
            if found is not None and _was_done(event):
                yield RecordedAction(*found, event)


def reexecute(
    events: Sequence[Event],
    executor: Executor,
    roots: Sequence[str],
    *,
    views: bool = False,
    told: Callable[[RecordedAction, Difference], None] | None = None,
) -> Reexecution:
    """Execute the recorded actions again and compare the results.

    roots: paths of the repository in the earlier sandboxes and, as the last one, in this sandbox.
    views: True to execute views of files too.
    told: called for each difference, before the next action.

    Raises SandboxError if the sandbox is lost.
    """
    done = 0
    differences: list[tuple[RecordedAction, Difference]] = []
    skipped: list[tuple[int, str]] = []
    for recorded in recorded_actions(events):
        action = recorded.action
        if isinstance(action, EXTERNAL_ACTIONS):
            skipped.append((recorded.event_id, action.kind))
            continue
        assert isinstance(action, REDONE)
        if isinstance(action, FileRead) and not views:
            continue
        # A differing result does not stop the re-execution: output such as times or process ids
        # differs in every run. The agent works with the recorded observations, so only the files
        # have to agree.
        found = executor.execute(_as_long(recorded, action))
        done += 1
        differs = find_difference(recorded.observation, found, roots)
        if differs is not None:
            differences.append((recorded, differs))
            if told is not None:
                told(recorded, differs)
    return Reexecution(done, tuple(differences), tuple(skipped))


def _as_long(recorded: RecordedAction, action: SandboxAction) -> SandboxAction:
    """Return the action, with a timeout if a person interrupted it: it gets as much time as it had
    then."""
    match action, recorded.observation:
        case CmdRun(), CmdOutput(exit_code=130):
            pass
        case IPythonRunCell(), IPythonOutput(error=True, content=c) if "KeyboardInterrupt" in c:
            pass
        case _:
            return action
    seconds = (recorded.observation.timestamp - action.timestamp).total_seconds()
    return action.model_copy(update={"timeout": max(1.0, seconds)})


class RelocatedExecutor:
    """An executor for a sandbox in which the repository has another path than in the log.

    The earlier path is replaced with the present one in commands, code and the paths of file
    actions. The content that is written into files stays as it is.
    """

    def __init__(self, executor: Executor, earlier: Iterable[str], root: str) -> None:
        self._executor = executor
        self._moves = [_move(old, root) for old in earlier if old != root]

    def execute(self, action: SandboxAction) -> Observation:
        """Execute the action with its paths adapted to this sandbox."""
        if not self._moves:
            return self._executor.execute(action)
        match action:
            case CmdRun(command=command):
                moved: SandboxAction = action.model_copy(update={"command": self._moved(command)})
            case IPythonRunCell(code=code):
                moved = action.model_copy(update={"code": self._moved(code)})
            case FileRead(path=path) | FileWrite(path=path) | FileEdit(path=path):
                moved = action.model_copy(update={"path": self._moved(path)})
            case _:
                moved = action
        return self._executor.execute(moved)

    def _moved(self, text: str) -> str:
        for old, new in self._moves:
            text = old.sub(lambda _, new=new: new, text)  # type: ignore[misc]
        return text


def _move(old: str, root: str) -> tuple[re.Pattern[str], str]:
    """Return the pattern of an earlier path and its replacement.

    If the last components of both paths are equal, their parent folders are used instead, so that
    other files below them (home, temporary files) are found too.
    """
    above, now_above = old.rpartition("/")[0], root.rpartition("/")[0]
    if above and now_above and old.rpartition("/")[2] == root.rpartition("/")[2]:
        old, root = above, now_above
    return re.compile(rf"(?<![\w./-]){re.escape(old)}(?![\w-])"), root


def _with_delegates(
    events: Iterable[Event], outer: int | None = None, level: _Key = ()
) -> Iterator[tuple[int, _Key, Event]]:
    """Yield all events, with those of delegates in their place, as (id in the outermost log, path
    of delegates, event)."""
    for event in events:
        at = event.id if outer is None else outer
        if isinstance(event, DelegateEvent):
            nested = parse_logged_event(event.event)
            yield from _with_delegates([nested], at, (*level, event.delegate))
        else:
            yield at, level, event


def _was_done(observation: EventBase) -> bool:
    """Return False for an error that means that the action was not allowed to run."""
    return not isinstance(observation, ErrorObservation) or observation.code in _DONE_ALL_THE_SAME
