"""Renders untrusted Markdown as HTML: paragraphs, headings, lists, tables, quotes and code.

Links, images and HTML tags are not rendered; they stay text.
"""

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from resolver.trace.highlight import CodeHighlighter

_RULES = [
    "emphasis", "backticks", "escape", "newline", "list", "fence", "code", "heading", "blockquote",
    "hr", "table", "strikethrough",
]  # fmt: skip

_MAY_BE_MARKUP = re.compile(r"[*_`\\#>|~&=]|^\s|^[-+]|^\d+[.)]|\n")


class MarkdownRenderer:
    """Renders the texts of one page."""

    def __init__(self, code: CodeHighlighter) -> None:
        def fence(_: RendererHTML, tokens: Sequence[Token], index: int, *__: object) -> str:
            token = tokens[index]
            language = (token.info.split() or [""])[0]
            return f"<pre><code>{code.highlight(token.content, language)}</code></pre>\n"

        # The preset "zero" renders paragraphs only; a rule that is not enabled leaves plain text.
        self._parser = MarkdownIt("zero", {"html": False, "breaks": True}).enable(_RULES)
        # The renderer's own rule writes the language, which is untrusted, into a class.
        self._parser.add_render_rule("fence", fence)

    def render(self, text: str) -> Markup:
        """Return `text` as HTML with only the tags of the rules above.

        None of them has a URL or an event handler.
        """
        if not text:
            return Markup()
        if not _MAY_BE_MARKUP.search(text):
            return Markup("<p>{}</p>").format(text)
        rendered: str = self._parser.render(text)
        return Markup(rendered)  # noqa: S704 - HTML is off, so tags in the text are escaped
