"""Prepares a model's opinion on a change for the templates of pull requests.

Everything in it was written by a model, so all of it is escaped here.
"""

from typing import Any

from resolver.github.comments.report import Report
from resolver.github.text.markdown import code_span, shorten_text, single_line, visible
from resolver.trace.plain import money, one_line


def critique_values(report: Report) -> dict[str, Any] | None:
    """Return the template values of the opinion; None if there is none."""
    critique = report.critique
    if critique is None:
        return None
    return {
        "addresses_issue": critique.addresses_issue,
        "reason": single_line(critique.reason, 600),
        "unrelated": [
            {
                "path": code_span(shorten_text(one_line(visible(each.path)), 200)),
                "reason": single_line(each.reason, 200),
            }
            for each in critique.unrelated
        ],
        "model": code_span(shorten_text(one_line(visible(critique.model)), 100)),
        "cost": "" if critique.cost is None else money(critique.cost),
    }
