"""The conversation as condensers see it, and the `Condenser` protocol.

The view has the turns that a model is currently shown, with their sizes, derived from the event
log. A size bound decides when a conversation is too long.
"""

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ActionBase, ObservationBase, Source
from resolver.events.lifecycle import Condensation, DelegateEvent, ModelReplied, ServiceReplied
from resolver.events.log import Event, parse_logged_event
from resolver.events.state import State
from resolver.memory.conversation import MAX_OBSERVATION_LENGTH, images_of
from resolver.memory.turns import History, Note, Turn, masked_text, note_text, result_text
from resolver.models.run import Completion

SERVICE = "condenser"
"""Name of the service in the log whose model writes summaries for condensers."""

CHARACTERS_PER_TOKEN = 4.0
"""Average for English text and code, used until a model call has reported a token count."""

MIN_DENSITY, MAX_DENSITY = 0.2, 1.0
"""Plausible range of tokens per character. A density outside of it is clamped: some endpoints leave
cached tokens out of their count."""

MIN_COUNTED_LENGTH = 20_000
"""Minimum characters of a conversation for which the reported token count gives the density. In a
shorter one, the tool definitions, which are counted too, distort it."""

PICTURE_LENGTH = 4_000
"""Number of characters that an image counts as."""

MIN_MASKABLE_LENGTH = 800
"""Minimum characters of an observation that is worth masking."""

SUFFICIENT_SHARE = 0.75
"""After the model has reported that the conversation does not fit, it is condensed until at most
this share of its size is left."""

MAX_TOKENS = 100_000
"""Maximum tokens of a conversation if no maximum is configured."""

WINDOW_SHARE = 0.7
"""Share of a model's context window that a conversation may take. The rest is for replies and for
errors of the token estimate."""

MIN_QUERY_TOKENS = 4_000
"""Up to this number of tokens, the size of the context window is not queried."""


@dataclass(frozen=True)
class SizeBound:
    """Represents the maximum number of tokens of a conversation.

    max_tokens: the configured maximum; 0 if none is configured.
    window: returns the model's context window in tokens, or None if it is unknown. Called at most
        once, and only when a conversation is long.
    """

    max_tokens: int = 0
    window: Callable[[], int | None] = lambda: None

    @cached_property
    def tokens(self) -> int:
        """The maximum itself: the configured one, or a share of the context window."""
        if self.max_tokens:
            return self.max_tokens
        window = self.window()
        return min(MAX_TOKENS, int(window * WINDOW_SHARE)) if window else MAX_TOKENS

    def target(
        self, size: int, density: float, *, is_requested: bool, accepted_tokens: int | None
    ) -> int | None:
        """Return the number of characters to condense to: half of the bound, so that condensations
        are rare. None if the conversation may stay as it is.

        accepted_tokens: the bound that the model's endpoint has named, which counts if it is lower.
        """
        tokens = size * density
        is_configured = self.max_tokens or accepted_tokens
        if not is_requested and not is_configured and tokens <= MIN_QUERY_TOKENS:
            return None
        limit = min(self.tokens, accepted_tokens or self.tokens)
        return min(size, int(limit / density)) // 2 if is_requested or tokens > limit else None


