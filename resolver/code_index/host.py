"""Handles the actions of an agent that ask the index, on the host."""

from collections.abc import Callable
from typing import Any

from resolver.code_index.index import CodeIndex
from resolver.config.templates import render
from resolver.errors import ResolverError
from resolver.events import actions as a
from resolver.events.base import ActionBase, ObservationBase
from resolver.events.observations import CodeResult, ErrorObservation
from resolver.models.truncate import truncate_middle

MOST_TEXT = 24_000
"""Maximum number of characters of one answer."""

_BOTH = ("upstream", "downstream")

Answering = dict[type[ActionBase], Callable[[Any], ObservationBase]]


def index_action_handlers(index: CodeIndex) -> Answering:
    """Return the handlers of the actions that ask the index. They never raise ResolverError: a
    failure is an observation."""

    def answered(ask: Callable[[Any], str]) -> Callable[[Any], ObservationBase]:
        def answer(action: Any) -> ObservationBase:
            try:
                text = ask(action)
                size = index.build()
            except ResolverError as error:
                told = (error.what, error.next_step)
                words = ". ".join(part[:1].upper() + part[1:] for part in told if part)
                return ErrorObservation(content=words, code="index")
            note = render("agent/code_note.md.j2", commit=index.commit, size=size).strip()
            content = f"{truncate_middle(text, MOST_TEXT)}\n\n{note}"
            return CodeResult(content=content, commit=index.commit, left_out=size.left_out)

        return answer

    def search(action: a.CodeSearch) -> str:
        found = index.search(action.terms, action.path)
        return render("agent/code_found.md.j2", found=found, path=action.path).strip()

    def explore(action: a.CodeExplore) -> str:
        directions = _BOTH if action.direction == "both" else (action.direction,)
        walks = index.explore(action.start, directions, action.depth, action.edges)
        return render("agent/code_walks.md.j2", walks=walks).strip()

    return {a.CodeSearch: answered(search), a.CodeExplore: answered(explore)}
