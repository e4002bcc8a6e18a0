"""Condensers that need no model of their own: each chooses turns to forget or results to mask.

What was forgotten is replaced by a short record of the work, taken from typed events of the log,
and by the notes of a model if the condenser has one that writes them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ObservationBase, Source
from resolver.events.lifecycle import Condensation
from resolver.events.log import Event
from resolver.memory.condensers.view import Condenser, CondenserView, forgotten_ids
from resolver.memory.turns import Turn
from resolver.models.run import PlanItem
from resolver.models.truncate import truncate_middle

MIN_SAVING_SHARE = 0.2
"""Unless the model asked for it, a condensation has to save this share of what is to be left: each
one invalidates the provider's prompt cache."""

MAX_MASKED_SHARE = 1.3
"""Masking has to leave at most this share of the target. Otherwise it would soon be due again."""

MAX_CHANGED_PATHS = 200
MAX_RECORD_ENTRIES = 40
"""Maximum entries of each other list of the record."""

MAX_EXCERPT_LENGTH = 240
"""Maximum characters of one quoted text of the record."""

NoteWriter = Callable[[CondenserView, Sequence[Turn]], str | None]
"""Returns notes on turns that are about to be forgotten and on everything that was forgotten before
them; None if the model gave no usable answer, of which a warning has been logged."""


@dataclass(frozen=True)
class WorkRecord:
    """What the log says about an agent's work when turns are left out.

    turns: number of turns that are left out.
    changed: paths of the files that the agent and its delegates changed, the latest last.
    decisions: the last answer of a person about each action that waited for approval, by its text.
    answers: questions of the agent with their answers.
    """

    turns: int
    plan: tuple[PlanItem, ...]
    changed: tuple[str, ...]
    decisions: dict[str, life.ConfirmationAnswered]
    answers: tuple[tuple[str, str], ...]


def record_work(events: Iterable[Event], turns: int) -> WorkRecord:
    """Return the record of the events of a log. turns: number of turns that are left out."""
    plan: tuple[PlanItem, ...] = ()
    changed: dict[str, None] = {}
    waiting: dict[int, str] = {}
    decisions: dict[str, life.ConfirmationAnswered] = {}
    answers: list[tuple[str, str]] = []
    question: str | None = None
    for event in events:
        match event:
            case a.PlanUpdate(items=items):
                plan = items
            case o.SandboxObservation(changed=o.ChangedPaths(paths=paths)):
                for path in paths:
                    changed.pop(path, None)
                    changed[path] = None
            case life.ConfirmationAsked(action=action, wanted=wanted):
                waiting[action] = truncate_middle(wanted.text.strip(), MAX_EXCERPT_LENGTH)
            case life.ConfirmationAnswered(action=action):
                text = waiting.pop(action, "")
                decisions.pop(text, None)
                decisions[text] = event
            case a.Message(content=content, wait_for_response=True):
                question = content
            case a.Message(source=Source.USER, content=content, cause=None):
                if question is not None:
                    answers.append((_excerpt(question), _excerpt(content)))
                question = None
            case _:
                pass
    return WorkRecord(
        turns,
        plan[:MAX_RECORD_ENTRIES],
        tuple(changed)[-MAX_CHANGED_PATHS:],
        dict(list(decisions.items())[-MAX_RECORD_ENTRIES:]),
        tuple(answers[-MAX_RECORD_ENTRIES:]),
    )


def _excerpt(text: str) -> str:
    return truncate_middle(text, MAX_EXCERPT_LENGTH)


def forget(
    view: CondenserView, turns: Sequence[Turn], notes: str | None = None
) -> Condensation | None:
    """Return the Condensation that forgets these turns; None if there are none.

    notes: notes that a model wrote about the turns; None keeps the notes so far.
    """
    if not turns:
        return None
    ids: set[int] = set().union(*(forgotten_ids(turn) for turn in turns))
    record = record_work(view.events, view.count_forgotten(ids))
    summary = render("agent/summary.md.j2", record).strip()
    return Condensation(
        forgotten=tuple(sorted(ids)), summary=summary, notes=notes or view.history.notes
    )


def maskable(view: CondenserView, turns: Iterable[Turn]) -> list[ObservationBase]:
    """Return the turns' results that are shown in full and are long enough to be masked, in
    order."""
    results = (result for turn in turns for result in turn.results.values())
    return [result for result in results if view.may_mask(result)]


