"""Finds the pictures that a text shows, and the issues and pull requests that it references.

Pictures are replaced by `[picture N]` and their URLs are listed. Alternative texts are removed from
the text too: people who view the page see the picture instead.

References are found as GitHub links them, except in code. Source:
https://docs.github.com/en/get-started/writing-on-github/working-with-advanced-formatting/autolinked-references-and-urls
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from resolver.github.text.hidden_text import Region, code_regions, strip_hidden
from resolver.github.text.markdown import markdown_parser

MOST_TOLD = 20
"""Maximum number of pictures that get a number; further ones are only counted."""

MOST_ALT = 150
"""Maximum length of an alternative text, in characters."""

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
    """The location of a picture.

    `where` names the text that contains it, for a person; `text` is that text's path on the REST
    API, and `author` is who wrote it.
    """

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
    """Collects the pictures of several texts, numbered from 1 in order.

    `uncounted` is how many pictures were found beyond the maximum.
    """

    links: list[PictureLink] = field(default_factory=list)
    uncounted: int = 0

    def take(self, cleaned: str, raw: str, where: str, text: str, author: str) -> str:
        """Return the cleaned text with its pictures replaced, and add them to the list.

        `raw` is the text before cleaning, which still has the alternative texts of HTML images.
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
    """Return the text with `[picture]` in place of each picture, for use without a list of them."""
    parts: list[str] = []
    copied = 0
    for found in _pictures(cleaned):
        if found.start >= copied:
            parts += [cleaned[copied : found.start], "[picture]"]
            copied = found.end
    return "".join([*parts, cleaned[copied:]])


def _pictures(text: str) -> list[_Found]:
    """Return the pictures in order. Code is skipped, because markdown is read with a parser."""
    if "![" not in text and "<img" not in text.lower():
        return []  # skip the parser, which is slow
    code = code_regions(text)
    found = list(_markdown_pictures(text, code))
    for tag in _IMG.finditer(text):
        if not _is_in(code, tag.start()):
            url, alt = _source(tag[0])
            found.append(_Found(tag.start(), tag.end(), url, alt))
    return sorted(found, key=lambda each: (each.start, -each.end))


def _source(tag: str) -> tuple[str, str]:
    """Return the URL and the alternative text of an `<img>`."""
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
    """Return the offsets of `![alt]` between two offsets, or None."""
    position = text.find("![", start, end)
    while position != -1:
        after = None if _is_in(code, position) else _follow(text, alt, position + 2)
        if after is not None and text[after : after + 1] == "]":
            return position, after + 1
        position = text.find("![", position + 1, end)
    return None


def _follow(text: str, alt: str, position: int) -> int | None:
    """Return where the text `alt` that begins at `position` ends, or None if it does not match.

    `alt` comes from the parser, which removes the `>` of quoted lines and the backslashes before
    pipes in tables, so that it can differ from the source.
    """
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


_OWNER = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})"
_NAME = r"[A-Za-z0-9_.-]{1,100}"
_NUMBER = r"[1-9][0-9]{0,8}(?![A-Za-z0-9_])"
_FOUND = re.compile(
    rf"(?P<url>https?://(?P<host>[A-Za-z0-9.:-]{{1,255}})/(?P<url_repository>{_OWNER}/{_NAME})"
    rf"/(?:issues|pull)/(?P<url_number>{_NUMBER}))"
    rf"|(?<![\w/.#&-])(?P<repository>{_OWNER}/{_NAME})?#(?P<number>{_NUMBER})"
    rf"|(?<![\w/.#&-])(?i:gh)-(?P<gh>{_NUMBER})"
)


class Named(NamedTuple):
    """A reference. `repository` is OWNER/NAME as written, "" for the repository of the text."""

    repository: str
    number: int


def references_in(text: str, host: str) -> Iterator[Named]:
    """Yield the references in order, including duplicates.

    `host` is the forge's host name, with the port if it has one. URLs of other hosts are skipped.
    """
    regions = iter(code_regions(text))
    region = next(regions, None)
    for found in _FOUND.finditer(text):
        while region is not None and region[1] <= found.start():
            region = next(regions, None)
        if region is not None and region[0] <= found.start():
            continue
        if found["url"]:
            if found["host"].casefold() == host.casefold():
                yield Named(found["url_repository"], int(found["url_number"]))
        else:
            yield Named(found["repository"] or "", int(found["number"] or found["gh"]))
