"""Functions shared by all condensers that forget turns: selection by size, and building the
`Condensation` event."""

from collections.abc import Iterable, Sequence

from resolver.config.templates import render
from resolver.events.lifecycle import Condensation
from resolver.memory.condensers.view import CondenserView, forgotten_with
from resolver.memory.facts import ROOM
from resolver.memory.turns import Turn

LEAST_SHARE = 10
"""Unless the model asked for it, a condensation has to save a tenth of the bound: each one
invalidates the provider's prompt cache."""

LAST_SHARE = 0.7
"""Share of the target size that the last turns may take."""

SUMMARY_SHARE = 6
"""A summary may take a sixth of the target size of the conversation."""

LEAST_SUMMARY = 4_000
"""Characters that a summary may always take."""


def old(view: CondenserView, keep_last: int, target: int) -> tuple[Turn, ...]:
    """Return all turns except the last `keep_last`.

    Fewer are kept, but at least one, if they would take more than `LAST_SHARE` of the `target`.
    """
    room = target * LAST_SHARE
    kept = 0
    for turn in reversed(view.turns[-max(1, keep_last) :]):
        room -= view.freed_by_forgetting(turn)
        if room < 0 and kept:
            break
        kept += 1
    return view.turns[: len(view.turns) - kept]


def middle(view: CondenserView, keep_first: int, keep_last: int, target: int) -> list[Turn]:
    """Return the turns that may be forgotten, oldest first: those between both ends.

    If the model reported that the conversation does not fit, those of both ends follow, except the
    last turn.
    """
    turns = view.turns
    end = max(keep_first, len(old(view, keep_last, target)))
    candidates = list(turns[keep_first:end])
    if view.wanted:
        candidates += [*turns[:keep_first], *turns[end:]]
        candidates = [turn for turn in candidates if turn is not turns[-1]]
    return candidates


def enough(view: CondenserView, candidates: Iterable[Turn], target: int) -> list[Turn]:
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
    return chosen if view.wanted or freed * LEAST_SHARE >= 2 * target else []
    # `target` is half of the bound, so that this compares with a tenth of the bound


def forget(
    view: CondenserView, turns: Sequence[Turn], *, facts: int = 0, notes: str = ""
) -> Condensation | None:
    """Return the Condensation that forgets these turns; None if there are none.

    facts: maximum characters of the facts of the agent's work in the summary; 0 omits them.
    notes: notes that a model wrote about the turns; if empty, the notes so far are kept.
    """
    if not turns:
        return None
    ids: set[int] = set().union(*(forgotten_with(turn) for turn in turns))
    count, below = view.log.beside([turn for turn in view.turns if turn.ids.isdisjoint(ids)])
    known = view.log.facts.told(facts) if facts else {}
    summary = render("agent/summary.md.j2", turns=count, below=below, known=known).strip()
    return Condensation(forgotten=tuple(sorted(ids)), summary=summary, notes=notes or view.notes)


def room_for_facts(target: int) -> int:
    """Return the maximum characters of the summary's facts for a conversation of `target`
    characters."""
    return min(ROOM, max(target // SUMMARY_SHARE, LEAST_SUMMARY))
