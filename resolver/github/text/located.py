"""Finds where code, HTML, links and pictures stand in the source of a markdown text.

The parser tells what is what; it does not say at which character. The rules that read these parts
of a line are therefore wrapped: each notes where it began and ended.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any

from markdown_it import MarkdownIt, rules_inline
from markdown_it.helpers import parseLinkLabel
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

Region = tuple[int, int]

_RULES: dict[str, tuple[str, Callable[[StateInline, bool], bool]]] = {
    "backticks": ("code_inline", rules_inline.backtick),
    "html_inline": ("html_inline", rules_inline.html_inline),
    "image": ("image", rules_inline.image),
    "link": ("link_open", rules_inline.link),
}


@cache
def locating_parser() -> MarkdownIt:
    """Return a parser whose tokens of code, HTML, pictures and links have a "span" in their meta.

    It skips emphasis, which halves the time for a text that is full of asterisks.
    """
    parser = MarkdownIt("commonmark", {"store_labels": True}).enable("table")
    for rule, (kind, read) in _RULES.items():
        parser.inline.ruler.at(rule, _note_span(kind, read))
    return parser.disable(["emphasis", "balance_pairs"])


def _note_span(
    kind: str, read: Callable[[StateInline, bool], bool]
) -> Callable[[StateInline, bool], bool]:
    def read_and_note(state: StateInline, silent: bool) -> bool:
        start, count = state.pos, len(state.tokens)
        is_found = read(state, silent)
        # The first new token may be the text before, which was waiting.
        for token in state.tokens[count : count + 2]:
            if token.type == kind and "span" not in token.meta:
                token.meta["span"] = (start, state.pos)
                if "title" in token.attrs:
                    opening = start + (kind == "image")
                    token.meta["end_of_label"] = parseLinkLabel(state, opening) + 1
                break
        return is_found

    return read_and_note


@dataclass(frozen=True)
class LocatedPart:
    """A token and its offsets in the text. `end_of_label` is set for a link with a title."""

    token: Token
    start: int
    end: int
    end_of_label: int


@dataclass(frozen=True)
class LocatedBlock:
    """A block token, its offsets in the text, and the located parts of its lines.

    Tokens without content of their own, such as `blockquote_open`, have no offsets.
    """

    token: Token
    start: int = -1
    end: int = -1
    parts: tuple[LocatedPart, ...] = ()


def line_starts(text: str) -> list[int]:
    """Return the offset of each line, and one after the end of the text."""
    return list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))


def locate(text: str, environment: dict[str, Any] | None = None) -> list[LocatedBlock]:
    """Return the block tokens of the text in order, with their places.

    environment: receives the text's link definitions, as the parser keeps them.
    """
    lines, starts = text.split("\n"), line_starts(text)
    blocks: list[LocatedBlock] = []
    row = cursor = -1
    for token in locating_parser().parse(text, environment):
        if token.map is None or token.type not in {"inline", "fence", "code_block", "html_block"}:
            blocks.append(LocatedBlock(token))
            continue
        first, last = token.map[0], min(token.map[1], len(lines))
        if token.type in {"fence", "code_block"} or first >= last:
            end = min(starts[last], len(text)) if last > first else starts[first]
            blocks.append(LocatedBlock(token, starts[first], end))
            continue
        if first != row:
            row, cursor = first, starts[first]
        parent = blocks[-1].token.type if blocks else ""
        offset_of, end = _offsets(token, parent, lines[first:last], starts[first:], cursor)
        cursor = end
        parts = tuple(
            LocatedPart(
                child,
                offset_of(child.meta["span"][0]),
                offset_of(child.meta["span"][1]),
                offset_of(child.meta.get("end_of_label", 0)),
            )
            for child in token.children or ()
            if "span" in child.meta
        )
        blocks.append(LocatedBlock(token, offset_of(0), end, parts))
    return blocks


def _offsets(
    token: Token, parent: str, lines: Sequence[str], starts: Sequence[int], cursor: int
) -> tuple[Callable[[int], int], int]:
    """Return what tells the place in the text of an offset in a token's content, and its end.

    The parser takes the signs of quotes, lists and headings from the beginning of each line, and a
    backslash before each pipe in a cell.
    """
    content = token.content.removesuffix("\n") if token.type == "html_block" else token.content
    parts = content.split("\n")[: len(lines)]
    content_starts = line_starts(content)
    is_cell = parent in {"th_open", "td_open"}
    places: list[int] = []
    for part, line, start in zip(parts, lines, starts, strict=False):
        words = part.strip()
        if is_cell:
            place = max(line.find(words.replace("|", "\\|"), cursor - start), 0)
        elif parent == "heading_open" and len(lines) == 1:
            place = max(line.find(words), 0)  # there may be signs behind it too
        else:
            place = max(len(line.rstrip()) - len(words), 0)
        places.append(start + place - (len(part) - len(part.lstrip())))

    def offset_of(position: int) -> int:
        index = max(i for i in range(len(places)) if content_starts[i] <= position)
        before = content[content_starts[index] : position]
        return places[index] + len(before) + (before.count("|") if is_cell else 0)

    return offset_of, offset_of(min(len(content), content_starts[len(places)] - 1))


def code_regions(text: str) -> list[Region]:
    """Return the offsets of code blocks and code spans, in order."""
    return list(_code(locate(text)))


def _code(blocks: Sequence[LocatedBlock]) -> Iterator[Region]:
    for block in blocks:
        if block.token.type in {"fence", "code_block"}:
            yield block.start, block.end
        yield from (
            (part.start, part.end) for part in block.parts if part.token.type == "code_inline"
        )


def region_at(regions: Sequence[Region], position: int) -> Region | None:
    """Return the region that contains the offset, or None."""
    index = bisect_right(regions, position, key=lambda region: region[0]) - 1
    return regions[index] if index >= 0 and position < regions[index][1] else None
