"""What a run's log shows of a change: its fault was seen, files were edited, a check passes.

Claims of the agent count for nothing here: commands with their ends and edits, in their order.
"""

import posixpath
import re

from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ActionBase, ObservationBase
from resolver.events.lifecycle import DelegateEvent, StageCompleted
from resolver.events.log import Event
from resolver.forge.course import Check, Course
from resolver.memory.outcomes import changed_by, checks_in, ends_as_its_check, written_by
from resolver.trace.steps import inner_event

_TAIL = 4_000
"""Characters at the end of an output that are looked at: there runners sum up."""

_NOT_THE_CHECK_S = frozenset({124, 126, 127, 130, 137, 143})
"""Exit codes of a program that did not run, or not to its end: a shell's and `timeout`'s."""

_NOT_RUN = re.compile(
    r"^(?:.*: )?(?:\S+: )?command not found$|^\S*sh: (?:line \d+: )?cd: "
    r"|No module named '?(?:pytest|unittest2|nose2?|tox|nox|mypy|ruff|flake8|pylint)'?$"
    r"|\bno tests ran\b|^Ran 0 tests|\bno test files\b|^No tests found|\b0 tests collected\b",
    re.MULTILINE | re.IGNORECASE,
)
_FAILS = re.compile(
    r"\b[1-9]\d* (?:failed|failing|errors?)\b|^FAILED\b|^--- FAIL|^FAIL\b|test result: FAILED",
    re.MULTILINE,
)
_PASSES = re.compile(
    r"\b[1-9]\d* (?:passed|passing)\b|^OK(?: \(.*\))?$|^ok\s+\S+\s+[\d.(]", re.MULTILINE
)
_WRITES = re.compile(
    r"(?<!stdout)(?<!stderr)\.write(?:_text|_bytes|lines)?\(|\bopen\([^)]{1,300}['\"][rb]*[wax+]"
    r"|\bshutil\.|\bos\.(?:rename|replace|remove|unlink)\(|\.(?:unlink|rename)\("
    r"|\bwriteFile|\bFile\.write\b|\bfile_put_contents\b|\binplace=True"
)
_INTERPRETED = re.compile(r"\b(?:python[\d.]*|node|deno|bun|ruby|perl|php)\s")
_MOST_CODE = 50_000
"""Characters of code that are looked at."""


class Following:
    """One run's. Takes its events in order, a delegate's as well, and each of them once."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, ...], ActionBase] = {}
        self._named: set[str] = set()
        self._counts = True
        self._since: dict[tuple[str, ...], Check] = {}
        self._course = Course()

    def take(self, event: Event) -> Course:
        """What the log shows with `event`; the same object again where that adds nothing."""
        self._take(event, ())
        return self._course

    def _take(self, event: Event, place: tuple[int, ...]) -> None:
        """place: of the delegate whose log it stands in."""
        match event:
            case DelegateEvent(delegate=delegate):
                self._take(inner_event(event), (*place, delegate))
            case a.CmdRun(is_input=False) | a.IPythonRunCell() | a.FileWrite() | a.FileEdit():
                self._open[*place, event.id] = event
            case ObservationBase(cause=int(cause)):
                self._settle(self._open.pop((*place, cause), None), event)
            case StageCompleted(stage="change", detail=detail):
                self._taken_out(detail)
            case _:
                pass

    def _settle(self, action: ActionBase | None, result: ObservationBase) -> None:
        match action, result:
            case ((a.FileWrite() | a.FileEdit()), (o.FileWriteResult() | o.FileEditResult())):
                self._edited(posixpath.normpath(result.path))
            case a.IPythonRunCell(code=code), _:
                if _writes(code):
                    self._edited(None)
            case a.CmdRun(command=command), _:
                # A command that edits as well is no check: which of the two came first is not said.
                inline = _INTERPRETED.search(command) and _WRITES.search(command[:_MOST_CODE])
                if inline or changed_by(command) is not None:
                    self._edited(None)
                elif isinstance(result, o.CmdOutput):
                    self._ran(command, result)
            case _:
                pass

    def _edited(self, path: str | None) -> None:
        """path: None where it is not known for sure which files were."""
        if path is None:
            self._counts = False
        else:
            self._named.add(path)
        self._since.clear()
        files = len(self._named) if self._counts else None
        self._show(edited=True, files=files, newest=None)

    def _ran(self, command: str, result: o.CmdOutput) -> None:
        checks = checks_in(command)
        check = _ended(command, result) if checks else None
        if check is None:
            return
        if not (self._course.edited or check.passed):
            self._show(reproduced=check)
        self._since.pop(checks, None)
        self._since[checks] = check
        failing = [each for each in self._since.values() if not each.passed]
        self._show(newest=failing[-1] if failing else check)

    def _taken_out(self, detail: str) -> None:
        """The change has left the sandbox: now it is known what was edited."""
        found = re.match(r"\d+", detail)
        if found is None:
            return
        files = int(found[0])
        if files == 0:
            self._named.clear()
        self._counts = files == 0
        self._show(edited=files > 0, files=files or None)

    def _show(self, **known: object) -> None:
        self._course = self._course.model_copy(update=known)


def _writes(code: str) -> bool:
    """Whether a cell edits files as far as one can see, also by a line for the shell: `!sed -i`."""
    if written_by(code) or _WRITES.search(code[:_MOST_CODE]):
        return True
    lines = (line.strip() for line in code[:_MOST_CODE].splitlines())
    return any(changed_by(line[1:]) is not None for line in lines if line.startswith("!"))


def _ended(command: str, result: o.CmdOutput) -> Check | None:
    """How the check ended; None where nothing says so, or it did not run."""
    code, tail = result.exit_code, result.content[-_TAIL:]
    if code is None or _NOT_RUN.search(tail):
        return None
    if ends_as_its_check(command):
        if code in _NOT_THE_CHECK_S:
            return None
        return Check(command=command, passed=code == 0, exit_code=code)
    if _FAILS.search(tail):
        return Check(command=command, passed=False)
    return Check(command=command, passed=True) if _PASSES.search(tail) and code == 0 else None