def mask(observations: Sequence[ObservationBase]) -> Condensation | None:
    """Return the Condensation that masks the observations; None if there are none."""
    ids = tuple(sorted(observation.id for observation in observations))
    return Condensation(forgotten=(), masked=ids) if ids else None


def middle_and_ends(
    view: CondenserView, keep_first: int, keep_last: int
) -> tuple[list[Turn], list[Turn]]:
    """Return the turns that are forgotten first, and those that are forgotten only if it is not
    enough: those of both ends, except the last turn. Both oldest first."""
    *turns, _ = view.turns or [Turn()]
    end = max(keep_first, len(view.turns) - max(1, keep_last))
    return turns[keep_first:end], [*turns[end:], *turns[:keep_first]]


def select_turns(view: CondenserView, candidates: Iterable[Turn]) -> list[Turn]:
    """Return the first candidates that together bring the view down to its target.

    Empty if the saving would be too small and the model did not ask for it.
    """
    chosen: list[Turn] = []
    target = view.target or 0
    freed = 0
    for turn in candidates:
        if view.size - freed <= target and chosen:
            break
        chosen.append(turn)
        freed += view.freed_by_forgetting(turn)
    return chosen if view.is_requested or freed >= MIN_SAVING_SHARE * target else []


@dataclass(frozen=True)
class RecentEvents:
    """Forgets all turns except the first `keep_first` and the last `keep_last`. It waits until
    another `keep_last` turns have been added, so that the prompt cache stays valid in between."""

    keep_first: int = 1
    keep_last: int = 30

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        keep_last = max(1, self.keep_last)
        if len(view.turns) < self.keep_first + 2 * keep_last:
            return None
        return forget(view, view.turns[self.keep_first : -keep_last])


@dataclass(frozen=True)
class AmortizedForgetting:
    """Lets the number of turns grow to `max_turns`, then forgets the oldest ones after the first
    `keep_first` until half of `max_turns` are left."""

    max_turns: int = 120
    keep_first: int = 2

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        max_turns = max(2, self.max_turns)
        if len(view.turns) <= max_turns:
            return None
        keep_first = min(self.keep_first, max_turns // 2 - 1)
        kept_last = max_turns // 2 - keep_first
        return forget(view, view.turns[keep_first : len(view.turns) - kept_last])


@dataclass(frozen=True)
class ObservationMasking:
    """Masks the older results, oldest first, when the conversation is too long, except those of the
    last `keep_last` turns. It leaves the conversation as it is if that would not be enough."""

    keep_last: int = 12

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        if view.target is None:
            return None
        chosen: list[ObservationBase] = []
        freed = 0
        for result in maskable(view, view.turns[: -max(1, self.keep_last)]):
            if view.size - freed <= view.target:
                break
            freed += view.freed_by_masking(result)
            chosen.append(result)
        return mask(chosen) if view.size - freed <= MAX_MASKED_SHARE * view.target else None


@dataclass(frozen=True)
class ConversationWindow:
    """Forgets the oldest turns of the middle, always whole turns, when the conversation is too
    long.

    keep_first, keep_last: number of turns kept at both ends. Fewer are kept only if forgetting the
        middle is not enough. The last turn, the system prompt and the user's own messages are
        always kept, but the results of the last turn are masked if nothing else can be left out.
    only_asked: act only if the model reports that the context is full.
    write_notes: adds notes of a model; None for no such notes.
    """

    keep_first: int = 2
    keep_last: int = 12
    only_asked: bool = False
    write_notes: NoteWriter | None = None

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        if view.target is None or (self.only_asked and not view.is_requested):
            return None
        middle, ends = middle_and_ends(view, self.keep_first, self.keep_last)
        turns = select_turns(view, [*middle, *ends])
        if not turns:
            return mask(maskable(view, view.turns)) if view.is_requested else None
        return forget(view, turns, self.write_notes(view, turns) if self.write_notes else None)


class Pipeline:
    """A condenser made of stages. The first one that has something to leave out decides; without
    stages, the conversation stays as it is."""

    def __init__(self, *stages: Condenser) -> None:
        self._stages = stages

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        condensations = (stage.condense(view) for stage in self._stages)
        return next(filter(None, condensations), None)
