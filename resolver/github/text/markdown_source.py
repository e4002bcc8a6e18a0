"""Parses a markdown text so that the content of its blocks can be replaced in its source.

The parser tells what is what, and in which lines. The rules that read code, HTML, pictures and
links within a line are wrapped: each notes where in the content of its block it began and ended.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import pairwise, zip_longest
from typing import Any

from markdown_it import MarkdownIt, rules_inline
from markdown_it.helpers import parseLinkLabel
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

_Rule = Callable[[StateInline, bool], bool]
_RULES: dict[str, tuple[str, _Rule]] = {
    "backticks": ("code_inline", rules_inline.backtick),
    "html_inline": ("html_inline", rules_inline.html_inline),
    "image": ("image", rules_inline.image),
    "link": ("link_open", rules_inline.link),
}

Edit = tuple[int, int, str]
"""The offsets of a part of a block's content, and what takes its place."""


@cache
def _parser() -> MarkdownIt:
    """Return a parser whose tokens of code, HTML, pictures and links have a "span" in their meta.

    It skips emphasis, which halves the time for a text that is full of asterisks.
    """
    parser = MarkdownIt("commonmark", {"store_labels": True}).enable("table")
    for rule, (kind, read) in _RULES.items():
        parser.inline.ruler.at(rule, _note_span(kind, read))
    return parser.disable(["emphasis", "balance_pairs"])


def _note_span(kind: str, read: _Rule) -> _Rule:
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


def parts_of(block: Token, *kinds: str) -> Iterator[tuple[Token, int, int]]:
    """Yield the tokens of these kinds in a block's content, with the offsets of each."""
    for part in block.children or ():
        if part.type in kinds and "span" in part.meta:
            yield part, *part.meta["span"]


def apply_edits(content: str, edits: Iterable[Edit]) -> str:
    """Return the content with parts of it replaced, and with as many line breaks as before.

    Of parts that overlap, the one that begins first is replaced.
    """
    parts: list[str] = []
    position = 0
    for start, end, replacement in sorted(edits):
        if start >= position:
            line_breaks = "\n" * content.count("\n", start, end)
            parts += [content[position:start], replacement, line_breaks]
            position = end
    return "".join([*parts, content[position:]])


class MarkdownSource:
    """A text, and the tokens of its blocks, whose content can be replaced.

    definitions: the link definitions as the parser keeps them, with their label; one that repeats a
    label has none.
    """

    def __init__(self, text: str) -> None:
        environment: dict[str, Any] = {}
        self.blocks = _parser().parse(text, environment)
        self.definitions: list[tuple[str | None, dict[str, Any]]] = [
            *environment.get("references", {}).items(),
            *((None, definition) for definition in environment.get("duplicate_refs", ())),
        ]
        self._lines = text.split("\n")
        self._removed: set[int] = set()
        self._row = self._column = -1
        for opening, block in pairwise(self.blocks):
            if opening.type in {"th_open", "td_open"}:
                block.meta["is_cell"] = True

    def text(self) -> str:
        """Return the text with what was replaced."""
        lines = (line for row, line in enumerate(self._lines) if row not in self._removed)
        return "\n".join(lines)

    def set_lines(self, first: int, last: int, line: str = "") -> None:
        """Put one line in place of those from `first` to before `last`."""
        self._lines[first] = line
        self._removed |= {*range(first + 1, last)}

    def replace(self, block: Token, content: str) -> None:
        """Replace the content of a block. All cells of a row are replaced from left to right."""
        first, last = block.map or (0, 0)
        if "is_cell" in block.meta:
            self._replace_cell(first, block.content, content)
            return
        first += block.type == "fence"
        old = block.content.removesuffix("\n").split("\n")
        new = content.removesuffix("\n").split("\n")
        for row, (old_line, new_line) in enumerate(zip_longest(old, new, fillvalue=""), first):
            if row < last:
                self.replace_words(row, old_line.strip(), new_line.strip())
            elif new_line:
                self._lines[last - 1] += f"\n{new_line}"

    def replace_words(self, row: int, old: str, new: str) -> None:
        """Replace the words of a line, which stand behind the signs of quotes, lists and headings.

        Signs are behind them too in a heading.
        """
        before, _, after = self._lines[row].rpartition(old) if old else (self._lines[row], "", "")
        self._lines[row] = f"{before}{new}{after}"

    def _replace_cell(self, row: int, old: str, new: str) -> None:
        if row != self._row:
            self._row, self._column = row, 0
        old, new = (text.replace("|", "\\|") for text in (old, new))
        line, at = self._lines[row], self._column
        at = max(at, line.find(old, at))
        self._lines[row] = f"{line[:at]}{new}{line[at + len(old) :]}"
        self._column = at + len(new)

    def cut_row(self) -> bool:
        """Remove the cells behind the last replaced one; return False if there are none."""
        line = self._lines[self._row]
        has_more = bool(line[self._column :].strip(" \t|"))
        if has_more:
            self._lines[self._row] = f"{line[: self._column]} |"
        return has_more
