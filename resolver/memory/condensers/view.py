"""The conversation as condensers see it: its turns with their sizes, and when it is too long."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ObservationBase
from resolver.events.lifecycle import Condensation
from resolver.events.log import Event, innermost
from resolver.events.state import State
from resolver.memory.conversation import MAX_OBSERVATION_LENGTH
from resolver.memory.turns import History, Note, Turn, masked_text, note_text

CHARACTERS_PER_TOKEN = 4.0
"""Average for English text and code, used until a model call has reported a token count."""

MIN_DENSITY, MAX_DENSITY = 0.2, 1.0
"""Plausible range of tokens per character. A density outside of it is clamped: some endpoints leave
cached tokens out of their count."""

PICTURE_LENGTH = 4_000
"""Number of characters that an image counts as."""

MIN_MASKABLE_LENGTH = 800
"""Minimum characters of an observation that is worth masking."""

MAX_TOKENS = 100_000
"""Maximum tokens of a conversation, or fewer if the model's context window is small."""

WINDOW_SHARE = 0.7
"""Share of a model's context window that a conversation may take. The rest is for replies and for
errors of the token estimate."""

MaxTokens = Callable[[], int]
"""Returns the number of tokens from which a conversation is too long."""


def max_tokens_for(window: int | None) -> int:
    """Return the maximum for a model with this context window in tokens; None if it is unknown."""
    return min(MAX_TOKENS, int(window * WINDOW_SHARE)) if window else MAX_TOKENS


@dataclass(frozen=True)
class CondenserView:
    """Represents the conversation at one moment.

    history: its turns, and what was forgotten and masked so far.
    log: the events of the agent.
    sizes: of the first turns, which don't change any more. It is extended when the size is asked.
    """

    history: History
    log: Sequence[Event]
    max_tokens: MaxTokens
    sizes: list[int] = field(default_factory=list)

    @property
    def is_requested(self) -> bool:
        """True if the model reported that the conversation does not fit."""
        return self.history.condensation_wanted

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """The turns that are shown, in order. The last one is never forgotten."""
        forgotten = self.history.forgotten
        return tuple(
            turn for turn in self.history.turns if turn.ids and forgotten.isdisjoint(turn.ids)
        )

    @cached_property
    def size(self) -> int:
        """Number of characters of everything that is shown."""
        history = self.history
        *settled, last = history.turns
        self.sizes.extend(map(self._shown_size, settled[len(self.sizes) :]))
        texts = (history.system.content if history.system else "", history.summary, history.notes)
        return sum(map(len, texts)) + sum(self.sizes) + self._shown_size(last)

    @cached_property
    def target(self) -> int | None:
        """The number of characters to condense to: half of the maximum, so that condensations are
        rare. None if the conversation may stay as it is.

        A maximum that the model's endpoint has named counts if it is lower.
        """
        density = self._density()
        accepted = self.history.accepted_tokens
        limit = min(self.max_tokens(), accepted or self.max_tokens())
        if not self.is_requested and self.size * density <= limit:
            return None
        return min(self.size, int(limit / density)) // 2

    @property
    def events(self) -> Iterator[Event]:
        """The events of the log, those of delegates in their place."""
        return map(innermost, self.log)

    @property
    def user_messages(self) -> tuple[str, ...]:
        """The messages of people, in order."""
        notes = (note for turn in self.history.turns for note in turn.notes)
        return tuple(
            note.content for note in notes if isinstance(note, a.Message) and is_pinned(note)
        )

    def _shown_size(self, turn: Turn) -> int:
        is_shown = turn.ids.isdisjoint(self.history.forgotten)
        return self.turn_size(turn) if is_shown else self._notes_size(turn)

    def turn_size(self, turn: Turn) -> int:
        """Return the number of characters that the turn takes, with the notes after it."""
        size = self._notes_size(turn)
        if turn.reply:
            completion = turn.reply.completion
            size += len(completion.text)
            size += sum(len(call.name) + len(call.arguments) for call in completion.tool_calls)
        for result in turn.results.values():
            is_masked = result.id in self.history.masked
            size += len(masked_text(result)) if is_masked else _result_size(result)
        return size

    def freed_by_forgetting(self, turn: Turn) -> int:
        """Return the number of characters saved by forgetting the turn."""
        pinned = Turn(notes=[note for note in turn.notes if is_pinned(note)])
        return self.turn_size(turn) - self._notes_size(pinned)

    def may_mask(self, observation: ObservationBase) -> bool:
        """Return True if the observation is shown in full and is long or has images.

        Errors are never masked.
        """
        if observation.id in self.history.masked or isinstance(observation, o.ErrorObservation):
            return False
        return len(observation.content) >= MIN_MASKABLE_LENGTH or bool(o.images_of(observation))

    @staticmethod
    def freed_by_masking(observation: ObservationBase) -> int:
        """Return the number of characters saved by masking the observation."""
        return max(0, _result_size(observation) - len(masked_text(observation)))

    def count_forgotten(self, ids: set[int]) -> int:
        """Return how many turns are left out once the events `ids` are left out too."""
        forgotten = ids | self.history.forgotten
        return sum(not turn.ids.isdisjoint(forgotten) for turn in self.history.turns)

    def _notes_size(self, turn: Turn) -> int:
        shown = [note for note in turn.notes if note.id not in self.history.forgotten]
        pictures = sum(len(self.history.pictures_of(note)) for note in shown)
        texts = sum(len(note_text(note, MAX_OBSERVATION_LENGTH)) for note in shown)
        return texts + PICTURE_LENGTH * pictures

    def _density(self) -> float:
        """Return tokens per character: of the last model call, or the average if it had no token
        count or the conversation was condensed since."""
        last = self.history.turns[-1]
        counted = last.reply.completion.tokens.input if last.reply else 0
        events = self.log[last.reply.id + 1 :] if last.reply else ()
        if not counted or any(isinstance(event, Condensation) for event in events):
            return 1 / CHARACTERS_PER_TOKEN
        sent = max(1, self.size - self.turn_size(last))
        return min(MAX_DENSITY, max(counted / sent, MIN_DENSITY))


