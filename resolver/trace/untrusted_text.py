"""Renders text from outside, so that only harmless formatting in it has an effect.

For GitHub's Markdown it is put into code fences, inline code, prose in which all markup, mentions,
references and links are inert, or block quotes in which code, bold text and lists are shown. For
HTML, Markdown is rendered without links, images and tags.
"""

import html
import re
from collections.abc import Iterator, Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

_MAX_FENCE_LENGTH = 200
"""Longest fence that is used. GitHub's parser counts its characters up to 255 only."""

_ZERO_WIDTH = "\u200b"
_MARKUP = re.compile(r"[\\`*_\[\]~|$]")
_LINK_MARKUP = re.compile(
    r"@|(?:\bGH(?=-\d))|#(?=\w)|:(?=//)|\bwww(?=\.)",  # mention, references, bare links
    re.IGNORECASE,
)
_LINE_MARKUP = re.compile(r"^(?:(?=[#+=-])|[0-9]{1,9}(?=[.)]))")


def html_line(text: str) -> str:
    """Return `text` as one line of HTML in which mentions, references and links are inert."""
    text = html.escape(" ".join(text.split()))
    return _LINK_MARKUP.sub(lambda match: match[0] + _ZERO_WIDTH, text)


def utf16_length(text: str) -> int:
    """Return the length as JavaScript and GitHub count it: characters above U+FFFF count twice."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def fenced(text: str, language: str | None = None) -> str:
    """Return `text` as one code block that nothing in the text can close.

    The fence is longer than any run of its character in the text; see
    https://github.github.com/gfm/#fenced-code-blocks. If it would be too long, the text becomes an
    indented code block.
    """
    backticks, tildes = _longest_run("`", text), _longest_run("~", text)
    fence_character, run_length = (
        ("`", backticks) if backticks <= max(tildes, 10) else ("~", tildes)
    )
    if run_length < _MAX_FENCE_LENGTH:
        fence = fence_character * max(3, run_length + 1)
        return f"{fence}{language or ''}\n{text}\n{fence}"
    return "\n".join(f"    {line}" for line in text.split("\n"))


def inline_code(text: str) -> str:
    """Return `text` as one line of inline code; empty for empty text."""
    # GitHub's parser does not recognize a delimiter of more than 80 backticks.
    text = re.sub("`{9,}", "…", " ".join(text.split()))
    if not text:
        return ""
    fence = "`" * (_longest_run("`", text) + 1)
    padding = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{padding}{text}{padding}{fence}"


def plain_prose(text: str) -> str:
    """Return `text` as plain words.

    No markup, tag, mention, reference, link or image in it has an effect.
    """
    text = _MARKUP.sub(r"\\\g<0>", html.escape(text, quote=False))
    # A zero-width space breaks what markdown has no escape for: @mention, #1, GH-1, http:// and
    # www.
    text = _LINK_MARKUP.sub(lambda match: match[0] + _ZERO_WIDTH, text)
    lines = (line.strip() for line in text.split("\n"))
    return "\n".join(_LINE_MARKUP.sub(r"\g<0>\\", line) for line in lines)


def _longest_run(mark: str, text: str) -> int:
    return max((len(run) for run in re.findall(f"{re.escape(mark)}+", text)), default=0)


# `x` next to a dollar sign is a formula on GitHub.
_CODE_SPAN = re.compile(r"(?<![`$])`([^`\n]{1,500})`(?![`$])")
_LANGUAGE = re.compile(r"[A-Za-z0-9+#-]{1,20}(?=\s|$)")
_PLACE = re.compile("\ue000([0-9]+)\ue001")
# Bold text and bullets, as `plain_prose` escapes them.
_BOLD = re.compile(r"\\\*\\\*(?=[^\s\\*])([^\n*\\]{1,300}[^\s\\*])\\\*\\\*")
_BULLET = re.compile("^(?:-\\\\|\\\\-|\\\\\\*) (?=[A-Za-z\ue000])", re.MULTILINE)


def quote_markdown(text: str) -> str:
    """Return `text` in a block quote that keeps its lines; empty for empty text.

    Its code, bold words and lists are shown as such; all other markup in it has no effect.
    """
    quote: list[str] = []
    for part, language in _split_fences(text):
        if language is None:
            lines = _escape_text(part).split("\n")
            # Two trailing spaces keep a line break in a file; in a comment GitHub keeps it anyway.
            quote += [f"> {line}  " if line else ">" for line in lines]
        else:
            code = fenced(part, language).split("\n")
            quote += [">", *(f"> {line}".rstrip() for line in code), ">"]
    return "\n".join(quote) if text else ""


def _escape_text(text: str) -> str:
    # Two private characters stand for the code while the text between it is escaped.
    text = text.replace("\ue000", "\ufffd").replace("\ue001", "\ufffd")
    spans = [match[1] for match in _CODE_SPAN.finditer(text) if match[1].strip()]
    numbers = iter(range(len(spans)))
    escaped = plain_prose(_CODE_SPAN.sub(lambda match: _place(match, numbers), text))
    escaped = _BULLET.sub("- ", _BOLD.sub(r"**\1**", escaped))
    return _PLACE.sub(lambda match: inline_code(spans[int(match[1])]), escaped)


def _place(match: re.Match[str], numbers: Iterator[int]) -> str:
    return f"\ue000{next(numbers)}\ue001" if match[1].strip() else match[0]


def _split_fences(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the parts of a text: prose with None, and fenced code with its language."""
    lines, end = text.split("\n"), 0
    for token in _block_parser().parse(text):
        if token.type == "fence" and token.level == 0 and token.map:
            if end < token.map[0]:
                yield "\n".join(lines[end : token.map[0]]), None
            yield token.content.removesuffix("\n"), (_LANGUAGE.match(token.info) or [""])[0]
            end = token.map[1]
    if end < len(lines):
        yield "\n".join(lines[end:]), None


@cache
def _block_parser() -> MarkdownIt:
    return MarkdownIt("commonmark").disable(["inline", "text_join"])


_RULES = [
    "emphasis", "backticks", "escape", "newline", "list", "fence", "code", "heading", "blockquote",
    "hr", "table", "strikethrough",
]  # fmt: skip

_MAY_BE_MARKUP = re.compile(r"[*_`\\#>|~&=]|^\s|^[-+]|^\d+[.)]|\n")


def _fence(_: RendererHTML, tokens: Sequence[Token], index: int, *__: object) -> str:
    return f"<pre><code>{escape(tokens[index].content)}</code></pre>\n"


@cache
def _page_parser() -> MarkdownIt:
    # The preset "zero" renders paragraphs only; a rule that is not enabled leaves plain text.
    parser = MarkdownIt("zero", {"html": False, "breaks": True}).enable(_RULES)
    # The renderer's own rule writes the language, which is untrusted, into a class.
    parser.add_render_rule("fence", _fence)
    return parser


def render_prose(text: str) -> Markup:
    """Return `text` as HTML with only the tags of the rules above.

    None of them has a URL or an event handler.
    """
    if not text:
        return Markup()
    if not _MAY_BE_MARKUP.search(text):
        return Markup("<p>{}</p>").format(text)
    rendered: str = _page_parser().render(text)
    return Markup(rendered)  # noqa: S704 - HTML is off, so tags in the text are escaped
