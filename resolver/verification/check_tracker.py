"""Build the check history of a run from its event log: a failing test, edits, a passing check.

Claims of the agent are not used, only commands with their exit codes and edits, in their order.
"""

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass

from resolver.errors import LogError
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ActionBase, ObservationBase
from resolver.events.lifecycle import DelegateEvent, StageCompleted
from resolver.events.log import Event, parse_logged_event
from resolver.models.check_history import CheckHistory, ObservedCheck
from resolver.models.truncate import keep_last_lines
from resolver.security.shell.checks import is_test_command, read_checks
from resolver.security.shell.other_code import cell_runs_other_code, runs_other_code
from resolver.security.shell.writes import (
    WrittenPaths,
    is_outside,
    relative_command,
    written_in,
    written_paths,
)
from resolver.verification.verdict import TAIL, reproduces, verdict_of

_KEYS = frozenset({"C-c", "C-d", "C-z"})
"""Keys that the agent sends to a running program. They are logged as commands."""

_PROSE = re.compile(
    r"(?!.*(?:requirements|constraints|CMakeLists)[^/]*$).*\.(?:md|rst|txt|adoc)", re.I
)
"""Matches text files, whose edits don't make a check stale.

Files such as requirements.txt and CMakeLists.txt have a text file's suffix but affect the program.
"""

_MAX_PATH_CHARACTERS = 1_000
"""Number of characters at the end of a path that are matched."""

_MAX_CODE_CHARACTERS = 50_000
"""Number of characters of an IPython cell whose lines are read."""

_MAX_CHECKS = 50
"""Maximum number of checks that are remembered."""

_MAX_OUTPUT_CHARACTERS = 2_000
"""Number of characters kept of a check's output."""


@dataclass(frozen=True)
class _RunningCommand:
    """A command that has exceeded its timeout and still runs, with the end of its output so far."""

    command: str
    output: str


def check_history_of(events: Iterable[Event]) -> CheckHistory:
    """Return the check history of a log with these events."""
    tracker = CheckTracker()
    check_history = CheckHistory()
    for event in events:
        check_history = tracker.take(event)
    return check_history


