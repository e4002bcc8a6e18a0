"""Condensers that work by rules, without a model, and the functions that condensers share.

They forget turns, the oldest or the least important first, or replace older results by their
outcome and keep all actions and messages. What was forgotten is summarized from the log.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ActionBase, ObservationBase
from resolver.events.lifecycle import Condensation
from resolver.events.observations import BrowserOutput
from resolver.memory.condensers.summaries import NoteWriter
from resolver.memory.condensers.view import Condenser, CondenserView, SizeBound, forgotten_ids
from resolver.memory.facts import DEFAULT_MAX_LENGTH, WorkRecord
from resolver.memory.turns import Turn

MIN_SAVING_DIVISOR = 10
"""Unless the model asked for it, a condensation has to save a tenth of the bound: each one
invalidates the provider's prompt cache."""

LAST_TURNS_SHARE = 0.7
"""Share of the target size that the last turns may take."""

SUMMARY_DIVISOR = 6
"""A summary may take a sixth of the target size of the conversation."""

MIN_SUMMARY_LENGTH = 4_000
"""Characters that a summary may always take."""


def turns_before_last(view: CondenserView, keep_last: int, target: int) -> tuple[Turn, ...]:
    """Return all turns except the last `keep_last`.

    Fewer are kept, but at least one, if they would take more than `LAST_TURNS_SHARE` of the
    `target`.
    """
    remaining = target * LAST_TURNS_SHARE
    kept = 0
    for turn in reversed(view.turns[-max(1, keep_last) :]):
        remaining -= view.freed_by_forgetting(turn)
        if remaining < 0 and kept:
            break
        kept += 1
    return view.turns[: len(view.turns) - kept]


def middle_turns(view: CondenserView, keep_first: int, keep_last: int, target: int) -> list[Turn]:
    """Return the turns that may be forgotten, oldest first: those between both ends.

    If the model reported that the conversation does not fit, those of both ends follow, except the
    last turn.
    """
    turns = view.turns
    end = max(keep_first, len(turns_before_last(view, keep_last, target)))
    candidates = list(turns[keep_first:end])
    if view.is_requested:
        candidates += [*turns[:keep_first], *turns[end:]]
        candidates = [turn for turn in candidates if turn is not turns[-1]]
    return candidates


def select_turns(view: CondenserView, candidates: Iterable[Turn], target: int) -> list[Turn]:
    """Return the first candidates that together bring the view down to `target` characters.

    Empty if the saving would be too small and the model did not ask for it.
    """
    chosen: list[Turn] = []
    freed = 0
    for turn in candidates:
        if view.size - freed <= target and chosen:
            break
        chosen.append(turn)
        freed += view.freed_by_forgetting(turn)
    return chosen if view.is_requested or freed * MIN_SAVING_DIVISOR >= 2 * target else []
    # `target` is half of the bound, so that this compares with a tenth of the bound


def forget(
    view: CondenserView, turns: Sequence[Turn], *, facts_limit: int = 0, notes: str = ""
) -> Condensation | None:
    """Return the Condensation that forgets these turns; None if there are none.

    facts_limit: maximum characters of the facts of the agent's work in the summary; 0 omits them.
    notes: notes that a model wrote about the turns; if empty, the notes so far are kept.
    """
    if not turns:
        return None
    ids: set[int] = set().union(*(forgotten_ids(turn) for turn in turns))
    turn_count, later_turns = view.log.count_forgotten(
        [turn for turn in view.turns if turn.ids.isdisjoint(ids)]
    )
    facts = view.log.facts.summarize(facts_limit) if facts_limit else None
    record = WorkRecord(turn_count, later_turns, facts)
    summary = render("agent/summary.md.j2", record).strip()
    return Condensation(forgotten=tuple(sorted(ids)), summary=summary, notes=notes or view.notes)