class AgentLog:
    """Follows one agent's log over many calls of `view`, and processes only new events each
    time."""

    def __init__(self, bound: SizeBound) -> None:
        self._bound = bound
        self._history = History()
        self._state = State()
        self._completed_turns = 0
        self._shown_turns: list[Turn] = []
        self._size = 0
        self._replies_taken = 0

    def view(self, state: State) -> "CondenserView":
        """Return what the model is shown after the state's last event."""
        self._state = state
        self._replies_taken = 0
        history = self._history
        if history.update(state):
            self._completed_turns, self._shown_turns, self._size = 0, [], 0
        for turn in history.turns[self._completed_turns : -1]:
            self._size += self._shown_size(turn)
            if turn.ids and not self._is_gone(turn):
                self._shown_turns.append(turn)
        self._completed_turns = len(history.turns) - 1
        last_turn = history.turns[-1]
        system_size = len(history.system.content) if history.system else 0
        size_before_last = self._size + system_size + len(history.summary) + len(history.notes)
        size = size_before_last + self._shown_size(last_turn)
        is_shown = last_turn.ids and not self._is_gone(last_turn)
        target = self._bound.target(
            size,
            self._density(size_before_last),
            is_requested=history.condensation_wanted,
            accepted_tokens=history.accepted_tokens,
        )
        return CondenserView(
            log=self,
            turns=(*self._shown_turns, *([last_turn] if is_shown else [])),
            size=size,
            target=target,
            reported_size=size if history.condensation_wanted else None,
            masked=frozenset(history.masked),
            summary=history.summary,
            notes=history.notes,
        )

    def count_forgotten(self, forgotten: AbstractSet[int]) -> int:
        """Return how many turns are left out once the events `forgotten` are left out too."""
        forgotten = forgotten | self._history.forgotten
        return sum(not turn.ids.isdisjoint(forgotten) for turn in self._history.turns)

    @property
    def events(self) -> Iterator[Event]:
        """The events as of the last `view`, those of delegates in their place."""
        return _with_delegates(self._state.events)

    @property
    def user_messages(self) -> tuple[str, ...]:
        """The messages of people, in order."""
        notes = (note for turn in self._history.turns for note in turn.notes)
        return tuple(
            note.content for note in notes if isinstance(note, a.Message) and is_pinned(note)
        )

    def next_reply(self) -> Completion | None:
        """Return the next reply of the condenser's model since the last condensation, or None.

        None means that the model has to be asked. A reply is already in the log if the process that
        asked for it was killed before it wrote the condensation.
        """
        replies = self._replies()
        if self._replies_taken == len(replies):
            return None
        self._replies_taken += 1
        return replies[self._replies_taken - 1]

    def _replies(self) -> list[Completion]:
        replies: list[Completion] = []
        for event in reversed(self._state.events):
            is_other_action = (
                isinstance(event, ActionBase) and event.source is not Source.ENVIRONMENT
            )
            if is_other_action or isinstance(event, ModelReplied | Condensation):
                break
            if isinstance(event, ServiceReplied) and event.service == SERVICE:
                replies.insert(0, event.completion)
        return replies

    def _is_gone(self, turn: Turn) -> bool:
        return not turn.ids.isdisjoint(self._history.forgotten)

    def _shown_size(self, turn: Turn) -> int:
        history = self._history
        pictures = sum(len(history.pictures_of(note)) for note in turn.notes)
        notes = _notes_size(turn, history.forgotten) + PICTURE_LENGTH * pictures
        return notes if self._is_gone(turn) else notes + _turn_size(turn, history.masked)

    def _density(self, characters: int) -> float:
        """Return tokens per character, computed from the token count of the last model call.

        Falls back to the average if there is no call yet, if it has no token count, if the
        conversation is short, or if it was condensed after the call.

        characters: size of the conversation that the call sent.
        """
        reply = self._history.turns[-1].reply
        events = self._state.events[reply.id + 1 :] if reply else ()
        if (
            reply is None
            or characters < MIN_COUNTED_LENGTH
            or any(isinstance(event, Condensation) for event in events)
        ):
            return 1 / CHARACTERS_PER_TOKEN
        density = reply.completion.tokens.input / characters
        return min(MAX_DENSITY, max(density, MIN_DENSITY)) if density else 1 / CHARACTERS_PER_TOKEN


