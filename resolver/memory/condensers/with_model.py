"""A condenser that asks a model which turns are still needed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

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
    SummaryClient,
    quoted_texts,
    text_lines,
)
from resolver.memory.condensers.view import CondenserView, SizeBound
from resolver.memory.turns import Turn

_STEP_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class LLMAttention:
    """Forgets the turns that the condenser's model does not name first, then those that it ranks as
    least important. If the model fails, turns are ranked by what they did (`by_importance`)."""

    bound: SizeBound
    client: SummaryClient
    keep_first: int = 2
    keep_last: int = 12

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        if not self.bound.is_exceeded(view):
            return None
        target = self.bound.target(view)
        candidates = middle_turns(view, self.keep_first, self.keep_last, target)
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
        completion = self.client.ask(view, question)
        if completion is None:
            return by_importance(turns)
        numbers = [int(text) - 1 for text in _STEP_NUMBER.findall(completion.text[:20_000])]
        needed = list(dict.fromkeys(n for n in numbers if 0 <= n < len(turns)))
        if not needed:
            self.client.refuse("its reply names none of the steps")
            return by_importance(turns)
        others = [turn for number, turn in enumerate(turns) if number not in set(needed)]
        return [*others, *(turns[number] for number in reversed(needed))]
