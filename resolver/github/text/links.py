"""Finds the pictures that a text shows, and the issues and pull requests that it references.

Pictures are replaced by `[picture N]` and their URLs are listed. Alternative texts are removed from
the text too: people who view the page see the picture instead.

References are found as GitHub links them, except in code. MarkdownSource:
https://docs.github.com/en/get-started/writing-on-github/working-with-advanced-formatting/autolinked-references-and-urls
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from markdown_it.token import Token

from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.markdown_source import MarkdownSource, apply_edits, parts_of

MAX_NUMBERED_PICTURES = 20
"""Maximum number of pictures that get a number; further ones are only counted."""

MAX_ALT_CHARACTERS = 150
"""Maximum length of an alternative text, in characters."""


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


@dataclass
class PictureLinks:
    """Collects the pictures of several texts, numbered from 1 in order.

    `unnumbered` is how many pictures were found beyond the maximum.
    """

    links: list[PictureLink] = field(default_factory=list)
    unnumbered: int = 0

    def take(self, cleaned: str, text_name: str, api_path: str, author: str) -> str:
        """Return the cleaned text with its pictures replaced, and add them to the list."""
        return _replace_pictures(
            cleaned, lambda image: self._mark(image, text_name, api_path, author)
        )

    def _mark(self, image: Token, text_name: str, api_path: str, author: str) -> str:
        url = str(image.attrs.get("src", ""))
        link = next((link for link in self.links if link.url == url), None)
        if link is None and len(self.links) == MAX_NUMBERED_PICTURES:
            self.unnumbered += 1
            return "[picture]"
        if link is None:
            alt = " ".join(strip_hidden(image.content).text.split())
            link = PictureLink(len(self.links) + 1, url, alt, text_name, api_path, author)
            self.links.append(link)
        return f"[picture {link.number}]"


def without_pictures(cleaned: str) -> str:
    """Return the text with `[picture]` in place of each picture, for use without a list of them."""
    return _replace_pictures(cleaned, lambda _: "[picture]")


def _replace_pictures(text: str, mark: Callable[[Token], str]) -> str:
    if "![" not in text:
        return text  # skip the parser, which is slow
    source = MarkdownSource(text)
    for block in source.blocks:
        if block.type == "inline":
            edits = [(start, end, mark(part)) for part, start, end in parts_of(block, "image")]
            source.replace(block, apply_edits(block.content, edits))
    return source.text()


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
    """A reference. `repository` is OWNER/NAME as written, None for the repository of the text."""

    repository: str | None
    number: int


def references_in(text: str, host: str) -> Iterator[IssueReference]:
    """Yield the references in order, including duplicates.

    `host` is the forge's host name, with the port if it has one. URLs of other hosts are skipped.
    """
    for block in MarkdownSource(text).blocks:
        if block.type == "inline":
            code = [(start, end, " ") for _, start, end in parts_of(block, "code_inline")]
            yield from _references(apply_edits(block.content, code), host)


def _references(words: str, host: str) -> Iterator[IssueReference]:
    for match in _ISSUE_REFERENCE.finditer(words):
        if match["url"]:
            if match["host"].casefold() == host.casefold():
                yield IssueReference(match["url_repository"], int(match["url_number"]))
        else:
            yield IssueReference(match["repository"], int(match["number"] or match["gh"]))
