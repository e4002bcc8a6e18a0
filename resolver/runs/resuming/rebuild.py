"""Rebuilds a sandbox from a log by executing the logged actions again in a fresh sandbox.

Only actions that can change the sandbox are executed, in the order of the log, including those of
delegates. Views of files change nothing and are left out unless their results are to be compared.
Actions that reach outside of the sandbox (MCP) are never executed twice. The model is not
asked again: its decisions are in the log.
"""

import re
import signal
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from resolver.controller.controller import Executor
from resolver.controller.replay import find_difference
from resolver.events.actions import (
    CmdRun,
    IPythonRunCell,
    SandboxAction,
)
from resolver.events.base import ActionBase, EventBase, ObservationBase, Source
from resolver.events.lifecycle import DelegateEvent, ReplayDiverged
from resolver.events.log import ACTION_TYPES, OBSERVATION_TYPES, Event, parse_logged_event
from resolver.events.observations import CmdOutput, ErrorObservation, IPythonOutput

_CODES_AFTER_EXECUTION = frozenset(
    {
        *(kind.error_code for kind in ACTION_TYPES if issubclass(kind, SandboxAction)),
        "mcp",
    }
)
"""Error codes of actions that were executed and failed."""

_RELOCATED_FIELDS = ("command", "code", "path")
"""Fields of actions that can contain paths of the sandbox."""

_DelegatePath = tuple[int, ...]


@dataclass(frozen=True)
class RecordedAction:
    """An action that was executed according to the log, with its observation.

    event_id: id of the action's event in the outermost log, also for the action of a delegate.
    """

    event_id: int
    action: ActionBase
    observation: EventBase


@dataclass(frozen=True)
class Reexecution:
    """Result of executing a log again.

    actions: how many were executed.
    differences: the actions whose result differs from the recorded one, in order.
    skipped: the actions that reach outside, as (event id, kind).
    """

    actions: int
    differences: tuple[tuple[RecordedAction, ReplayDiverged], ...]
    skipped: tuple[tuple[int, str], ...]


def recorded_actions(events: Iterable[Event]) -> Iterator[RecordedAction]:
    """Yield the agents' executed actions, in the order in which they ended.

    An action without an observation was not executed as far as the log knows, and a denied one was
    not executed at all. The project's set-up, which the run itself executes in every sandbox, is
    not included.
    """
    # Event ids are unique only within one agent's log, so the key includes the path of delegates.
    pending: dict[_DelegatePath, tuple[int, ActionBase]] = {}
    for outermost_id, delegate_path, event in _with_delegates(events):
        if _is_recorded(event):
            pending[*delegate_path, event.id] = (outermost_id, event)
        elif isinstance(event, OBSERVATION_TYPES) and event.cause is not None:
            started = pending.pop((*delegate_path, event.cause), None)
            if started is not None and _was_executed(event):
                yield RecordedAction(*started, event)


def _is_recorded(event: Event) -> TypeGuard[ActionBase]:
    """Return True for an action of an agent that is executed in the sandbox or reaches outside."""
    return (
        isinstance(event, ActionBase)
        and event.source is Source.AGENT
        and (isinstance(event, SandboxAction) or event.is_external)
    )


def reexecute(
    events: Sequence[Event],
    executor: Executor,
    *,
    include_views: bool = False,
) -> Reexecution:
    """Execute the recorded actions again and compare the results.

    include_views: True to execute views of files too.

    Raises SandboxError if the sandbox is lost.
    """
    executed = 0
    differences: list[tuple[RecordedAction, ReplayDiverged]] = []
    skipped: list[tuple[int, str]] = []
    for recorded in recorded_actions(events):
        action = recorded.action
        if not isinstance(action, SandboxAction) or action.is_external:
            skipped.append((recorded.event_id, str(getattr(action, "kind", ""))))
            continue
        if not action.changes_files and not include_views:
            continue
        # A differing result does not stop the re-execution: the agent works with the recorded
        # observations, so only the files have to agree.
        observation = executor.execute(_with_original_duration(recorded, action))
        executed += 1
        difference = find_difference(recorded.observation, observation)
        if difference is not None:
            differences.append((recorded, difference))
    return Reexecution(executed, tuple(differences), tuple(skipped))


ENDED_STATUSES = frozenset({128 + signal.SIGINT, 128 + signal.SIGKILL})
"""Exit statuses of commands that a person, or a limit of the sandbox, has ended."""

ENDED_CELL = re.compile(r"KeyboardInterrupt|died \(exit code -9\)")
"""Matches the output of a cell that a person, or a limit of the sandbox, has ended."""


def _with_original_duration(recorded: RecordedAction, action: SandboxAction) -> SandboxAction:
    """Return the action. If a person may have ended it, it gets a timeout of the time that it ran.

    Ctrl-C ends it first; what is still running after a moment is killed.
    """
    match action, recorded.observation:
        case CmdRun(), CmdOutput(exit_code=code) if code in ENDED_STATUSES:
            pass
        case IPythonRunCell(), IPythonOutput(error=True, content=c) if ENDED_CELL.search(c):
            pass
        case _:
            return action
    original_seconds = (recorded.observation.timestamp - action.timestamp).total_seconds()
    return action.model_copy(update={"timeout": max(1.0, original_seconds)})


class RelocatedExecutor:
    """An executor for a sandbox in which the repository has another path than in the log.

    The earlier path is replaced with the present one in commands, code and the paths of file
    actions. The content that is written into files stays as it is.
    """

    def __init__(self, executor: Executor, earlier_roots: Iterable[str], root: str) -> None:
        self._executor = executor
        self._replacements = [_path_replacement(old, root) for old in earlier_roots if old != root]

    def execute(self, action: SandboxAction) -> ObservationBase:
        """Execute the action with its paths adapted to this sandbox."""
        if not self._replacements:
            return self._executor.execute(action)
        texts = {
            name: self._relocate(text)
            for name in _RELOCATED_FIELDS
            if isinstance(text := getattr(action, name, None), str)
        }
        return self._executor.execute(action.model_copy(update=texts))

    def _relocate(self, text: str) -> str:
        for old, new in self._replacements:
            text = old.sub(lambda _, new=new: new, text)  # type: ignore[misc]
        return text


def _path_replacement(old: str, root: str) -> tuple[re.Pattern[str], str]:
    """Return the pattern of an earlier path and its replacement.

    If the last components of both paths are equal, their parent folders are used instead, so that
    other files below them (home, temporary files) are found too.
    """
    old_parent, new_parent = old.rpartition("/")[0], root.rpartition("/")[0]
    if old_parent and new_parent and old.rpartition("/")[2] == root.rpartition("/")[2]:
        old, root = old_parent, new_parent
    return re.compile(rf"(?<![\w./-]){re.escape(old)}(?![\w-])"), root


def _with_delegates(
    events: Iterable[Event], outermost_id: int | None = None, delegate_path: _DelegatePath = ()
) -> Iterator[tuple[int, _DelegatePath, Event]]:
    """Yield all events, including those of delegates at their place in the log.

    Each is a tuple of its id in the outermost log, the path of delegates, and the event.
    """
    for event in events:
        event_id = event.id if outermost_id is None else outermost_id
        if isinstance(event, DelegateEvent):
            nested = parse_logged_event(event.event)
            yield from _with_delegates([nested], event_id, (*delegate_path, event.delegate))
        else:
            yield event_id, delegate_path, event


def _was_executed(observation: EventBase) -> bool:
    """Return False for errors that mean that the action was not allowed to run, or not begun."""
    if not isinstance(observation, ErrorObservation):
        return True
    return observation.code in _CODES_AFTER_EXECUTION