class CheckTracker:
    """Builds the check history of one run, event by event.

    `take` must be called once for each event, in order. Events of delegates are included; they
    arrive wrapped in events of the run's own log.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[int, ...], ActionBase] = {}
        self._edited_paths: set[str] = set()
        self._can_count_files = True
        self._root = ""
        self._running: _RunningCommand | None = None
        self._checks: dict[tuple[str, ...], ObservedCheck] = {}
        self._history = CheckHistory()

    def take(self, event: Event) -> CheckHistory:
        """Return the check history including `event`; the same object if the event adds nothing."""
        self._process(event, (), event.id)
        return self._history

    def _process(self, event: Event, place: tuple[int, ...], number: int) -> None:
        """Process an event.

        Args:
            event: The event.
            place: Path of delegate numbers from the run to the log that holds the event; () for the
                run's own.
            number: Id of the event, or of the event that wraps it, in the run's own log.
        """
        match event:
            case DelegateEvent(delegate=delegate):
                try:
                    inner = parse_logged_event(event.event)
                except LogError:
                    return
                self._process(inner, (*place, delegate), number)
            case a.CmdRun() | a.IPythonRunCell() | a.FileWrite() | a.FileEdit() | a.McpCall():
                self._open[*place, event.id] = event
            case ObservationBase(cause=int(cause)):
                self._process_observation(self._open.pop((*place, cause), None), event, number)
            case StageCompleted(stage="change", detail=detail):
                self._record_exported_files(detail)
            case StageCompleted(stage="checkout", detail=detail):
                self._root = posixpath.normpath(detail) if detail else ""
            case _:
                pass

    def _process_observation(
        self,
        action: ActionBase | None,
        result: ObservationBase,
        number: int,
    ) -> None:
        """Process an observation together with the action that caused it."""
        before_edit = not self._history.edited
        match action, result:
            case a.CmdRun(command=command, is_input=False), o.ErrorObservation():
                if read_checks(command).checks or runs_other_code(command):
                    self._record_unclear(before_edit)
            case a.IPythonRunCell(code=code), o.ErrorObservation():
                if cell_runs_other_code(code):
                    self._record_unclear(before_edit)
            case _, o.ErrorObservation():
                pass
            case a.McpCall(), _:
                self._record_unclear(before_edit)
            case ((a.FileWrite() | a.FileEdit()), (o.FileWriteResult() | o.FileEditResult())):
                if not is_outside(result.path, self._root):
                    self._edited_paths.add(posixpath.normpath(result.path))
                    self._record_edit(WrittenPaths((result.path,)))
            case a.IPythonRunCell(code=code), _:
                for written in self._written_by_cell(code):
                    self._record_uncounted_edit(written)
                if cell_runs_other_code(code):
                    self._record_unclear(before_edit)
            case a.CmdRun(command=command, is_input=is_input), o.CmdOutput():
                if is_input or (self._running and command in _KEYS):
                    self._process_more_output(result, number)
                else:
                    self._process_command(_RunningCommand(command, ""), result, number)
            case _:
                pass

    def _written_by_cell(self, code: str) -> Iterable[WrittenPaths]:
        """Yield what an IPython cell writes, also with shell lines such as `!sed -i`."""
        yield written_in(code, self._root)
        for line in code[:_MAX_CODE_CHARACTERS].splitlines():
            if line.lstrip().startswith("!"):
                yield written_paths(line.lstrip()[1:], self._root)

    def _process_command(self, command: _RunningCommand, result: o.CmdOutput, number: int) -> None:
        """Process the result of a new command line."""
        before_edit = not self._history.edited
        self._running = None  # the shell ended the previous command to run this one
        for key, check in list(self._checks.items()):
            if check.verdict == "unfinished":
                del self._checks[key]
                self._record_unclear(before_edit)
        written = written_paths(command.command, self._root)
        # A single step that failed (`whole`) has written nothing, so it is not taken as an edit.
        if written and not (written.whole and result.exit_code):
            # A command line that also edits files is not used as a check: it is unknown whether the
            # check ran before or after the edit.
            self._record_uncounted_edit(written)
            if read_checks(command.command).checks or runs_other_code(command.command):
                self._record_unclear(before_edit)
        elif not written:
            self._process_result(command, result, number)

    def _process_more_output(self, result: o.CmdOutput, number: int) -> None:
        """Process more output of the running command."""
        if self._running is not None:
            self._process_result(self._running, result, number)

    def _process_result(self, command: _RunningCommand, result: o.CmdOutput, number: int) -> None:
        """Process a result of a command line without edits: its end, or output while it
        still runs."""
        output = (command.output + result.content)[-TAIL:]
        is_running = result.exit_code is None
        self._running = _RunningCommand(command.command, output) if is_running else None
        before_edit = not self._history.edited
        if runs_other_code(command.command):
            self._record_unclear(before_edit)
        key = read_checks(command.command).checks
        if not key:
            self._update_history()
            return
        check = self._make_check(command.command, result.exit_code, output, number)
        earlier = self._checks.get(key)
        if earlier is not None and earlier.verdict == "unfinished":
            del self._checks[key]
        has_result = (
            earlier is not None and not earlier.stale and earlier.verdict in {"passed", "failed"}
        )
        # An observed result is not replaced by one that says less.
        if check.verdict != "not_run" and not (
            has_result and check.verdict in {"unknown", "unfinished"}
        ):
            self._store_check(key, check)
        failed = check.verdict == "failed" and before_edit
        if failed and reproduces(command.command, result.exit_code, output):
            self._update_history(reproduced=check)
        else:
            if check.verdict in {"unknown", "unfinished"} or (
                failed and any(map(is_test_command, key))
            ):
                self._record_unclear(before_edit)
            self._update_history()

    def _make_check(
        self, command: str, exit_code: int | None, output: str, number: int
    ) -> ObservedCheck:
        """Return the check with its verdict.

        The exit code is included only if it is the check's own.
        """
        verdict = verdict_of(command, exit_code, output)
        is_own_exit_code = verdict == "passed" or (
            verdict == "failed" and read_checks(command).alone
        )
        return ObservedCheck(
            command=relative_command(command, (self._root,)),
            verdict=verdict,
            exit_code=exit_code if is_own_exit_code else None,
            event_id=number,
            output=keep_last_lines(output, _MAX_OUTPUT_CHARACTERS),
        )

    def _store_check(self, key: tuple[str, ...], check: ObservedCheck) -> None:
        """Store the newest run of a check.

        A passing run of several checks replaces the runs of each of them.
        """
        if check.passed:
            for other in [covered for covered in self._checks if set(covered) <= set(key)]:
                del self._checks[other]
        self._checks.pop(key, None)
        self._checks[key] = check
        if len(self._checks) > _MAX_CHECKS:
            del self._checks[next(iter(self._checks))]

    def _record_unclear(self, before_edit: bool) -> None:
        """Record that a check may have run whose result was not observed by itself."""
        fields = {"unclear": True, "unclear_after_edit": True}
        self._update_history(**fields, **({"unclear_before_edit": True} if before_edit else {}))

    def _record_uncounted_edit(self, written: WrittenPaths) -> None:
        """Record an edit whose files can't be counted.

        Either no path is named, or the path is relative to a directory that is not known.
        """
        if written:
            self._can_count_files = False
            self._record_edit(written)

    def _record_edit(self, written: WrittenPaths) -> None:
        """Record an edit. If it is not only to prose, earlier checks become stale."""
        is_prose = all(_PROSE.fullmatch(path[-_MAX_PATH_CHARACTERS:]) for path in written.paths)
        if written.unknown or not is_prose:
            self._running = None  # a check that is still running does not cover the edit
            self._update_history(unclear_after_edit=False)
            for key, check in list(self._checks.items()):
                if check.verdict == "unfinished":
                    del self._checks[key]
                elif not check.stale:
                    self._checks[key] = check.model_copy(update={"stale": True})
        self._update_history(
            edited=True, files=len(self._edited_paths) if self._can_count_files else None
        )

    def _record_exported_files(self, detail: str) -> None:
        """Record the number of changed files at the export of the change, which is exact.

        An export without files means that all edits so far were undone.
        """
        match = re.match(r"\d{1,9}", detail)
        if match is None:
            return
        files = int(match[0])
        if files == 0:
            self._edited_paths.clear()
        self._can_count_files = files == 0
        self._update_history(edited=files > 0, files=files or None)

    def _update_history(self, **fields: object) -> None:
        """Update fields of the check history. The object is replaced only if a value changes."""
        checks = tuple(self._checks.values())
        if checks != self._history.checks:
            fields["checks"] = checks
        if any(getattr(self._history, name) != value for name, value in fields.items()):
            self._history = self._history.model_copy(update=fields)
