"""Finds a mention that a person really wrote, and returns the text after it.

A mention counts in prose, not in code, quotes, links or HTML. The text is parsed as GitHub parses
it. Every possible mention is replaced by a number before parsing, so that a mention found in the
syntax tree can be located in the source.
"""

import re

from resolver.github.events.commands import Instruction, asks_for_nothing, read_instruction
from resolver.github.events.permission import is_own_text
from resolver.github.text.hidden_text import end_of_readable, strip_hidden
from resolver.github.text.markdown import markdown_parser
from resolver.github.text.page import PageReader, sanitize

_NUMBERED_PLACEHOLDER = re.compile("\ue000([0-9]+)\ue001")
_FORGED_PLACEHOLDER = re.compile(
    "[\ue000\ue001\ufffc]|&#(?:x0*(?:e00[01]|fffc)|0*(?:5734[45]|65532));", re.I
)
"""The placeholders' characters in a comment, also as references, which Markdown resolves.

The references are those of https://spec.commonmark.org/0.31.2/#numeric-character-references.
"""
_NOT_PROSE_PLACEHOLDER = "\ufffc"
"""Placeholder for content that is not prose. No mention starts or ends next to it."""

_NOT_PROSE_ELEMENTS = {
    "blockquote", "code", "del", "details", "kbd", "pre", "q", "s", "samp", "strike", "summary",
    "tt", "var",
}  # fmt: skip
"""Elements whose text is not the writer's own, or is not visible at once."""

_BLOCK_ELEMENTS = {"p", "li", "h1", "h2", "h3", "h4", "h5", "h6", "td", "th", "blockquote", "pre"}
_FOOTNOTE = re.compile(r"\[\^[^\]]+\]:")
_URL_WINDOW = 500
"""Number of characters before a mention in which the beginning of an address is looked for."""

# A login consists of ASCII letters, digits and hyphens. As on GitHub, any other character ends it,
# and most characters can stand before the "@". A slash is excluded because it belongs to a path.
# Source: https://github.com/gjtorikian/html-pipeline (node_filter/mention_filter.rb)
_BEFORE_LOGIN = re.compile(r"(?:^|[^A-Za-z0-9/@`\ue001\ufffc])$")
_BEFORE_WORD = re.compile(r"(?:^|[\s(\[{\"'*_~,;:!?\u2013\u2014\u201c\u2018\u00ab>])$")
_AFTER_MENTION = re.compile(r"(?![A-Za-z0-9_/@\-'’\ufffc]|\.[A-Za-z0-9_])")
_BOT_SUFFIX = re.compile(r"\[bot\](?![\[(])", re.I)
"""A suffix that belongs to the login of a GitHub App's account."""

_LEADING_PUNCTUATION = ",:;.!?)]*_ \t\n，、。．：；！？）］】」』》”’…–—"


def find_request(
    body: str | None, mention: str, *, pull_request: bool = False, reaches_run: bool = False
) -> Instruction | None:
    """Return what a person's text asks Resolver for, or None.

    The arguments are as in `find_instruction` and `read_instruction`.
    """
    text = None if is_own_text(body) else find_instruction(body or "", mention)
    if text is None or asks_for_nothing(text):
        return None
    return read_instruction(text, pull_request=pull_request, reaches_run=reaches_run)


def find_instruction(body: str, mention: str) -> str | None:
    """Return the text after the first real mention in a comment, or None when there is none.

    When nothing but a punctuation mark follows the mention, return the text before it, with a
    question mark if that is the mark. Hidden text is removed.
    """
    body = body.replace("\r\n", "\n").replace("\r", "\n")
    numbered_body, ends = _number_mentions(body, mention)
    if not ends:
        return None
    index = _find_first_in_prose(numbered_body[: end_of_readable(numbered_body)])
    if index is None:
        return None
    end = ends[index]
    bot_suffix = _BOT_SUFFIX.match(body, end)
    following = strip_hidden(body[bot_suffix.end() if bot_suffix else end :]).text.strip()
    instruction = following.lstrip(_LEADING_PUNCTUATION).strip()
    if instruction:
        return instruction
    text_before = strip_hidden(body[: end - len(mention)]).text.strip()
    if not following.startswith(("?", "？")):
        return text_before
    return text_before.rstrip(" \t\n,;:-，、；：") + "?"


def _number_mentions(body: str, mention: str) -> tuple[str, list[int]]:
    """Replace each possible mention in the body by its number.

    Returns the new body and, for each number, the offset in the original body where the mention
    ends. The first character of a mention stays, because Markdown parsing depends on it.
    """
    ends: list[int] = []

    def insert_number(match: re.Match[str]) -> str:
        ends.append(match.end())
        return f"{match[0][0]}\ue000{len(ends) - 1}\ue001"

    clean = _FORGED_PLACEHOLDER.sub(lambda match: "\ufffd" * len(match[0]), body)
    return re.sub(re.escape(mention), insert_number, clean, flags=re.I), ends


def _find_first_in_prose(numbered_body: str) -> int | None:
    """Return the number of the first mention in prose, or None."""
    parser = markdown_parser()
    tokens = parser.parse(numbered_body)
    for token in tokens:
        if token.type == "html_block":
            token.content = _NUMBERED_PLACEHOLDER.sub(_NOT_PROSE_PLACEHOLDER, token.content)
    prose = _Prose()
    prose.feed(sanitize(parser.renderer.render(tokens, parser.options, {})))
    prose.close()
    numbers = (_find_first_mention(block) for block in prose.blocks)
    return next((number for number in numbers if number is not None), None)


class _Prose(PageReader):
    """Collects the text of each block, with placeholders for what is not the writer's own prose."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = [""]

    def hides(self, tag: str, attributes: dict[str, str]) -> bool:
        is_link = tag == "a" and "href" in attributes
        return is_link or tag in _NOT_PROSE_ELEMENTS or super().hides(tag, attributes)

    def start(self, tag: str, attributes: dict[str, str], *, is_hidden: bool) -> None:  # noqa: ARG002
        if tag in _BLOCK_ELEMENTS:
            self.blocks.append("")
        elif tag not in {"em", "strong"} and not is_hidden:
            self.blocks[-1] += " "  # a tag ends a word, as a line break does

    def end(self, tag: str, *, is_hidden: bool) -> None:
        if tag in _BLOCK_ELEMENTS:
            self.blocks.append("")
        elif tag == "code":
            self.blocks[-1] += " "  # GitHub also accepts a mention next to code
        elif is_hidden:
            self.blocks[-1] += _NOT_PROSE_PLACEHOLDER
        elif tag not in {"em", "strong"}:
            self.blocks[-1] += " "

    def add(self, text: str, *, is_hidden: bool) -> None:
        self.blocks[-1] += _NOT_PROSE_PLACEHOLDER if is_hidden else text


def _find_first_mention(prose: str) -> int | None:
    """Return the number of the first mention in a block's prose, or None."""
    if _FOOTNOTE.match(prose):
        return None
    for match in _NUMBERED_PLACEHOLDER.finditer(prose):
        start = match.start() - 1  # the mention's own first character
        word_before = re.split(r"\s", prose[max(0, start - _URL_WINDOW) : start])[-1].lower()
        if "://" in word_before or word_before.startswith("www."):
            continue
        pattern = _BEFORE_LOGIN if prose[start] == "@" else _BEFORE_WORD
        is_separate = pattern.search(prose, max(0, start - 1), start)
        if is_separate and _AFTER_MENTION.match(prose, match.end()):
            return int(match[1])
    return None
