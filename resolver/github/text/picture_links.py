"""Taking pictures out of a text: `[picture N]` stands where one was; where it lies is told apart.

Alternative texts go with them: whoever sees the page sees the picture, not those words.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from resolver.github.text.hidden_text import Region, code_regions, strip_hidden
from resolver.github.text.markdown import markdown_parser

MOST_TOLD = 20
"""Pictures that get a number; what is beyond them is only counted."""

MOST_ALT = 150
"""Characters of an alternative text."""

_IMG = re.compile(
    r"""<img(?=[\s/])(?:[^<>"']|"[^"]{0,2000}"|'[^']{0,2000}'){0,2000}>""", re.IGNORECASE
)
_ATTRIBUTE = re.compile(
    r"""(?<![\w-])(?P<name>src|alt)\s{0,20}=\s{0,20}
    (?:"(?P<a>[^"]{0,2000})"|'(?P<b>[^']{0,2000})'|(?P<c>[^\s"'=<>`]{1,2000}))""",
    re.IGNORECASE | re.VERBOSE,
)
_TARGET = re.compile(
    r"""\(\s{0,20}(?:<[^<>\n]{0,2000}>|[^\s()<>]{0,2000}(?:\([^\s()]{0,500}\)[^\s()]{0,500}){0,5})
    (?:\s{1,20}(?:"[^"]{0,2000}"|'[^']{0,2000}'))?\s{0,20}\)""",
    re.VERBOSE,
)
_LABEL = re.compile(r"\[[^\[\]]{0,999}\]")
_LEAD = re.compile(r"[ \t>]*")


@dataclass(frozen=True)
class PictureLink:
    """Where a picture lies. where: the text, for a person; text: that text on the forge's API, as a
    path; author: who wrote it."""

    number: int
    url: str
    alt: str
    where: str
    text: str
    author: str


@dataclass(frozen=True)
class _Found:
    start: int
    end: int
    url: str
    alt: str


@dataclass
class PictureLinks:
    """The pictures of all texts that it was shown, numbered from 1 in that order.

    uncounted: how many more there are than are told.
    """

    links: list[PictureLink] = field(default_factory=list)
    uncounted: int = 0

    def take(self, cleaned: str, raw: str, where: str, text: str, author: str) -> str:
        """The cleaned text with its pictures' numbers in their place.

        raw: the same text as it came, which still says the alternative texts of HTML.
        """
        alts = {src: alt for src, alt in map(_source, _IMG.findall(raw)) if alt}
        parts: list[str] = []
        copied = 0
        for found in _pictures(cleaned):
            if found.start < copied:
                continue
            alt = strip_hidden(found.alt or alts.get(found.url, "")).text
            parts += [
                cleaned[copied : found.start],
                self._mark(found.url, alt, where, text, author),
            ]
            copied = found.end
        return "".join([*parts, cleaned[copied:]])

    def _mark(self, url: str, alt: str, where: str, text: str, author: str) -> str:
        known = next((each for each in self.links if each.url == url), None)
        if known is None and len(self.links) == MOST_TOLD:
            self.uncounted += 1
            return "[picture]"
        if known is None:
            alt = " ".join(alt.split())
            number = len(self.links) + 1
            known = PictureLink(number, url, alt, where, text, author)
            self.links.append(known)
        return f"[picture {known.number}]"


def without_pictures(cleaned: str) -> str:
    """The text with `[picture]` where one was, for what is told without them."""
    parts: list[str] = []
    copied = 0
    for found in _pictures(cleaned):
        if found.start >= copied:
            parts += [cleaned[copied : found.start], "[picture]"]
            copied = found.end
    return "".join([*parts, cleaned[copied:]])


def _pictures(text: str) -> list[_Found]:
    """The pictures, in order; those of Markdown as the parser finds them, so none in code."""
    if "![" not in text and "<img" not in text.lower():
        return []  # parsing takes its time
    code = code_regions(text)
    found = list(_markdown_pictures(text, code))
    for tag in _IMG.finditer(text):
        if not _is_in(code, tag.start()):
            url, alt = _source(tag[0])
            found.append(_Found(tag.start(), tag.end(), url, alt))
    return sorted(found, key=lambda each: (each.start, -each.end))


def _source(tag: str) -> tuple[str, str]:
    """Address and alternative text of an `<img>`."""
    said = {m["name"].lower(): m["a"] or m["b"] or m["c"] or "" for m in _ATTRIBUTE.finditer(tag)}
    return said.get("src", ""), said.get("alt", "")


def _markdown_pictures(text: str, code: list[Region]) -> Iterator[_Found]:
    starts = [0, *(m.end() for m in re.finditer("\n", text)), len(text) + 1]
    cursor = 0
    for token in markdown_parser().parse(text):
        if token.map is None:
            continue
        first = starts[token.map[0]]
        last = min(starts[min(token.map[1], len(starts) - 1)], len(text))
        for child in token.children or []:
            if child.type != "image":
                continue
            span = _span(text, child.content, max(cursor, first), last, code)
            if span is None:
                continue
            start, end = span
            tail = _TARGET.match(text, end) or _LABEL.match(text, end)
            cursor = tail.end() if tail else end
            yield _Found(start, cursor, str(child.attrs.get("src", "")), child.content)


def _span(text: str, alt: str, start: int, end: int, code: list[Region]) -> Region | None:
    """Where `![alt]` stands between two offsets."""
    position = text.find("![", start, end)
    while position != -1:
        after = None if _is_in(code, position) else _follow(text, alt, position + 2)
        if after is not None and text[after : after + 1] == "]":
            return position, after + 1
        position = text.find("![", position + 1, end)
    return None


def _follow(text: str, alt: str, position: int) -> int | None:
    """Where `alt` ends that begins at `position`: the parser has taken out what marks the lines of
    a quote, and a table's backslashes."""
    pieces = alt.split("\n")
    for piece, following in pairwise([*pieces, None]):
        assert piece is not None
        for character in piece:
            if text[position : position + 2] == "\\|" and character == "|":
                position += 1
            if text[position : position + 1] != character:
                return None
            position += 1
        if following is not None:
            while text[position : position + 1] in {" ", "\t"}:
                position += 1
            if text[position : position + 1] != "\n":
                return None
            lead = _LEAD.match(text, position + 1)
            position = lead.end() if lead else position + 1
            position -= len(following) - len(following.lstrip(" \t>"))
    return position


def _is_in(regions: list[Region], position: int) -> bool:
    index = bisect_right(regions, position, key=lambda region: region[0]) - 1
    return index >= 0 and regions[index][0] <= position < regions[index][1]
