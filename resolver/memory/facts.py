"""Facts about an agent's work, derived from its event log: files changed, commands, the plan,
questions and answers, decisions. Condensers put them into the summary of what a conversation left
out. No model writes them, only the latest state of each is kept, and their number is limited.
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
from resolver.events.state import LogFollower, State
from resolver.models.run import PlanItem
from resolver.models.truncate import truncate_middle

_FAILING = re.compile(
    r"^\s*(?:FAILED\b|ERROR\b|FAIL\b|FAIL:|--- FAIL|not ok\b|E   |✕|✗|×|●|[^\s:]+:\d+(?::\d+)?: "
    r"error|error(?:\[|:| TS)|[\w.]*(?:Error|Exception)\b:|thread '.*panicked|Tests? failed)",
)
MAX_FAILING_LINES = 6
MAX_LINE_LENGTH = 160
"""Maximum characters of one quoted line."""


def command_outcome(output: str, max_length: int = 600) -> str:
    """Return the lines of the output that show how a command ended: failures and the last two.

    max_length: maximum characters returned.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    failing = [line for line in lines if _FAILING.match(line)]
    shown = [line[:MAX_LINE_LENGTH] for line in failing[:MAX_FAILING_LINES]]
    if len(failing) > MAX_FAILING_LINES:
        shown.append(f"(and {len(failing) - MAX_FAILING_LINES} more such lines)")
    shown += [line[:MAX_LINE_LENGTH] for line in lines[-2:] if line[:MAX_LINE_LENGTH] not in shown]
    return "\n".join(shown)[:max_length]


DEFAULT_MAX_LENGTH = 24_000
"""Default limit on the characters of all facts together (approximate)."""

MAX_EXCERPT_LENGTH = 240
"""Maximum characters of one quoted text."""

MAX_SHORT_REASON_LENGTH = 100
"""Maximum characters of a quoted reason in the one-line form of a change."""

MAX_ENTRIES = {
    "files": 400, "results": 60, "commands": 24, "decisions": 60, "thoughts": 120, "replies": 60,
    "others": 12,
}  # fmt: skip
"""Maximum entries kept per category; of entries beyond it, only the number is kept."""

KEPT_FIRST_ENTRIES = 12
"""Number of the agent's earliest notes, replies and viewed files that are never dropped: they show
how the agent found its way into the task."""

T = TypeVar("T")


@dataclass(frozen=True)
class ChangedFile:
    """Represents the last change of a file.

    changed_with: "editor", "Python", or the command that wrote the file.
    excerpt: the first lines that were removed and added, or the size of a new file.
    reason: what the agent said in the reply that made the change.

    Ids of the events are left out; they can be found in the log.
    """

    path: str
    times: int
    changed_with: str
    excerpt: str = ""
    reason: str = ""
    by_delegate: bool = False


@dataclass(frozen=True)
class CommandFact:
    """Represents the last result of a command.

    exit_code: None if the command did not end.
    changed_since: files have changed after it ran.
    """

    command: str
    exit_code: int | None
    outcome: str
    times: int
    changed_since: bool = False
    by_delegate: bool = False


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
class TruncatedList(Generic[T]):
    """Holds the entries of a list that fit into a limit; `left_out` is the number of the others."""

    items: tuple[T, ...] = ()
    left_out: int = 0


@dataclass(frozen=True)
class FactSummary:
    """The facts that a summary shows.

    files: the changes of files, latest last. files_in_one_line: earlier ones with a short reason.
    files_by_path: the paths of still earlier ones.
    results: commands that failed or were run more than once. commands: the others.
    answers: what the agent asked and what people answered. delegated: tasks and their results.
    first_viewed, latest_viewed: paths of the files that the agent viewed.
    finished: the message with which the agent declared its work finished once.
    """

    plan: TruncatedList[PlanItem]
    files: TruncatedList[ChangedFile]
    files_in_one_line: tuple[str, ...]
    files_by_path: TruncatedList[str]
    results: TruncatedList[CommandFact]
    commands: TruncatedList[CommandFact]
    decisions: TruncatedList[DecisionFact]
    answers: TruncatedList[tuple[str, str]]
    first_thoughts: TruncatedList[str]
    latest_thoughts: TruncatedList[str]
    first_replies: TruncatedList[str]
    latest_replies: TruncatedList[str]
    delegated: TruncatedList[tuple[str, str]]
    first_viewed: TruncatedList[str]
    latest_viewed: TruncatedList[str]
    finished: str


