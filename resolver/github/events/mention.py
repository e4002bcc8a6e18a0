"""Find a mention that a person really wrote: in prose, not in code, quotes, links or HTML.

The text is parsed as GitHub parses it. Every possible mention is replaced by a number before
parsing, so that a mention found in the syntax tree can be located in the source.
"""

import re
from collections import Counter

from markdown_it.token import Token

from resolver.github.text.hidden_text import end_of_readable, strip_hidden
from resolver.github.text.markdown import markdown_parser

_NUMBERED = re.compile("\ue000([0-9]+)\ue001")
_ELSEWHERE = "\ufffc"
"""Placeholder for content that is not prose. No mention starts or ends next to it."""

# Text inside these elements is not the writer's own, or is not visible at once.
_NOT_PROSE = {
    "a", "blockquote", "code", "del", "details", "kbd", "pre", "q", "s", "samp", "script", "strike",
    "style", "summary", "svg", "template", "textarea", "title", "tt", "var",
}  # fmt: skip
_HTML_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*)([^<>]{0,2000})>")
_LINKS = re.compile(r"\bhref\b", re.I)
"""An `<a>` element without this attribute is the target of a link, not a link."""

_HIDDEN = re.compile(r"\bhidden\b|display\s*:\s*none", re.I)
_FOOTNOTE = re.compile(r"\[\^[^\]]+\]:")
_GAP = re.compile(r"\s")
_VOID = {"br", "hr", "img", "input", "link", "meta", "source", "wbr"}
"""Elements without content, which can't hide any text."""

# A login consists of ASCII letters, digits and hyphens. As on GitHub, any other character ends it,
# and most characters can stand before the "@". A slash is excluded because it belongs to a path.
# Source: https://github.com/gjtorikian/html-pipeline (node_filter/mention_filter.rb)
_BEFORE_LOGIN = re.compile(r"(?:^|[^A-Za-z0-9/@`\ue001\ufffc])$")
_BEFORE_WORD = re.compile(r"(?:^|[\s(\[{\"'*_~,;:!?\u2013\u2014\u201c\u2018\u00ab>])$")
_AFTER = re.compile(r"(?![A-Za-z0-9_/@\-'’\ufffc]|\.[A-Za-z0-9_])")
_AS_APP = re.compile(r"\[bot\](?![\[(])", re.I)
"""A suffix that belongs to the login of a GitHub App's account."""

_STOPS = ",:;.!?)]*_ \t\n，、。．：；！？）］】」』》”’…–—"


def find_instruction(body: str, mention: str) -> str | None:
    """Return the text after the first real mention in a comment, or None when there is none.

    When nothing but a punctuation mark follows the mention, return the text before it, with a
    question mark if that is the mark. Hidden text is removed.
    """
    body = body.replace("\r\n", "\n").replace("\r", "\n")
    numbered, ends = _number(body, mention)
    if not ends:
        return None
    index = _first_in_prose(numbered[: end_of_readable(numbered)])
    if index is None:
        return None
    end = ends[index]
    named = _AS_APP.match(body, end)
    following = strip_hidden(body[named.end() if named else end :]).text.strip()
    after = following.lstrip(_STOPS).strip()
    if after:
        return after
    before = strip_hidden(body[: end - len(mention)]).text.strip()
    if not following.startswith(("?", "？")):
        return before
    return before.rstrip(" \t\n,;:-，、；：") + "?"


def _number(body: str, mention: str) -> tuple[str, list[int]]:
    """Replace each possible mention in the body by its number.

    Returns the new body and, for each number, the offset in the original body where the mention
    ends. The first character of a mention stays, because Markdown parsing depends on it.
    """
    ends: list[int] = []

    def numbered(match: re.Match[str]) -> str:
        ends.append(match.end())
        return f"{match[0][0]}\ue000{len(ends) - 1}\ue001"

    clean = body.replace("\ue000", "\ufffd").replace("\ue001", "\ufffd")
    return re.sub(re.escape(mention), numbered, clean, flags=re.I), ends


def _first_in_prose(numbered: str) -> int | None:
    """Return the number of the first mention in prose, or None."""
    quotes = 0
    apart = _Apart()
    for token in markdown_parser().parse(numbered):
        if token.type == "blockquote_open":
            quotes += 1
        elif token.type == "blockquote_close":
            quotes -= 1
        elif token.type == "html_block":
            apart.read(token.content)
        elif token.type == "inline":
            prose = _prose(token.children or [], apart)
            found = None if quotes else _first(prose)
            if found is not None:
                return found
    return None


class _Apart:
    """Tracks the open HTML elements whose text is not prose.

    An element that hides its text counts as open until the end of the comment, because its closing
    tag can't be recognized from the tag alone.
    """

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    def __bool__(self) -> bool:
        return self._open.total() > 0

    def read(self, html: str) -> None:
        """Update the open elements with the tags in `html`."""
        for closing, tag, attributes in _HTML_TAG.findall(html):
            name = tag.lower()
            if closing:
                self._open[name] -= self._open[name] > 0
            elif _HIDDEN.search(attributes):
                self._open["(hidden)"] += name not in _VOID
            elif name in _NOT_PROSE and (name != "a" or _LINKS.search(attributes)):
                self._open[name] += 1


def _prose(children: list[Token], apart: _Apart) -> str:
    """Return the text of a block, with a placeholder for what is not the writer's own prose."""
    parts: list[str] = []
    links = 0
    for child in children:
        if child.type in {"link_open", "s_open"}:
            links += 1
        elif child.type in {"link_close", "s_close"}:
            links -= 1
            parts.append(_ELSEWHERE)
        elif child.type == "html_inline":
            apart.read(child.content)
            parts.append(" ")  # a tag ends a word, as a line break does
        elif child.type in {"code_inline", "image"}:
            parts.append(" ")  # GitHub also accepts a mention next to one of these
        elif child.type in {"softbreak", "hardbreak"}:
            parts.append("\n")
        elif child.type in {"em_open", "em_close", "strong_open", "strong_close"}:
            continue
        elif child.type == "text" and not links and not apart:
            parts.append(child.content)
        else:
            parts.append(_ELSEWHERE)
    return "".join(parts)


def _first(prose: str) -> int | None:
    """Return the number of the first mention in a block's prose, or None."""
    if _FOOTNOTE.match(prose):
        return None
    word = seen = 0
    for found in _NUMBERED.finditer(prose):
        start = found.start() - 1  # the mention's own first character
        # Each character is scanned once: a comment can be one long word full of mentions.
        word = max((gap.end() for gap in _GAP.finditer(prose, seen, start)), default=word)
        seen = start
        if "://" in prose[word:start] or prose[word : min(word + 4, start)].lower() == "www.":
            continue
        before = _BEFORE_LOGIN if prose[start] == "@" else _BEFORE_WORD
        if before.search(prose, max(0, start - 1), start) and _AFTER.match(prose, found.end()):
            return int(found[1])
    return None
