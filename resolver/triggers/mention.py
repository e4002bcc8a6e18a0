"""Finding a mention that a person really made: in prose, not in code, quotes, links or HTML.

The text is parsed as GitHub parses it. Each place that could be a mention is numbered before,
so that the one found in the tree is known in the source as well.
"""

import re

from markdown_it.token import Token

from resolver.forge.hidden_text import end_of_readable, strip_hidden
from resolver.forge.markdown import markdown_parser

_NUMBERED = re.compile("\ue000([0-9]+)\ue001")
_ELSEWHERE = "\ufffc"
"""Stands for what isn't prose; no mention starts or ends at it."""

# text inside these isn't the writer's own words, or isn't shown at once
_NOT_PROSE = {
    "a", "blockquote", "code", "del", "details", "kbd", "pre", "q", "s", "samp", "script", "strike",
    "style", "summary", "svg", "template", "textarea", "title", "tt", "var",
}  # fmt: skip
_HTML_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*)([^<>]{0,2000})>")
_HIDDEN = re.compile(r"\bhidden\b|display\s*:\s*none", re.I)
_FOOTNOTE = re.compile(r"\[\^[^\]]+\]:")
_GAP = re.compile(r"\s")
_BEFORE = re.compile(r"(?:^|[\s(\[{\"'*_~,;:!?\u2013\u2014\u201c\u2018\u00ab>])$")
_AFTER = re.compile(r"(?![\w/@\-'’\ufffc]|\.\w)")


def find_instruction(body: str, mention: str) -> str | None:
    """The words after the first real `mention` in a comment, None when there is none.

    When nothing but a punctuation mark follows it, the words before it, with a question mark where
    that is the mark.
    Hidden text is taken out.
    """
    body = body.replace("\r\n", "\n").replace("\r", "\n")
    numbered, ends = _number(body, mention)
    if not ends:
        return None
    index = _first_in_prose(numbered[: end_of_readable(numbered)])
    if index is None:
        return None
    end = ends[index]
    following = strip_hidden(body[end:]).text.strip()
    after = following.lstrip(",:;.!?)]*_ \t\n").strip()
    before = strip_hidden(body[: end - len(mention)]).text.strip()
    if after or not following.startswith("?"):
        return after or before
    return before.rstrip(" \t\n,;:-") + "?"


def _number(body: str, mention: str) -> tuple[str, list[int]]:
    """The body with each place that could be a mention replaced by its number, and the offsets
    in the original where each place ends. The first character stays: markdown looks at it."""
    ends: list[int] = []

    def numbered(match: re.Match[str]) -> str:
        ends.append(match.end())
        return f"{match[0][0]}\ue000{len(ends) - 1}\ue001"

    clean = body.replace("\ue000", "\ufffd").replace("\ue001", "\ufffd")
    return re.sub(re.escape(mention), numbered, clean, flags=re.I), ends


def _first_in_prose(numbered: str) -> int | None:
    quotes = depth = 0
    for token in markdown_parser().parse(numbered):
        if token.type == "blockquote_open":
            quotes += 1
        elif token.type == "blockquote_close":
            quotes -= 1
        elif token.type == "html_block":
            depth = max(0, depth + _depth(token.content))
        elif token.type == "inline":
            prose, depth = _prose(token.children or [], depth)
            found = None if quotes else _first(prose)
            if found is not None:
                return found
    return None


def _depth(html: str) -> int:
    """How many elements whose text isn't prose this HTML opens (closes, when negative)."""
    change = 0
    for closing, name, attributes in _HTML_TAG.findall(html):
        if name.lower() in _NOT_PROSE or _HIDDEN.search(attributes):
            change += -1 if closing else 1
    return change


def _prose(children: list[Token], depth: int) -> tuple[str, int]:
    """The text of a block, with a mark for everything that isn't the writer's own prose."""
    parts: list[str] = []
    links = 0
    for child in children:
        if child.type in {"link_open", "s_open"}:
            links += 1
        elif child.type in {"link_close", "s_close"}:
            links -= 1
            parts.append(_ELSEWHERE)
        elif child.type == "html_inline":
            depth = max(0, depth + _depth(child.content))
            parts.append(_ELSEWHERE)
        elif child.type in {"softbreak", "hardbreak"}:
            parts.append("\n")
        elif child.type in {"em_open", "em_close", "strong_open", "strong_close"}:
            continue
        elif child.type == "text" and not links and not depth:
            parts.append(child.content)
        else:
            parts.append(_ELSEWHERE)
    return "".join(parts), depth


def _first(prose: str) -> int | None:
    if _FOOTNOTE.match(prose):
        return None
    word = seen = 0
    for found in _NUMBERED.finditer(prose):
        start = found.start() - 1  # the mention's own first character
        # each character is looked at once: a comment can be one long word full of mentions
        word = max((gap.end() for gap in _GAP.finditer(prose, seen, start)), default=word)
        seen = start
        if "://" in prose[word:start] or prose[word : min(word + 4, start)].lower() == "www.":
            continue
        if _BEFORE.search(prose, max(0, start - 1), start) and _AFTER.match(prose, found.end()):
            return int(found[1])
    return None