def max_facts_length(target: int) -> int:
    """Return the maximum characters of the summary's facts for a conversation of `target`
    characters."""
    return min(DEFAULT_MAX_LENGTH, max(target // SUMMARY_DIVISOR, MIN_SUMMARY_LENGTH))


class NoOp:
    """Never condenses. For short runs, and to measure what a full conversation costs."""

    def condense(self, view: CondenserView) -> Condensation | None:  # noqa: ARG002 - the protocol
        """Return None."""
        return None


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
    `keep_first` until half of `max_turns` are left.

    Because half of them go at once, condensations stay rare, and the amortized cost per turn is
    constant, however long the run is.
    """

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
    """Masks the results of all turns except the last `keep_last`.

    It waits until at least `at_once` results can be masked: in between, the provider's prompt cache
    stays valid.
    """

    keep_last: int = 20
    at_once: int = 20

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        return mask(maskable(view, view.turns[: -max(1, self.keep_last)]), self.at_once)


@dataclass(frozen=True)
class BrowserOutputs:
    """Masks all browser pages except the last `keep_last`, at least `at_once` of them at a time."""

    keep_last: int = 2
    at_once: int = 4

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        pages = maskable(view, view.turns, lambda x: isinstance(x, BrowserOutput))
        return mask(pages[: max(0, len(pages) - self.keep_last)], self.at_once)


def maskable(
    view: CondenserView,
    turns: Iterable[Turn],
    is_selected: Callable[[ObservationBase], bool] = lambda _: True,
) -> list[ObservationBase]:
    """Return the turns' results that are shown in full and are long enough to be masked, in order.

    is_selected: selects the results to consider.
    """
    results = (result for turn in turns for result in turn.results.values() if is_selected(result))
    return [result for result in results if view.may_mask(result)]


def mask(observations: list[ObservationBase], min_count: int = 1) -> Condensation | None:
    """Return the Condensation that masks the observations.

    Returns None if there are fewer than `min_count`.
    """
    if len(observations) < max(1, min_count):
        return None
    ids = tuple(sorted(observation.id for observation in observations))
    return Condensation(forgotten=(), masked=ids)


@dataclass(frozen=True)
class ConversationWindow:
    """Forgets the oldest turns of the middle, always whole turns, until half of the bound is left.

    keep_first, keep_last: number of turns kept at both ends. Fewer are kept only if the model
        reports that the context is full. The last turn, the system prompt and the user's own
        messages are always kept, but the results of the last turn are masked if nothing else can
        be left out.
    only_asked: act only if the model reports that the context is full, and ignore the bound.
    writer: adds notes of a model to the summary; None for no such notes.
    """

    bound: SizeBound
    keep_first: int = 2
    keep_last: int = 12
    only_asked: bool = False
    writer: NoteWriter | None = None

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        if not view.is_requested and (self.only_asked or not self.bound.is_exceeded(view)):
            return None
        target = self.bound.target(view)
        turns = select_turns(
            view, middle_turns(view, self.keep_first, self.keep_last, target), target
        )
        if not turns:
            return mask(maskable(view, view.turns)) if view.is_requested else None
        notes = self.writer.write(view, turns) if self.writer else ""
        return forget(view, turns, facts_limit=max_facts_length(target), notes=notes)


class Pipeline:
    """A condenser made of stages, each of which sees what the stages before it leave."""

    def __init__(self, *stages: Condenser) -> None:
        self._stages = stages

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        combined: Condensation | None = None
        for stage in self._stages:
            condensation = stage.condense(view)
            if condensation is not None:
                view = view.after(condensation)
                combined = _combine(combined, condensation) if combined else condensation
        return combined


def _combine(first: Condensation, second: Condensation) -> Condensation:
    forgotten = set(first.forgotten) | set(second.forgotten)
    newest = second if second.forgotten else first
    return Condensation(
        forgotten=tuple(sorted(forgotten)),
        masked=tuple(sorted({*first.masked, *second.masked} - forgotten)),
        summary=newest.summary,
        notes=newest.notes,
    )


ORDINARY, FAILED, CHANGED = range(3)
"""Ranks of a turn: it only read or looked; something failed; it changed, planned or decided
something."""


@dataclass(frozen=True)
class Importance:
    """Keeps the turns that matter most to the work.

    When the conversation exceeds the bound, output outside of the last `keep_last` turns is masked,
    except in turns of rank `CHANGED`. If that does not bring it down to half of the bound, turns
    between the first `keep_first` and the last `keep_last` are forgotten: the least important
    first, and of equally important ones the oldest first. If the model reports that the context is
    full, turns at both ends may be forgotten too, except the last one.

    The summary lists, from the log alone and as of now, the files changed, the last commands,
    the plan, questions with their answers, and the agent's own notes. The user's messages
    are never forgotten.

    writer: writes additional notes with a model; None for no such notes.
    """

    bound: SizeBound
    writer: NoteWriter | None = None
    keep_first: int = 2
    keep_last: int = 12

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        if not self.bound.is_exceeded(view):
            return None
        target = self.bound.target(view)
        masked = self._mask_ordinary(view, target)
        masked_view = view.after(masked) if masked else view
        if masked_view.size <= target and masked:
            return masked
        candidates = by_importance(
            middle_turns(masked_view, self.keep_first, self.keep_last, target)
        )
        turns = select_turns(masked_view, candidates, target)
        if not turns:
            return masked
        notes = self.writer.write(view, turns) if self.writer else ""
        condensation = forget(masked_view, turns, facts_limit=max_facts_length(target), notes=notes)
        return _combine(masked, condensation) if masked and condensation else condensation

    def _mask_ordinary(self, view: CondenserView, target: int) -> Condensation | None:
        """Mask as many results as needed, oldest first, of turns ranked below `CHANGED`.

        None if that saves too little.
        """
        turns = [
            turn
            for turn in turns_before_last(view, self.keep_last, target)
            if importance(turn) < CHANGED
        ]
        chosen: list[ObservationBase] = []
        freed = 0
        for result in maskable(view, turns):
            if view.size - freed <= target:
                break
            freed += view.freed_by_masking(result)
            chosen.append(result)
        is_worth_it = view.is_requested or freed * MIN_SAVING_DIVISOR >= 2 * target
        return mask(chosen) if is_worth_it else None


def by_importance(turns: Sequence[Turn]) -> list[Turn]:
    """Return the turns, the least important first; equally important ones keep their order."""
    return sorted(turns, key=importance)


def importance(turn: Turn) -> int:
    """Return the rank of the turn's most important action."""
    actions = ((action, turn.results.get(action.id)) for action in turn.actions)
    return max((_rank_action(action, result) for action, result in actions), default=ORDINARY)


def _rank_action(action: ActionBase, result: ObservationBase | None) -> int:
    match action, result:
        case _, o.FileEditResult() | o.FileWriteResult() | o.DelegateResult() | o.RecallResult():
            return CHANGED
        case a.PlanUpdate() | a.Think() | a.Finish() | a.Message(wait_for_response=True), _:
            return CHANGED
        case _, o.SandboxObservation(changed=o.ChangedPaths(count=count)) if count:
            return CHANGED
        case a.CmdRun(is_input=False), o.CmdOutput(exit_code=code) if code:
            return FAILED
        case _, o.ErrorObservation() | o.IPythonOutput(error=True):
            return FAILED
        case _:
            return ORDINARY
