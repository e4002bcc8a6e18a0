"""Finds the pictures that a text shows, and the issues and pull requests that it references.

Pictures are replaced by `[picture N]` and their URLs are listed. Alternative texts are removed from
the text too: people who view the page see the picture instead.

References are found as GitHub links them, except in code. Source:
https://docs.github.com/en/get-started/writing-on-github/working-with-advanced-formatting/autolinked-references-and-urls
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from markdown_it.common.utils import normalizeReference

from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.markdown import markdown_parser
from resolver.github.text.raw_html import Region, code_regions, line_starts, region_at

MAX_NUMBERED_PICTURES = 20
"""Maximum number of pictures that get a number; further ones are only counted."""

MAX_ALT_CHARACTERS = 150
"""Maximum length of an alternative text, in characters."""

_MAX_UNLIKELY = 20
"""Number of places that are hardly a picture after which no better one is looked for."""

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
_QUOTE_PREFIX = re.compile(r"[ \t>]*")


@dataclass(frozen=True)
class PictureLink:
    """The location of a picture.

    `text_name` names the text that contains it, for a person; `api_path` is that text's path on the
    REST API, and `author` is who wrote it.
    """

    number: int
    url: str
    alt: str
    text_name: str
    api_path: str
    author: str


@dataclass(frozen=True)
class _Picture:
    start: int
    end: int
    url: str
    alt: str


@dataclass
class PictureLinks:
    """Collects the pictures of several texts, numbered from 1 in order.

    `unnumbered` is how many pictures were found beyond the maximum.
    """

    links: list[PictureLink] = field(default_factory=list)
    unnumbered: int = 0

    def take(self, cleaned: str, raw: str, text_name: str, api_path: str, author: str) -> str:
        """Return the cleaned text with its pictures replaced, and add them to the list.

        `raw` is the text before cleaning, which still has the alternative texts of HTML images.
        """
        alts = {src: alt for src, alt in map(_read_image_tag, _IMG.findall(raw)) if alt}
        parts: list[str] = []
        copied_end = 0
        for picture in _pictures(cleaned):
            if picture.start < copied_end:
                continue
            alt = strip_hidden(picture.alt or alts.get(picture.url, "")).text
            parts += [
                cleaned[copied_end : picture.start],
                self._mark(picture.url, alt, text_name, api_path, author),
            ]
            copied_end = picture.end
        return "".join([*parts, cleaned[copied_end:]])

    def _mark(self, url: str, alt: str, text_name: str, api_path: str, author: str) -> str:
        link = next((link for link in self.links if link.url == url), None)
        if link is None and len(self.links) == MAX_NUMBERED_PICTURES:
            self.unnumbered += 1
            return "[picture]"
        if link is None:
            alt = " ".join(alt.split())
            number = len(self.links) + 1
            link = PictureLink(number, url, alt, text_name, api_path, author)
            self.links.append(link)
        return f"[picture {link.number}]"


def without_pictures(cleaned: str) -> str:
    """Return the text with `[picture]` in place of each picture, for use without a list of them."""
    parts: list[str] = []
    copied_end = 0
    for picture in _pictures(cleaned):
        if picture.start >= copied_end:
            parts += [cleaned[copied_end : picture.start], "[picture]"]
            copied_end = picture.end
    return "".join([*parts, cleaned[copied_end:]])


def _pictures(text: str) -> list[_Picture]:
    """Return the pictures in order. Code is skipped, because markdown is read with a parser."""
    if "![" not in text and "<img" not in text.lower():
        return []  # skip the parser, which is slow
    code = code_regions(text)
    pictures = list(_markdown_pictures(text, code))
    for tag in _IMG.finditer(text):
        if not region_at(code, tag.start()):
            url, alt = _read_image_tag(tag[0])
            pictures.append(_Picture(tag.start(), tag.end(), url, alt))
    return sorted(pictures, key=lambda picture: (picture.start, -picture.end))


def _read_image_tag(tag: str) -> tuple[str, str]:
    """Return the URL and the alternative text of an `<img>`."""
    attributes = {
        match["name"].lower(): match["a"] or match["b"] or match["c"] or ""
        for match in _ATTRIBUTE.finditer(tag)
    }
    return attributes.get("src", ""), attributes.get("alt", "")


def _markdown_pictures(text: str, code: list[Region]) -> Iterator[_Picture]:
    starts = line_starts(text)
    cursor = 0
    environment: dict[str, Any] = {}
    tokens = markdown_parser().parse(text, environment)
    references = environment.get("references", {})
    for token in tokens:
        if token.map is None:
            continue
        first = starts[token.map[0]]
        last = min(starts[min(token.map[1], len(starts) - 1)], len(text))
        for child in token.children or []:
            if child.type != "image":
                continue
            place = max(cursor, first)
            span = _find_image_span(text, child.content, place, last, code, references)
            if span is None:
                continue
            start, end = span
            target = _target_of(text, end)
            cursor = target.end() if target else end
            yield _Picture(start, cursor, str(child.attrs.get("src", "")), child.content)


def _target_of(text: str, position: int) -> re.Match[str] | None:
    """Return the address or the label that begins at `position`."""
    return _TARGET.match(text, position) or _LABEL.match(text, position)


def _find_image_span(
    text: str, alt: str, start: int, end: int, code: list[Region], references: Collection[str]
) -> Region | None:
    """Return the offsets of `![alt]` between two offsets, or None.

    references: the labels that the text defines.

    What has neither an address nor a label after it, and is no label itself, is hardly a picture:
    it is only taken if there is no other.
    """
    is_label, unlikely = normalizeReference(alt) in references, list[Region]()
    position = text.find("![", start, end)
    while position != -1 and len(unlikely) < _MAX_UNLIKELY:
        alt_end = None if region_at(code, position) else _end_of_alt(text, alt, position + 2)
        if alt_end is not None and text[alt_end : alt_end + 1] == "]":
            span = position, alt_end + 1
            if is_label or _target_of(text, span[1]):
                return span
            unlikely.append(span)
        position = text.find("![", position + 1, end)
    return unlikely[0] if unlikely else None


def _end_of_alt(text: str, alt: str, position: int) -> int | None:
    """Return where the text `alt` that begins at `position` ends, or None if it does not match.

    `alt` comes from the parser, which removes the `>` of quoted lines and the backslashes before
    pipes in tables, so that it can differ from the source.
    """
    lines = alt.split("\n")
    for line, next_line in pairwise([*lines, None]):
        assert line is not None
        for character in line:
            if text[position : position + 2] == "\\|" and character == "|":
                position += 1
            if text[position : position + 1] != character:
                return None
            position += 1
        if next_line is not None:
            while text[position : position + 1] in {" ", "\t"}:
                position += 1
            if text[position : position + 1] != "\n":
                return None
            prefix = _QUOTE_PREFIX.match(text, position + 1)
            position = prefix.end() if prefix else position + 1
            position -= len(next_line) - len(next_line.lstrip(" \t>"))
    return position


_OWNER = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})"
_NAME = r"[A-Za-z0-9_.-]{1,100}"
_NUMBER = r"[1-9][0-9]{0,8}(?![A-Za-z0-9_])"
_ISSUE_REFERENCE = re.compile(
    rf"(?P<url>https?://(?P<host>[A-Za-z0-9.:-]{{1,255}})/(?P<url_repository>{_OWNER}/{_NAME})"
    rf"/(?:issues|pull)/(?P<url_number>{_NUMBER}))"
    rf"|(?<![\w/.#&-])(?P<repository>{_OWNER}/{_NAME})?#(?P<number>{_NUMBER})"
    rf"|(?<![\w/.#&-])(?i:gh)-(?P<gh>{_NUMBER})"
)


class IssueReference(NamedTuple):
    """A reference. `repository` is OWNER/NAME as written, "" for the repository of the text."""

    repository: str
    number: int


def references_in(text: str, host: str) -> Iterator[IssueReference]:
    """Yield the references in order, including duplicates.

    `host` is the forge's host name, with the port if it has one. URLs of other hosts are skipped.
    """
    code = code_regions(text)
    for match in _ISSUE_REFERENCE.finditer(text):
        if region_at(code, match.start()):
            continue
        if match["url"]:
            if match["host"].casefold() == host.casefold():
                yield IssueReference(match["url_repository"], int(match["url_number"]))
        else:
            yield IssueReference(match["repository"] or "", int(match["number"] or match["gh"]))
