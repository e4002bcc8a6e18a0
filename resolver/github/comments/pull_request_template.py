"""Checks the text that the agent wrote for a repository's pull request template.

The agent gets the template as it is, and writes the text of the pull request. The text is used if
it has the template's headings in their order. What people don't see, such as the instructions in
HTML comments, is removed from it, everything else is made harmless, and a tick needs a reason.
"""

import re
from itertools import pairwise

from resolver.github.text.comment_markdown import safe_markdown
from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.markdown import block_parser

MAX_TEXT_CHARACTERS = 20_000
"""Maximum number of characters of the agent's text that are used."""

_BOX = re.compile(r"^([ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+)\[([ xX])\][ \t]+(.*)$", re.MULTILINE)


def fill_template(
    template: str, text: str, *, own_issue: int | None, limit: int, forge_host: str | None = None
) -> str | None:
    """Return the agent's text for a template, or None if it does not follow the template.

    own_issue: number of the only issue that may be referenced; None for none.
    limit: maximum length in UTF-16 units.
    forge_host: the only host whose pages are linked.
    """
    form = strip_hidden(template).text.strip()
    answer = strip_hidden(text[:MAX_TEXT_CHARACTERS]).text.strip()
    remaining_headings = iter(_headings(answer))
    if answer == form or not all(heading in remaining_headings for heading in _headings(form)):
        return None
    ticked = _untick_without_reason(answer, form)
    markdown = safe_markdown(
        ticked, own_issue=own_issue, limit=limit, forge_host=forge_host, is_document=True
    )
    return markdown or None


def _headings(text: str) -> list[str]:
    tokens = block_parser().parse(text)
    return [
        inline.content.strip() for token, inline in pairwise(tokens) if token.type == "heading_open"
    ]


def _untick_without_reason(answer: str, form: str) -> str:
    """Return the answer with ticks only in the form's boxes, and only where a reason follows."""
    labels = [match[3].strip() for match in _BOX.finditer(form)]

    def untick(match: re.Match[str]) -> str:
        label = max((label for label in labels if match[3].startswith(label)), key=len, default="")
        has_reason = label and re.search(r"\w", match[3][len(label) :])
        return match[0] if has_reason else f"{match[1]}[ ] {match[3]}"

    return _BOX.sub(untick, answer)
