"""Condensers: what a conversation may forget when it grows too long, and what stands in for it."""

from typing import Protocol

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.state import State
from resolver.memory.conversation import MAX_OBSERVATION
from resolver.memory.shown import note_text, result_text
from resolver.memory.text import cut_middle
from resolver.memory.turns import History, Note, Turn
from resolver.templates import render

MAX_CHARS = 400_000
"""About 100,000 tokens of English and code."""

LEAST_SHARE = 10
"""Unasked, it condenses only when a tenth of the bound is won: each time costs a prompt cache."""

SUMMARY_COMMANDS = 40
SUMMARY_WORDS = 12
EXCERPT = 400


class Condenser(Protocol):
    """Decides what the conversation forgets; the same state always gives the same answer."""

    def condense(self, state: State) -> life.Condensation | None:
        """A Condensation to add to the stream; None when nothing has to be, or can be, forgotten.

        After an unanswered CondensationRequest, None means that nothing more can go.
        """
        ...


class NoCondenser:
    """Forgets nothing."""

    def condense(self, state: State) -> life.Condensation | None:  # noqa: ARG002 - the protocol
        return None


class WindowCondenser:
    """Forgets the oldest turns of the middle, whole, until half of the bound is left.

    max_chars: estimated size of the conversation above which it condenses, in characters.
    keep_first, keep_last: turns at both ends that stay. Only a model that says that the context
    is full makes it go below them; the last turn, the system prompt and the user's own words
    always stay.

    The summary is read off the log: files changed, commands with their exit codes, what the
    agent noted. It stands for everything forgotten so far, earlier condensations included.
    """

    def __init__(
        self, max_chars: int = MAX_CHARS, keep_first: int = 2, keep_last: int = 12
    ) -> None:
        self._max = max_chars
        self._first = keep_first
        self._last = max(1, keep_last)
        self._history = History()
        self._sizes: list[int] = []
        self._total = 0

    def condense(self, state: State) -> life.Condensation | None:
        """See `Condenser`."""
        history = self._history
        if history.look(state):
            self._sizes, self._total = [], 0
        for turn in history.turns[len(self._sizes) : -1]:
            self._sizes.append(self._size(turn))
            self._total += self._sizes[-1]
        size = self._total + self._size(history.turns[-1])
        if not history.condensation_wanted and size <= self._max:
            return None
        turns = self._chosen(size)
        if not turns:
            return None
        ids = set().union(*(t.ids | _forgettable_notes(t) for t in turns))
        gone = [t for t in history.turns if t.ids & history.forgotten] + turns
        gone.sort(key=lambda t: min(t.ids))
        return life.Condensation(forgotten=tuple(sorted(ids)), summary=_summary(gone))

    def _size(self, turn: Turn) -> int:
        notes = sum(
            len(note_text(n, MAX_OBSERVATION))
            for n in turn.notes
            if n.id not in self._history.forgotten
        )
        if turn.ids & self._history.forgotten:
            return notes
        written = 0
        if turn.reply:
            completion = turn.reply.completion
            written = len(completion.text) + sum(
                len(c.name) + len(c.arguments) for c in completion.tool_calls
            )
        results = (len(result_text(turn, i, MAX_OBSERVATION)) for i in range(len(turn.actions)))
        return notes + written + sum(results)

    def _chosen(self, size: int) -> list[Turn]:
        """The turns to forget, oldest of the middle first, down to half of what is too much."""
        wanted = self._history.condensation_wanted
        live = [t for t in self._history.turns if t.ids and not t.ids & self._history.forgotten]
        end = max(self._first, len(live) - self._last)
        candidates = live[self._first : end]
        if wanted:
            candidates += live[: self._first] + live[end:]
            candidates = [t for t in candidates if t is not live[-1]]
        target = min(size, self._max) // 2
        chosen: list[Turn] = []
        freed = 0
        for turn in candidates:
            if size - freed <= target and chosen:
                break
            chosen.append(turn)
            freed += self._size(turn)
        return chosen if wanted or freed * LEAST_SHARE >= self._max else []


def _forgettable_notes(turn: Turn) -> set[int]:
    return {n.id for n in turn.notes if not _is_kept(n)}


def _is_kept(note: Note) -> bool:
    """The user's own words and the repository's instructions stay; automatic replies go."""
    own_words = isinstance(note, a.Message) and note.cause is None
    return own_words or isinstance(note, o.RecallResult)


def _summary(turns: list[Turn]) -> str:
    files: dict[str, None] = {}
    commands: list[tuple[str, int | None]] = []
    words: list[str] = []
    for turn in turns:
        said = turn.reply.completion.text if turn.reply else ""
        words += [said] if said.strip() else []
        for action in turn.actions:
            result = turn.results.get(action.id)
            match action, result:
                case a.CmdRun(is_input=False, command=command), o.CmdOutput(exit_code=code):
                    commands.append((cut_middle(command, EXCERPT), code))
                case _, o.FileWriteResult(path=path) | o.FileEditResult(path=path):
                    files[path] = None
                case a.Think(content=content), _:
                    words.append(content)
                case _:
                    pass
    return render(
        "agent/summary.md.j2",
        turns=len(turns),
        files=list(files),
        commands=commands[-SUMMARY_COMMANDS:],
        earlier_commands=max(0, len(commands) - SUMMARY_COMMANDS),
        words=[cut_middle(w.strip(), EXCERPT) for w in words[-SUMMARY_WORDS:]],
    ).strip()
