"""Renders untrusted markdown as harmless HTML: paragraphs, headings, lists, quotes, code.

Links, images and HTML tags are not rendered; everything else is escaped.
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
    # The preset "zero" renders paragraphs only; every rule that is not enabled leaves plain text.
    return MarkdownIt("zero", {"html": False, "breaks": True}).enable(_RULES)


def markdown_to_html(text: str) -> Markup:
    """Return `text` as HTML.

    It contains only tags of the rules above, none of which has a URL or an event handler.
    """
    rendered: str = _parser().render(text)
    return Markup(rendered)  # noqa: S704 - HTML is off, so tags in the text are escaped
