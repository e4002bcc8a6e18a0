"""Markdown that somebody else wrote, as harmless HTML for the page: words, lists, code. No links,
no images, no HTML of theirs; everything else is escaped.
"""

from functools import cache

from markdown_it import MarkdownIt
from markupsafe import Markup

_RULES = [
    "emphasis", "backticks", "escape", "newline", "list", "fence", "code", "heading", "blockquote",
    "hr",
]  # fmt: skip


@cache
def _parser() -> MarkdownIt:
    # The preset "zero" knows paragraphs only; what is not switched on is plain text.
    return MarkdownIt("zero", {"html": False, "breaks": True}).enable(_RULES)


def markdown_to_html(text: str) -> Markup:
    """`text` as HTML. Only tags of the rules above are made, none with a URL or an event in it."""
    rendered: str = _parser().render(text)
    return Markup(rendered)  # noqa: S704 - html is off, so all of theirs is escaped