class Condenser(Protocol):
    """Decides what the conversation forgets. The same log always gives the same decision."""

    def condense(self, view: CondenserView) -> Condensation | None:
        """Return what to forget now; None if nothing has to be, or can be, forgotten.

        If `view.is_requested` is true (the model reported that the conversation does not fit), None
        means that nothing more can be left out.
        """
        ...


class LogCondenser:
    """Applies a condenser to the log of one agent."""

    def __init__(self, condenser: Condenser, max_tokens: MaxTokens = lambda: MAX_TOKENS) -> None:
        self._condenser = condenser
        self._max_tokens = max_tokens
        self._history = History()
        self._revision = 0
        self._sizes: list[int] = []

    def condense(self, state: State) -> Condensation | None:
        """Return a Condensation to add to the stream, or None as `Condenser.condense` does."""
        self._history.update(state)
        if self._revision != self._history.revision:
            self._revision, self._sizes = self._history.revision, []
        view = CondenserView(self._history, state.events, self._max_tokens, self._sizes)
        return self._condenser.condense(view)


def is_pinned(note: Note) -> bool:
    """Return True if the note stays when its turn is forgotten: the user's own messages and
    recalled repository knowledge. Automatic replies are forgotten."""
    is_user_message = isinstance(note, a.Message) and note.cause is None
    return is_user_message or isinstance(note, o.RecallResult)


def forgotten_ids(turn: Turn) -> set[int]:
    """Return the ids of all events that are forgotten together with the turn."""
    return turn.ids | {note.id for note in turn.notes if not is_pinned(note)}


def _result_size(result: ObservationBase) -> int:
    return min(len(result.content), MAX_OBSERVATION_LENGTH) + PICTURE_LENGTH * len(
        o.images_of(result)
    )
