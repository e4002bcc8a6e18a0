"""Facts about an agent's work, derived from its event log: files changed, check results, the plan,
questions and answers, decisions. Condensers put them into the summary of what a conversation left
out. No model writes them, only the latest state of each is kept, and their number is limited.

How the checks of a command line ended is derived from its text and its output. These are
heuristics; `resolver.security.shell.checkers` defines what counts as a check.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Generic, TypeVar

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ActionBase, ObservationBase, Source
from resolver.events.log import Event, parse_logged_event
from resolver.events.state import State
from resolver.models.run import PlanItem
from resolver.models.truncate import truncate_middle
from resolver.security.shell.checks import read_checks
from resolver.security.shell.writes import written_in, written_paths

_FAILING = re.compile(
    r"^\s*(?:FAILED\b|ERROR\b|FAIL\b|FAIL:|--- FAIL|not ok\b|E   |✕|✗|×|●|[^\s:]+:\d+(?::\d+)?: "
    r"error|error(?:\[|:| TS)|[\w.]*(?:Error|Exception)\b:|thread '.*panicked|Tests? failed)",
)
MOST_FAILING = 6
LINE = 160
"""Maximum characters of one quoted line."""

LONGEST = 400
"""Maximum characters kept of a check's command."""


def checks_in(command: str) -> tuple[str, ...]:
    """Return the parts of a command line that test, build or lint, normalized so that variants are
    equal: `cd x && CI=1 pytest -q | tail` gives `pytest -q`."""
    return tuple(dict.fromkeys(check[:LONGEST] for check in read_checks(command).checks))