@dataclass(frozen=True)
class WorkRecord:
    """The content of the summary of condensed turns.

    turns: number of turns that are left out. below: number of turns that are shown after it.
    facts: None if the summary has none.
    """

    turns: int
    below: int
    facts: FactSummary | None


@dataclass
class _BoundedEntries(Generic[T]):
    """Holds entries by key: the `first` oldest ones and the latest, `limit` in all.

    dropped: number of entries that were removed to stay within `limit`.
    """

    limit: int
    first: int = 0
    by_key: dict[str, T] = field(default_factory=dict)
    dropped: int = 0

    def put(self, key: str, value: T) -> None:
        """Add an entry, or move an existing one to the end, and drop one if there are too many."""
        self.by_key.pop(key, None)
        self.by_key[key] = value
        if len(self.by_key) > self.limit:
            del self.by_key[next(islice(self.by_key, self.first, None))]
            self.dropped += 1

    def latest(self, max_length: int) -> TruncatedList[T]:
        """Return as many of the newest entries as fit into `max_length` characters, oldest first.

        At least one entry is returned, if there is any.
        """
        items = list(self.by_key.values())
        chosen: list[T] = []
        for item in reversed(items):
            max_length -= _length(item)
            if max_length < 0 and chosen:
                break
            chosen.append(item)
        return TruncatedList(tuple(reversed(chosen)), self.dropped + len(items) - len(chosen))

    def oldest_and_newest(self, max_length: int) -> tuple[TruncatedList[T], TruncatedList[T]]:
        """Return the oldest entries within a third of the length, the newest within the rest."""
        items = list(self.by_key.values())
        oldest: list[T] = []
        remaining = max_length // 3
        for item in items:
            remaining -= _length(item)
            if remaining < 0:
                break
            oldest.append(item)
        later_entries = _BoundedEntries(
            self.limit, 0, {str(index): x for index, x in enumerate(items[len(oldest) :])}
        )
        newest = later_entries.latest(max_length - max_length // 3)
        return TruncatedList(tuple(oldest)), replace(
            newest, left_out=newest.left_out + self.dropped
        )


class Facts:
    """Collects the facts of one agent's log and updates them from new events only.

    What delegates changed and executed, and what people decided about their actions, is included.

    parent: the facts of the delegating agent. A delegate's changes, commands and decisions are
        recorded there; None for an agent that is not a delegate.
    """

    def __init__(self, parent: "Facts | None" = None) -> None:
        self._parent = parent
        self._log = LogFollower()
        self._clear()

    def _clear(self) -> None:
        parent = self._parent
        self._pending_actions: dict[int, ActionBase] = {}
        self._approval_texts: dict[int, str] = {}
        self._nested: dict[int, Facts] = {}
        self._last_reply_text = ""
        self._question = ""
        self.plan: tuple[PlanItem, ...] = ()
        self.finished = ""
        self.files: _BoundedEntries[ChangedFile] = (
            parent.files if parent else _BoundedEntries(MAX_ENTRIES["files"])
        )
        # Commands that failed or were run again are kept longer than those that ran once: they show
        # what the work is checked with.
        self.results: _BoundedEntries[CommandFact] = (
            parent.results if parent else _BoundedEntries(MAX_ENTRIES["results"])
        )
        self.commands: _BoundedEntries[CommandFact] = (
            parent.commands if parent else _BoundedEntries(MAX_ENTRIES["commands"])
        )
        self.decisions: _BoundedEntries[DecisionFact] = (
            parent.decisions if parent else _BoundedEntries(MAX_ENTRIES["decisions"])
        )
        self.thoughts = _BoundedEntries[str](MAX_ENTRIES["thoughts"], KEPT_FIRST_ENTRIES)
        self.replies = _BoundedEntries[str](MAX_ENTRIES["replies"], KEPT_FIRST_ENTRIES)
        self.viewed_files = _BoundedEntries[str](MAX_ENTRIES["files"], KEPT_FIRST_ENTRIES)
        self.answers = _BoundedEntries[tuple[str, str]](MAX_ENTRIES["others"])
        self.delegated = _BoundedEntries[tuple[str, str]](MAX_ENTRIES["others"])

    def update(self, state: State) -> None:
        """Process the new events of the state.

        Starts over if the state does not continue the one of the last call.
        """
        new_events, is_start = self._log.read(state)
        if is_start:
            self._clear()
        for event in new_events:
            self.process(event)

    def process(self, event: Event) -> None:
        """Process one event, the next of the log."""
        match event:
            case life.ModelReplied(completion=completion):
                self._last_reply_text = completion.text.strip()
                self._add_text(self.replies, self._last_reply_text)
            case life.DelegateEvent(delegate=delegate):
                if delegate not in self._nested:
                    self._nested[delegate] = Facts(self)
                self._nested[delegate].process(parse_logged_event(event.event))
            case life.ConfirmationAsked(action=action, wanted=wanted):
                self._approval_texts[action] = wanted.text
            case life.ConfirmationAnswered(action=action):
                self._add_decision(self._approval_texts.pop(action, ""), event)
            case a.Message(source=Source.USER, content=content, cause=None):
                if self._question:
                    answer = (
                        truncate_middle(self._question, MAX_EXCERPT_LENGTH),
                        truncate_middle(content, MAX_EXCERPT_LENGTH),
                    )
                    self.answers.put(str(event.id), answer)
                self._question = ""
            case ActionBase(source=Source.AGENT):
                self._process_action(event)
            case ObservationBase(cause=int(cause)) if cause in self._pending_actions:
                self._process_result(self._pending_actions.pop(cause), event)
            case _:
                pass

    def _process_action(self, action: ActionBase) -> None:
        match action:
            case a.PlanUpdate(items=items):
                self.plan = items
            case a.Think(content=content):
                self._add_text(self.thoughts, content.strip())
            case a.Message(content=content, wait_for_response=True):
                self._question = content
            case a.Finish(message=message):
                self.finished = truncate_middle(message, MAX_EXCERPT_LENGTH)
            case _:
                self._pending_actions[action.id] = action

    def _add_decision(self, action_text: str, answer: life.ConfirmationAnswered) -> None:
        action_excerpt, reason = (
            truncate_middle(action_text.strip(), MAX_EXCERPT_LENGTH),
            truncate_middle(answer.reason, MAX_EXCERPT_LENGTH),
        )
        self.decisions.put(
            action_text, DecisionFact(action_excerpt, answer.approved, answer.by, reason)
        )

    def _add_text(self, entries: _BoundedEntries[str], text: str) -> None:
        if text:
            entries.put(text[:MAX_EXCERPT_LENGTH], truncate_middle(text, MAX_EXCERPT_LENGTH))

    def _process_result(self, action: ActionBase, result: ObservationBase) -> None:
        match action, result:
            case _, o.FileEditResult(path=path, diff=diff):
                self._add_changes(result, "editor", _hunk(diff), path)
            case a.FileWrite(path=path), o.FileWriteResult():
                size = f"new file of {len(action.content)} characters"
                self._add_changes(result, "editor", size, path)
            case a.FileRead(path=path), o.FileReadResult():
                self.viewed_files.put(path, path)
            case a.CmdRun(is_input=False), o.CmdOutput():
                self._add_command(action.command, result)
            case a.IPythonRunCell(), o.IPythonOutput():
                self._add_changes(result, "Python")
            case a.Delegate(id=id, agent=agent, task=task), o.DelegateResult(content=content):
                self._nested.pop(id, None)
                delegation = (
                    truncate_middle(f"{agent}: {task}", MAX_EXCERPT_LENGTH),
                    truncate_middle(content, 2 * MAX_EXCERPT_LENGTH),
                )
                self.delegated.put(str(id), delegation)
            case _:
                pass

    def _add_changes(
        self,
        result: o.SandboxObservation,
        changed_with: str,
        excerpt: str = "",
        named_path: str = "",
    ) -> None:
        """Record the files that the action changed.

        named_path: path that the action names, for a log that has no list of changed files.
        """
        default = (named_path,) if named_path else ()
        paths = result.changed.paths if result.changed is not None else default
        for path in paths:
            self._add_change(path, changed_with, excerpt if len(paths) == 1 else "")

    def _add_change(self, path: str, changed_with: str, excerpt: str) -> None:
        earlier = self.files.by_key.get(path)
        reason = truncate_middle(self._last_reply_text, MAX_EXCERPT_LENGTH) or (
            earlier.reason if earlier else ""
        )
        times = earlier.times + 1 if earlier else 1
        nested = self._parent is not None
        change = ChangedFile(path, times, changed_with, excerpt, reason, by_delegate=nested)
        self.files.put(path, change)
        for entries in (self.results, self.commands):
            for key, command in entries.by_key.items():
                entries.by_key[key] = replace(command, changed_since=True)

    def _add_command(self, command: str, result: o.CmdOutput) -> None:
        excerpt = truncate_middle(command.strip(), MAX_EXCERPT_LENGTH)
        self._add_changes(result, excerpt)
        earlier = self.commands.by_key.pop(excerpt, None) or self.results.by_key.get(excerpt)
        times = earlier.times + 1 if earlier else 1
        outcome = command_outcome(result.content, 200 if result.exit_code == 0 else 600)
        nested = self._parent is not None
        fact = CommandFact(excerpt, result.exit_code, outcome, times, by_delegate=nested)
        entries = self.results if times > 1 or result.exit_code != 0 else self.commands
        entries.put(excerpt, fact)

    def summarize(self, max_length: int = DEFAULT_MAX_LENGTH) -> FactSummary:
        """Return the facts that fit, about `max_length` characters together."""
        percent = max_length // 100
        first_thoughts, latest_thoughts = self.thoughts.oldest_and_newest(18 * percent)
        first_replies, latest_replies = self.replies.oldest_and_newest(9 * percent)
        first_viewed, latest_viewed = self.viewed_files.oldest_and_newest(5 * percent)
        files = self.files.latest(14 * percent)
        older = list(self.files.by_key.values())[: -len(files.items) or None]
        reasons = _BoundedEntries(
            MAX_ENTRIES["files"], 0, {change.path: _one_line(change) for change in older}
        ).latest(14 * percent)
        paths = [change.path for change in older[: -len(reasons.items) or None]]
        # changed files come in three levels of detail: in full, one line each, path only
        oldest = _BoundedEntries(
            MAX_ENTRIES["files"], 0, dict(zip(paths, paths, strict=True)), self.files.dropped
        )
        return FactSummary(
            plan=_fit_plan(self.plan, 9 * percent),
            files=files,
            files_in_one_line=reasons.items,
            files_by_path=oldest.latest(14 * percent),
            results=self.results.latest(19 * percent),
            commands=self.commands.latest(5 * percent),
            decisions=self.decisions.latest(8 * percent),
            answers=self.answers.latest(6 * percent),
            first_thoughts=first_thoughts,
            latest_thoughts=latest_thoughts,
            first_replies=first_replies,
            latest_replies=latest_replies,
            delegated=self.delegated.latest(4 * percent),
            first_viewed=first_viewed,
            latest_viewed=latest_viewed,
            finished=self.finished,
        )


def _fit_plan(items: Sequence[PlanItem], max_length: int) -> TruncatedList[PlanItem]:
    """Return as much of the plan as fits: finished items are left out first, then the last ones."""
    shown = list(items)
    size = sum(_length(item.title) for item in shown)
    for item in [*(x for x in items if x.status == "done"), *reversed(items)]:
        if size <= max_length:
            break
        if item in shown:
            shown.remove(item)
            size -= _length(item.title)
    return TruncatedList(tuple(shown), len(items) - len(shown))


def _one_line(change: ChangedFile) -> str:
    """Return the change in one line: the path, with the shortened reason if there is one."""
    reason = truncate_middle(" ".join(change.reason.split()), MAX_SHORT_REASON_LENGTH)
    return f"{change.path}: {reason}" if reason else change.path


def _hunk(diff: str) -> str:
    """Return up to six removed and added lines of a diff, and how many more there are."""
    lines = [
        line
        for line in diff.splitlines()
        if line[:1] in "+-" and line[:3] not in ("+++", "---") and line[1:].strip()
    ]
    excerpt = "\n".join(line[:100] for line in lines[:6])
    return f"{excerpt}\n(and {len(lines) - 6} more lines)" if len(lines) > 6 else excerpt


def _length(item: object) -> int:
    """Return the approximate number of characters that the rendered entry takes."""
    match item:
        case str():
            return len(item) + 4
        case tuple():
            parts: Sequence[object] = item
            return 8 + sum(len(str(part)) for part in parts)
        case ChangedFile(path=path, changed_with=changed_with, excerpt=excerpt, reason=reason):
            return 30 + len(path) + len(changed_with) + len(excerpt) + len(reason)
        case DecisionFact(action=action, by=by, reason=reason):
            return 30 + len(action) + len(by) + len(reason)
        case CommandFact(command=command, outcome=outcome):
            return 40 + len(command) + len(outcome)
        case _:
            return len(str(item))
