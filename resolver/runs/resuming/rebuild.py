"""A sandbox made again from a log: what was done in the earlier one is done in a fresh one.

Only what can change the sandbox is done again, in the order of the log, delegates' actions among
it. Views of files change nothing and are left out unless they are to be compared; what reaches
outside of the sandbox (browser, MCP) is never done twice.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from resolver.controller.controller import Executor
from resolver.controller.recovery import OUTSIDE
from resolver.controller.replay import Difference, difference
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

_DONE_ALL_THE_SAME = frozenset({*ERROR_CODES.values(), "mcp"})
"""Codes of errors that come from where the action was done."""

_Key = tuple[int, ...]


@dataclass(frozen=True)
class RecordedAction:
    """An action of the log that was done, and what came of it.

    event_id: the action's event in the outermost log, also for the action of a delegate.
    """

    event_id: int
    action: EventBase
    observation: EventBase


@dataclass(frozen=True)
class Reexecution:
    """What came of doing a log again.

    actions: how many were done. differences: those that gave something else than recorded, in
    order. skipped: those that reach outside, as (event id, kind).
    """

    actions: int
    differences: tuple[tuple[RecordedAction, Difference], ...]
    skipped: tuple[tuple[int, str], ...]


def recorded_actions(events: Iterable[Event]) -> Iterator[RecordedAction]:
    """The agents' actions that were done, in the order in which they ended. One without an
    observation was never done as far as the log knows, and neither was one that was not let
    through. What the run itself does in each sandbox (the setup) is not among them."""
    pending: dict[_Key, tuple[int, EventBase]] = {}
    for outer, level, event in _with_delegates(events):
        if isinstance(event, REDONE + OUTSIDE) and event.source is Source.AGENT:
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
    """Do the recorded actions again and compare what comes of them.

    roots: paths of the repository in the earlier sandboxes and in this one, last. views: views of
    files too. told: called at each difference, before the next action. Raises SandboxError when
    the sandbox is lost.
    """
    done = 0
    differences: list[tuple[RecordedAction, Difference]] = []
    skipped: list[tuple[int, str]] = []
    for recorded in recorded_actions(events):
        action = recorded.action
        if isinstance(action, OUTSIDE):
            skipped.append((recorded.event_id, action.kind))
            continue
        assert isinstance(action, REDONE)
        if isinstance(action, FileRead) and not views:
            continue
        found = executor.execute(_as_long(recorded, action))
        done += 1
        differs = difference(recorded.observation, found, roots)
        if differs is not None:
            differences.append((recorded, differs))
            if told is not None:
                told(recorded, differs)
    return Reexecution(done, tuple(differences), tuple(skipped))


def _as_long(recorded: RecordedAction, action: SandboxAction) -> SandboxAction:
    """The action; one that a person has interrupted with as much time as it had then."""
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
    """An executor in whose sandbox the repository lies elsewhere than where the log had it.

    A command that names the earlier path means the present one. What is written into files is
    left as it is.
    """

    def __init__(self, executor: Executor, earlier: Iterable[str], root: str) -> None:
        self._executor = executor
        self._moves = [_move(old, root) for old in earlier if old != root]

    def execute(self, action: SandboxAction) -> Observation:
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
    """The earlier path and what stands for it now; where both have a folder of their own above
    them (home, temporary files), that one."""
    above, now_above = old.rpartition("/")[0], root.rpartition("/")[0]
    if above and now_above and old.rpartition("/")[2] == root.rpartition("/")[2]:
        old, root = above, now_above
    return re.compile(rf"(?<![\w./-]){re.escape(old)}(?![\w-])"), root


def _with_delegates(
    events: Iterable[Event], outer: int | None = None, level: _Key = ()
) -> Iterator[tuple[int, _Key, Event]]:
    """All events, those of delegates in their place: id in the outermost log, path of delegates,
    event."""
    for event in events:
        at = event.id if outer is None else outer
        if isinstance(event, DelegateEvent):
            nested = parse_logged_event(event.event)
            yield from _with_delegates([nested], at, (*level, event.delegate))
        else:
            yield at, level, event


def _was_done(observation: EventBase) -> bool:
    """An error with another code means that the action was not let through."""
    return not isinstance(observation, ErrorObservation) or observation.code in _DONE_ALL_THE_SAME