def command_outcome(output: str, room: int = 600) -> str:
    """Return the lines of the output that show how a check ended: failures and the last two lines.

    room: maximum characters returned.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    failing = [line for line in lines if _FAILING.match(line)]
    told = [line[:LINE] for line in failing[:MOST_FAILING]]
    if len(failing) > MOST_FAILING:
        told.append(f"(and {len(failing) - MOST_FAILING} more such lines)")
    told += [line[:LINE] for line in lines[-2:] if line[:LINE] not in told]
    return "\n".join(told)[:room]


ROOM = 24_000
"""Default limit on the characters of all facts together (approximate)."""

EXCERPT = 240
"""Maximum characters of one quoted text."""

SHORT = 100
"""Maximum characters of a quoted reason in the one-line form of a change."""

MOST = {
    "files": 400, "checks": 60, "decisions": 60, "failures": 12, "commands": 12, "thoughts": 120,
    "words": 60,
}  # fmt: skip
"""Maximum entries kept per category; of entries beyond it, only the number is kept."""

FIRST = 12
"""Number of the agent's earliest notes, replies and viewed files that are never dropped: they show
how the agent found its way into the task."""

T = TypeVar("T")


@dataclass(frozen=True)
class ChangedFile:
    """Represents the last change of a file.

    how: "editor", "Python", or the command that wrote the file.
    what: the first lines that were removed and added, or the size of a new file.
    why: what the agent said in the reply that made the change.

    Ids of the events are left out; they can be found in the log.
    """

    path: str
    times: int
    how: str
    what: str = ""
    why: str = ""
    by_delegate: bool = False


@dataclass(frozen=True)
class CheckFact:
    """Represents the last result of a command that tests, builds or lints.

    changed_since: files may have changed after the check ran.
    piped: the exit code may be that of another program, for example one that the output was
        piped into.
    """

    command: str
    exit_code: int | None
    outcome: str
    times: int
    changed_since: bool = False
    by_delegate: bool = False
    piped: bool = False


@dataclass(frozen=True)
class DecisionFact:
    """Represents a person's answer to an action that was waiting for approval.

    by: login of the person; empty for the operator.
    """

    action: str
    approved: bool
    by: str
    reason: str


@dataclass(frozen=True)
class Listed(Generic[T]):
    """Holds the entries of a list that fit into a limit; `left_out` is the number of the others."""

    items: tuple[T, ...] = ()
    left_out: int = 0


@dataclass
class _Kept(Generic[T]):
    """Holds entries by key: the `first` oldest ones and the latest, `most` in all.

    dropped: number of entries that were removed to stay within `most`.
    """

    most: int
    first: int = 0
    by_key: dict[str, T] = field(default_factory=dict)
    dropped: int = 0

    def put(self, key: str, value: T) -> None:
        """Add an entry, or move an existing one to the end, and drop one if there are too many."""
        self.by_key.pop(key, None)
        self.by_key[key] = value
        if len(self.by_key) > self.most:
            del self.by_key[next(islice(self.by_key, self.first, None))]
            self.dropped += 1

    def latest(self, room: int) -> Listed[T]:
        """Return as many of the newest entries as fit into `room` characters, oldest first.

        At least one entry is returned, if there is any.
        """
        items = list(self.by_key.values())
        chosen: list[T] = []
        for item in reversed(items):
            room -= _length(item)
            if room < 0 and chosen:
                break
            chosen.append(item)
        return Listed(tuple(reversed(chosen)), self.dropped + len(items) - len(chosen))

    def both_ends(self, room: int) -> tuple[Listed[T], Listed[T]]:
        """Return the oldest entries within a third of `room` and the newest within the rest."""
        items = list(self.by_key.values())
        first: list[T] = []
        left = room // 3
        for item in items:
            left -= _length(item)
            if left < 0:
                break
            first.append(item)
        rest = _Kept(self.most, 0, {str(i): x for i, x in enumerate(items[len(first) :])})
        late = rest.latest(room - room // 3)
        return Listed(tuple(first)), replace(late, left_out=late.left_out + self.dropped)


class Facts:
    """Collects the facts of one agent's log and updates them from new events only.

    What delegates changed and checked, and what people decided about their actions, is included.

    parent: the facts of the delegating agent. A delegate's changes, checks and decisions are
        recorded there; None for an agent that is not a delegate.
    """

    def __init__(self, parent: "Facts | None" = None) -> None:
        self._parent = parent
        self._clear()

    def _clear(self) -> None:
        parent = self._parent
        self._seen = 0
        self._last: Event | None = None
        self._open: dict[int, ActionBase] = {}
        self._wanted: dict[int, str] = {}
        self._nested: dict[int, Facts] = {}
        self._said = ""
        self._question = ""
        self.plan: tuple[PlanItem, ...] = ()
        self.finished = ""
        self.files: _Kept[ChangedFile] = parent.files if parent else _Kept(MOST["files"])
        self.checks: _Kept[CheckFact] = parent.checks if parent else _Kept(MOST["checks"])
        self.decisions: _Kept[DecisionFact] = (
            parent.decisions if parent else _Kept(MOST["decisions"])
        )
        self.failures = _Kept[tuple[str, int]](MOST["failures"])
        self.commands = _Kept[tuple[str, int | None]](MOST["commands"])
        self.thoughts = _Kept[str](MOST["thoughts"], FIRST)
        self.words = _Kept[str](MOST["words"], FIRST)
        self.looked_at = _Kept[str](MOST["files"], FIRST)
        self.answers = _Kept[tuple[str, str]](MOST["commands"])
        self.delegated = _Kept[tuple[str, str]](MOST["commands"])

    def look(self, state: State) -> None:
        """Process the new events of the state.

        Starts over if the state does not continue the one of the last call.
        """
        events = state.events
        if self._seen > len(events) or (self._seen and events[self._seen - 1] is not self._last):
            self._clear()
        for event in events[self._seen :]:
            self.take(event)
        self._seen = len(events)
        self._last = events[-1] if events else None

    def take(self, event: Event) -> None:
        """Process one event, the next of the log."""
        match event:
            case life.ModelReplied(completion=completion):
                self._said = completion.text.strip()
                self._keep(self.words, self._said)
            case life.DelegateEvent(delegate=delegate):
                if delegate not in self._nested:
                    self._nested[delegate] = Facts(self)
                self._nested[delegate].take(parse_logged_event(event.event))
            case life.ConfirmationAsked(action=action, wanted=wanted):
                self._wanted[action] = wanted.text
            case life.ConfirmationAnswered(action=action):
                self._decided(self._wanted.pop(action, ""), event)
            case a.Message(source=Source.USER, content=content, cause=None):
                if self._question:
                    answer = (
                        truncate_middle(self._question, EXCERPT),
                        truncate_middle(content, EXCERPT),
                    )
                    self.answers.put(str(event.id), answer)
                self._question = ""
            case ActionBase(source=Source.AGENT):
                self._take_action(event)
            case ObservationBase(cause=int(cause)) if cause in self._open:
                self._take_result(self._open.pop(cause), event)
            case _:
                pass

    def _take_action(self, action: ActionBase) -> None:
        match action:
            case a.PlanUpdate(items=items):
                self.plan = items
            case a.Think(content=content):
                self._keep(self.thoughts, content.strip())
            case a.Message(content=content, wait_for_response=True):
                self._question = content
            case a.Finish(message=message):
                self.finished = truncate_middle(message, EXCERPT)
            case _:
                self._open[action.id] = action

    def _decided(self, wanted: str, answer: life.ConfirmationAnswered) -> None:
        shown, reason = (
            truncate_middle(wanted.strip(), EXCERPT),
            truncate_middle(answer.reason, EXCERPT),
        )
        self.decisions.put(wanted, DecisionFact(shown, answer.approved, answer.by, reason))

    def _keep(self, where: _Kept[str], text: str) -> None:
        if text:
            where.put(text[:EXCERPT], truncate_middle(text, EXCERPT))

    def _take_result(self, action: ActionBase, result: ObservationBase) -> None:
        match action, result:
            case _, o.FileEditResult(path=path, diff=diff):
                self._changed(path, "editor", _hunk(diff))
            case a.FileWrite(path=path), o.FileWriteResult():
                self._changed(path, "editor", f"new file of {len(action.content)} characters")
            case a.FileRead(path=path), o.FileReadResult():
                self.looked_at.put(path, path)
            case a.CmdRun(is_input=False), o.CmdOutput():
                self._ran(action.command, result)
            case a.IPythonRunCell(code=code), o.IPythonOutput():
                for path in written_in(code).paths:
                    self._changed(path, "Python", "")
            case a.Delegate(id=id, agent=agent, task=task), o.DelegateResult(content=content):
                self._nested.pop(id, None)
                told = (
                    truncate_middle(f"{agent}: {task}", EXCERPT),
                    truncate_middle(content, 2 * EXCERPT),
                )
                self.delegated.put(str(id), told)
            case _:
                pass

    def _changed(self, path: str, how: str, what: str) -> None:
        known = self.files.by_key.get(path)
        why = truncate_middle(self._said, EXCERPT) or (known.why if known else "")
        times = known.times + 1 if known else 1
        nested = self._parent is not None
        self.files.put(path, ChangedFile(path, times, how, what, why, by_delegate=nested))
        self._no_longer_fresh()

    def _no_longer_fresh(self) -> None:
        for key, check in self.checks.by_key.items():
            self.checks.by_key[key] = replace(check, changed_since=True)

    def _ran(self, command: str, result: o.CmdOutput) -> None:
        shown = truncate_middle(command.strip(), EXCERPT)
        what = written_paths(command)
        for path in what.paths:
            self._changed(path, shown, "")
        if what.unknown:
            self._no_longer_fresh()
            self.commands.put(shown, (shown, result.exit_code))
        checks = checks_in(command)
        piped = not read_checks(command).vouched
        for check in checks:
            known = self.checks.by_key.get(check)
            times = known.times + 1 if known else 1
            outcome = command_outcome(result.content)
            nested = self._parent is not None
            kept = CheckFact(truncate_middle(check, EXCERPT), result.exit_code, outcome, times)
            self.checks.put(check, replace(kept, by_delegate=nested, piped=piped))
        if result.exit_code and not checks:
            self.failures.put(shown, (shown, result.exit_code))

    def told(self, room: int = ROOM) -> dict[str, object]:
        """Return all facts within about `room` characters, by name, as arguments for a template."""
        part = room // 100
        first, late = self.thoughts.both_ends(18 * part)
        early_words, late_words = self.words.both_ends(9 * part)
        early_views, late_views = self.looked_at.both_ends(5 * part)
        files = self.files.latest(14 * part)
        older = list(self.files.by_key.values())[: -len(files.items) or None]
        reasons = _Kept(MOST["files"], 0, {x.path: _in_short(x) for x in older}).latest(14 * part)
        paths = [x.path for x in older[: -len(reasons.items) or None]]
        # changed files come in three levels of detail: in full, one line each, path only
        before = _Kept(MOST["files"], 0, dict(zip(paths, paths, strict=True)), self.files.dropped)
        return {
            "plan": _plan(self.plan, 9 * part),
            "files": files,
            "changed_earlier": reasons.items,
            "changed_before": before.latest(14 * part),
            "checks": self.checks.latest(19 * part),
            "decisions": self.decisions.latest(8 * part),
            "answers": self.answers.latest(6 * part),
            "first_thoughts": first,
            "thoughts": late,
            "first_words": early_words,
            "words": late_words,
            "failures": self.failures.latest(3 * part),
            "commands": self.commands.latest(2 * part),
            "delegated": self.delegated.latest(4 * part),
            "first_views": early_views,
            "views": late_views,
            "finished": self.finished,
        }


def _plan(items: Sequence[PlanItem], room: int) -> Listed[PlanItem]:
    """Return as much of the plan as fits: finished items are left out first, then the last ones."""
    told = list(items)
    size = sum(_length(item.title) for item in told)
    for item in [*(x for x in items if x.status == "done"), *reversed(items)]:
        if size <= room:
            break
        if item in told:
            told.remove(item)
            size -= _length(item.title)
    return Listed(tuple(told), len(items) - len(told))


def _in_short(change: ChangedFile) -> str:
    """Return the change in one line: the path, with the shortened reason if there is one."""
    why = " ".join(change.why.split())
    return f"{change.path}: {truncate_middle(why, SHORT)}" if why else change.path


def _hunk(diff: str) -> str:
    """Return up to six removed and added lines of a diff, and how many more there are."""
    lines = [
        line
        for line in diff.splitlines()
        if line[:1] in "+-" and line[:3] not in ("+++", "---") and line[1:].strip()
    ]
    shown = "\n".join(line[:100] for line in lines[:6])
    return f"{shown}\n(and {len(lines) - 6} more lines)" if len(lines) > 6 else shown


def _length(item: object) -> int:
    """Return the approximate number of characters that the rendered entry takes."""
    match item:
        case str():
            return len(item) + 4
        case tuple():
            parts: Sequence[object] = item
            return 8 + sum(len(str(part)) for part in parts)
        case ChangedFile(path=path, how=how, what=what, why=why):
            return 30 + len(path) + len(how) + len(what) + len(why)
        case DecisionFact(action=action, by=by, reason=reason):
            return 30 + len(action) + len(by) + len(reason)
        case CheckFact(command=command, outcome=outcome):
            return 40 + len(command) + len(outcome)
        case _:
            return len(str(item))
