"""Finds the issue template that a description was written with.

A template is a markdown file or a YAML form of the default branch. The agent gets its text as it
is, and sees for itself what the maintainers ask for and what the author answered. Every function
takes time proportional to the length of the texts, because issues are written by strangers.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from resolver.github.text.markdown import number_code_blocks, shorten_text
from resolver.models.issue_context import Form
from resolver.security.invisible_text import without_invisible

MAX_TEMPLATE_BYTES = 50_000
"""Maximum size of a template in bytes."""

MAX_TEXT = 6_000
"""Maximum number of characters of the template that the agent gets."""

MIN_MATCHING_HEADINGS = 2
"""Number of a template's headings that a description must have, unless the template has fewer."""

_MAX_HEADING_CHARACTERS = 600
"""Maximum number of characters of a line that can be a heading."""

_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+([^ \t].*)")
_BOLD = re.compile(r" {0,3}(?:\*\*([^*]{1,300})\*\*|__([^_]{1,300})__):?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(?:==+|--+)[ \t]*")
_LABEL = re.compile(
    r"^[ \t-]*label:[ \t]+(?P<block>\S.*)|[{,][ \t]*label:[ \t]+(?P<flow>[^,}\n]+)", re.MULTILINE
)
"""A label in YAML, on a line of its own or within braces."""

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_TITLE = re.compile(r"""^title:[ \t]*["']?([^"'\n]+)""", re.MULTILINE)


def find_form(templates: Mapping[str, bytes], title: str, body: str) -> Form | None:
    """Return the template that fits a description best, None if none fits.

    A template fits if the description has all of its headings, or at least `MIN_MATCHING_HEADINGS`.
    Of several, the best is the one with the most of its headings in the description, then the
    largest share of them, then the one whose title begins the issue's.

    templates: content by path.
    title, body: those of the issue, the body without hidden text.
    """
    headings = frozenset(_headings(body)) if templates else frozenset()
    best: tuple[tuple[int, float, bool], Form] | None = None
    for path in sorted(templates):
        text = _decode(templates[path])
        labels = set(_labels(path, text))
        matching = len(labels & headings)
        if not labels or matching < min(MIN_MATCHING_HEADINGS, len(labels)):
            continue
        prefix = _TITLE.search(text)
        has_prefix = prefix is not None and title.casefold().startswith(
            prefix[1].strip().casefold()
        )
        fit = (matching, matching / len(labels), has_prefix)
        if best is None or fit > best[0]:
            best = (
                fit,
                Form(path=path, text=shorten_text(without_invisible(text).strip(), MAX_TEXT)),
            )
    return best[1] if best else None


def _decode(content: bytes) -> str:
    """Return the text of a file, "" if it is too large or not text."""
    if len(content) > MAX_TEMPLATE_BYTES:
        return ""
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return ""


def _labels(path: str, text: str) -> Iterator[str]:
    """Yield the headings that a template gives an issue: labels of a form, headings of markdown.

    A form is not parsed as YAML: its labels are only compared with the description's headings.
    """
    if PurePosixPath(path).suffix.lower() not in {".yml", ".yaml"}:
        yield from _headings(_FRONT_MATTER.sub("", text))
        return
    for match in _LABEL.finditer(text):
        if label := _normalize((match["block"] or match["flow"]).strip("\"' \t")):
            yield label


def _headings(text: str) -> Iterator[str]:
    """Yield the headings of a text, in a form for comparison. A line in bold counts as one.

    Headings within fenced code blocks are ignored.
    """
    previous_line = ""
    for line, code_block in number_code_blocks(text.split("\n")):
        if not code_block and (heading := _normalize(_heading(line, previous_line))):
            yield heading
        previous_line = "" if code_block else line


def _heading(line: str, previous_line: str) -> str:
    """Return the heading that a line is, or that it makes of the line before it; "" if neither."""
    if len(line) > _MAX_HEADING_CHARACTERS:
        return ""
    if match := _HEADING.fullmatch(line):
        return match[1].rstrip(" \t").rstrip("#")
    if match := _BOLD.fullmatch(line):
        return match[1] or match[2]
    is_underline = _UNDERLINE.fullmatch(line) is not None
    return previous_line if is_underline and len(previous_line) <= _MAX_HEADING_CHARACTERS else ""


def _normalize(text: str) -> str:
    """Return the text in a form for comparison, without case and marks for bold or code."""
    without_marks = re.sub(r"[*_`\ufe0f]", "", without_invisible(text))
    return " ".join(without_marks.split()).rstrip(":").strip().casefold()