@dataclass(frozen=True)
class CondenserView:
    """Represents the conversation at one moment.

    turns: the turns that are shown, in order. The last one is never forgotten. A turn's notes are
        the messages between it and the next turn.
    size: characters of everything that is shown.
    target: the characters to condense to; None if the conversation is within its bound.
    reported_size: the size at which the model reported that the conversation does not fit; None if
        it did not.
    masked, summary, notes: as in `History`.
    """

    log: AgentLog
    turns: tuple[Turn, ...]
    size: int
    target: int | None
    reported_size: int | None
    masked: AbstractSet[int]
    summary: str
    notes: str

    @property
    def is_requested(self) -> bool:
        """True if the model reported that the conversation does not fit, and it is still too
        large."""
        return self.reported_size is not None and self.size > self.reported_size * SUFFICIENT_SHARE

    def freed_by_forgetting(self, turn: Turn) -> int:
        """Return the number of characters saved by forgetting the turn."""
        forgotten = forgotten_ids(turn)
        return _turn_size(turn, self.masked) + _notes_size(turn, ()) - _notes_size(turn, forgotten)

    def may_mask(self, observation: ObservationBase) -> bool:
        """Return True if the observation is shown in full and is long or has images.

        Errors are never masked.
        """
        if observation.id in self.masked or isinstance(observation, o.ErrorObservation):
            return False
        return len(observation.content) >= MIN_MASKABLE_LENGTH or bool(images_of(observation))

    def freed_by_masking(self, observation: ObservationBase) -> int:
        """Return the number of characters saved by masking the observation."""
        shown_length = min(len(observation.content), MAX_OBSERVATION_LENGTH)
        pictures = PICTURE_LENGTH * len(images_of(observation))
        return max(0, shown_length + pictures - len(masked_text(observation)))

    def after(self, condensation: Condensation) -> "CondenserView":
        """Return the view as it will be after the condensation was added to the log."""
        forgotten = set(condensation.forgotten)
        remaining = tuple(turn for turn in self.turns if turn.ids.isdisjoint(forgotten))
        freed = sum(
            self.freed_by_forgetting(turn)
            for turn in self.turns
            if not turn.ids.isdisjoint(forgotten)
        )
        freed += sum(
            self.freed_by_masking(result)
            for turn in remaining
            for result in turn.results.values()
            if result.id in condensation.masked
        )
        replaced = condensation if forgotten else self
        added = len(replaced.summary + replaced.notes) - len(self.summary + self.notes)
        return replace(
            self,
            turns=remaining,
            size=self.size - freed + added,
            masked=self.masked | set(condensation.masked),
            summary=replaced.summary,
            notes=replaced.notes,
        )


class Condenser(Protocol):
    """Decides what the conversation forgets. The same log always gives the same decision."""

    def condense(self, view: CondenserView) -> Condensation | None:
        """Return what to forget now; None if nothing has to be, or can be, forgotten.

        If `view.is_requested` is true (the model reported that the conversation does not fit), None
        means that nothing more can be left out.
        """
        ...


def is_pinned(note: Note) -> bool:
    """Return True if the note stays when its turn is forgotten: the user's own messages and
    recalled repository knowledge. Automatic replies are forgotten."""
    is_user_message = isinstance(note, a.Message) and note.cause is None
    return is_user_message or isinstance(note, o.RecallResult)


def forgotten_ids(turn: Turn) -> set[int]:
    """Return the ids of all events that are forgotten together with the turn."""
    return turn.ids | {note.id for note in turn.notes if not is_pinned(note)}


def _turn_size(turn: Turn, masked: AbstractSet[int]) -> int:
    """Return the characters of the turn without its notes."""
    reply_size = 0
    if turn.reply:
        completion = turn.reply.completion
        calls = sum(len(call.name) + len(call.arguments) for call in completion.tool_calls)
        reply_size = len(completion.text) + calls
    pictures = sum(
        len(images_of(result)) for result in turn.results.values() if result.id not in masked
    )
    results = (
        len(result_text(turn, index, MAX_OBSERVATION_LENGTH, masked))
        for index in range(len(turn.actions))
    )
    return reply_size + sum(results) + PICTURE_LENGTH * pictures


def _notes_size(turn: Turn, forgotten: AbstractSet[int] | tuple[()]) -> int:
    return sum(
        len(note_text(note, MAX_OBSERVATION_LENGTH))
        for note in turn.notes
        if note.id not in forgotten
    )


def _with_delegates(events: Sequence[Event]) -> Iterator[Event]:
    for event in events:
        if isinstance(event, DelegateEvent):
            yield from _with_delegates([parse_logged_event(event.event)])
        else:
            yield event
