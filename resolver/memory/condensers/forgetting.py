"""What all condensers that forget turns have in common: choosing by size, and the Condensation."""

from collections.abc import Iterable, Sequence

from resolver.config.templates import render
from resolver.events.lifecycle import Condensation
from resolver.memory.condensers.view import CondenserView, forgotten_with
from resolver.memory.facts import ROOM
from resolver.memory.turns import Turn

LEAST_SHARE = 10
"""Unasked, a condensation is worth it only when it wins a tenth of the bound: each one costs a
prompt cache."""

LAST_SHARE = 0.7
"""What the last turns may have of what is to be left."""

SUMMARY_SHARE = 6
"""A summary may have a sixth of what may be left of the conversation."""

LEAST_SUMMARY = 4_000
"""Characters that it may have in any case."""


def old(view: CondenserView, keep_last: int, target: int) -> tuple[Turn, ...]:
    """The turns but the last `keep_last`; fewer are kept, and one at least, where these alone would
    have most of the `target`."""
    room = target * LAST_SHARE
    kept = 0
    for turn in reversed(view.turns[-max(1, keep_last) :]):
        room -= view.freed_by_forgetting(turn)
        if room < 0 and kept:
            break
        kept += 1
    return view.turns[: len(view.turns) - kept]


def middle(view: CondenserView, keep_first: int, keep_last: int, target: int) -> list[Turn]:
    """The turns that may go, oldest first: those of the middle. When the model wants room those of
    both ends follow; the last turn stays."""
    turns = view.turns
    end = max(keep_first, len(old(view, keep_last, target)))
    candidates = list(turns[keep_first:end])
    if view.wanted:
        candidates += [*turns[:keep_first], *turns[end:]]
        candidates = [turn for turn in candidates if turn is not turns[-1]]
    return candidates


def enough(view: CondenserView, candidates: Iterable[Turn], target: int) -> list[Turn]:
    """The first of the candidates that bring the view down to `target` characters; none when that
    wins too little, unasked."""
    chosen: list[Turn] = []
    freed = 0
    for turn in candidates:
        if view.size - freed <= target and chosen:
            break
        chosen.append(turn)
        freed += view.freed_by_forgetting(turn)
    return chosen if view.wanted or freed * LEAST_SHARE >= 2 * target else []


def forget(
    view: CondenserView, turns: Sequence[Turn], *, facts: int = 0, notes: str = ""
) -> Condensation | None:
    """The Condensation that leaves these turns out; None when there are none.

    facts: characters that what is known of the agent's work may have in the summary; 0 leaves it
    out. notes: what a model wrote; else what an earlier one did stays.
    """
    if not turns:
        return None
    ids: set[int] = set().union(*(forgotten_with(turn) for turn in turns))
    count, below = view.log.beside([turn for turn in view.turns if turn.ids.isdisjoint(ids)])
    known = view.log.facts.told(facts) if facts else {}
    summary = render("agent/summary.md.j2", turns=count, below=below, known=known).strip()
    return Condensation(forgotten=tuple(sorted(ids)), summary=summary, notes=notes or view.notes)


def room_for_facts(target: int) -> int:
    """Characters of a summary when `target` are to be left in all."""
    return min(ROOM, max(target // SUMMARY_SHARE, LEAST_SUMMARY))
