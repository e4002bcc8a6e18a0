"""Prepares a model's opinion on a change for the templates of pull requests.

Everything in it was written by a model, so all of it is escaped here.
"""

from dataclasses import dataclass

from resolver.github.text.markdown import code_span, shorten_text, single_line, visible
from resolver.models.critique import Critique, CritiqueAnswer
from resolver.trace.plain import money, one_line


@dataclass(frozen=True)
class UnrelatedFileRow:
    """A file that looks unrelated to the issue, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class CritiqueSummary:
    """A model's opinion on the change. cost: empty if the price is unknown."""

    addresses_issue: CritiqueAnswer
    reason: str
    unrelated: tuple[UnrelatedFileRow, ...]
    model: str
    cost: str


def summarize_critique(critique: Critique) -> CritiqueSummary:
    """Return the opinion as the templates show it."""
    return CritiqueSummary(
        addresses_issue=critique.addresses_issue,
        reason=single_line(critique.reason, 600),
        unrelated=tuple(
            UnrelatedFileRow(
                path=code_span(shorten_text(one_line(visible(each.path)), 200)),
                reason=single_line(each.reason, 200),
            )
            for each in critique.unrelated
        ),
        model=code_span(shorten_text(one_line(visible(critique.model)), 100)),
        cost="" if critique.cost is None else money(critique.cost),
    )
