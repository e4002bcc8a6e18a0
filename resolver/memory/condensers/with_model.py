"""Condensers that ask a model which turns are still needed, or for a summary of the others."""

import re
from collections.abc import Sequence

from resolver.config.templates import render
from resolver.events.lifecycle import Condensation
from resolver.memory.condensers.rules import (
    by_importance,
    forget,
    max_facts_length,
    middle_turns,
    select_turns,
)
from resolver.memory.condensers.summaries import (
    FreeTextNoteWriter,
    NoteWriter,
    StructuredNoteWriter,
    SummaryClient,
    quoted_texts,
    text_lines,
)
from resolver.memory.condensers.view import CondenserView, SizeBound
from resolver.memory.turns import Turn

_STEP_NUMBER = re.compile(r"\d+")


class LLMAttention:
    """Forgets the turns that the condenser's model does not name first, then those that it ranks as
    least important. If the model fails, turns are ranked by what they did (`by_importance`)."""

    def __init__(
        self, bound: SizeBound, client: SummaryClient, keep_first: int = 2, keep_last: int = 12
    ) -> None:
        self._bound = bound
        self._client = client
        self._keep_first = keep_first
        self._keep_last = keep_last

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        if not self._bound.is_exceeded(view):
            return None
        target = self._bound.target(view)
        candidates = middle_turns(view, self._keep_first, self._keep_last, target)
        if not select_turns(view, candidates, target):
            return None
        turns = select_turns(view, self._least_needed_first(view, candidates), target)
        return forget(view, turns, facts_limit=max_facts_length(target))

    def _least_needed_first(self, view: CondenserView, turns: Sequence[Turn]) -> list[Turn]:
        lines = "\n".join(f"{n}. {line}" for n, line in enumerate(text_lines(turns), start=1))
        question = render(
            "memory/attention.md.j2",
            **quoted_texts(view, lines, notes=""),
            count=len(turns),
            keep=max(1, len(turns) // 2),
        )
        completion = self._client.ask(view, question)
        if completion is None:
            return by_importance(turns)
        numbers = [int(text) - 1 for text in _STEP_NUMBER.findall(completion.text[:20_000])]
        needed = list(dict.fromkeys(n for n in numbers if 0 <= n < len(turns)))
        if not needed:
            self._client.refuse("its reply names none of the steps")
            return by_importance(turns)
        others = [turn for number, turn in enumerate(turns) if number not in set(needed)]
        return [*others, *(turns[number] for number in reversed(needed))]


class LLMSummarizing:
    """Works like `ConversationWindow` and adds notes of the condenser's model to the summary.

    If the model fails, the summary has the facts from the log and the notes written so far.
    """

    def __init__(
        self, bound: SizeBound, client: SummaryClient, keep_first: int = 2, keep_last: int = 12
    ) -> None:
        self._bound = bound
        self._writer: NoteWriter = FreeTextNoteWriter(client)
        self._keep_first = keep_first
        self._keep_last = keep_last

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        if not self._bound.is_exceeded(view):
            return None
        target = self._bound.target(view)
        turns = select_turns(
            view, middle_turns(view, self._keep_first, self._keep_last, target), target
        )
        if not turns:
            return None
        notes = self._writer.write(view, turns)
        return forget(view, turns, facts_limit=max_facts_length(target), notes=notes)


class StructuredSummary(LLMSummarizing):
    """The same with notes in fields: findings, decisions and next steps have a place each."""

    def __init__(
        self, bound: SizeBound, client: SummaryClient, keep_first: int = 2, keep_last: int = 12
    ) -> None:
        super().__init__(bound, client, keep_first, keep_last)
        self._writer = StructuredNoteWriter(client)
