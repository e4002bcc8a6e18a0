"""The structure of a page: its headings, folds and tables in their order, without their contents.

It changes when a text or a layout is changed, not when a run takes longer. docs/images has the
structure of each page that is pictured there, so that a test notices pictures that are out of date.
"""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

FILE = Path(__file__).parents[2] / "docs" / "images" / "structure.json"

_NAMED = frozenset({"h1", "h2", "h3", "h4", "summary", "th", "dt"})
_SKIPPED = frozenset({"style", "script"})


class _OutlineParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._open = ""
        self._words = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in _NAMED | _SKIPPED and not self._open:
            self._open, self._words = tag, ""

    def handle_endtag(self, tag: str) -> None:
        if tag == self._open:
            text = re.sub(r"[0-9][0-9.,]*", "N", " ".join(self._words.split()))
            if tag in _NAMED:
                self.lines.append(f"{tag}: {text}")
            self._open = ""

    def handle_data(self, data: str) -> None:
        self._words += data


def outline(html: str) -> list[str]:
    """Return a line for each heading, fold and column of the page. Numbers are replaced by N."""
    parser = _OutlineParser()
    parser.feed(html)
    return parser.lines


def pictured_outline(name: str) -> list[str]:
    """Return the structure of a page when its picture in docs/images was made."""
    lines: list[str] = json.loads(FILE.read_text())[name]
    return lines
