"""Removes the invisible parts of diagrams and formulas, which GitHub renders instead of showing.

These are comments, directives, and text that is transparent or in the color of the page.

Source: https://docs.github.com/en/get-started/writing-on-github/working-with-advanced-formatting
"""

import re
from collections import Counter
from collections.abc import Sequence

from resolver.github.text.markdown import block_parser
from resolver.github.text.raw_html import Region, region_at

DIAGRAM = "diagram comment"
MATH = "hidden formula part"

_MAX_PASSES = 8

_DRAWN_FENCE = re.compile(r"(?i)(?:```|~~~)[ \t]*(?:mermaid|math)")
_DIAGRAM_COMMENT = re.compile(r"^([ \t>]*)%%.*$", re.M)

_DISPLAYED = re.compile(r"\$\$((?:[^$\\\n]|\\(?s:.)|\n(?![ \t]*\n)|\$(?!\$)){1,5000}?)\$\$")
_INLINE = re.compile(r"(?<![\w$\\])\$(?![\s$`])((?:[^$\\\n]|\\.){1,2000})(?<!\s)\$(?![\w$])")
_BACKTICKED = re.compile(r"(?<![\w$\\])\$`([^`]{1,5000})`\$(?![\w$])")

_MATH_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%[^\n]+")
_WHITE = r"white|transparent|\#?f{3}(?:f{3})?|(?:255\s*+,\s*+){2}255|(?:1\s*+,\s*+){2}1"
_WHITE_COLOR = rf"color\s*+(?:\[\s*+\w{{1,10}}\s*+\]\s*+)?\{{\s*+(?:{_WHITE})\s*+\}}"
_INVISIBLE_PART = re.compile(
    rf"\\(?:(?:[hv]?phantom(?![A-Za-z])|text{_WHITE_COLOR})|(?P<rest>{_WHITE_COLOR}))\s*+", re.I
)
_BRACE = re.compile(r"\\(?s:.)|[{}]")


def strip_hidden_drawings(text: str, code_regions: Sequence[Region], removals: Counter[str]) -> str:
    """Return `text` without the invisible parts of its diagrams and formulas.

    `code_regions` holds the offsets of code blocks and code spans, in order. Removals are counted
    in `removals`.
    """
    if "$" in text:
        text = _strip_formulas(text, code_regions, removals)
    return _strip_fences(text, removals) if _DRAWN_FENCE.search(text) else text


def _strip_fences(text: str, removals: Counter[str]) -> str:
    lines = text.split("\n")
    for token in block_parser().parse(text):
        language = (token.info.split() or [""])[0].casefold() if token.type == "fence" else ""
        if language not in {"mermaid", "math"} or token.map is None:
            continue
        first, last = token.map[0] + 1, min(token.map[1], len(lines))
        end = lines[last - 1].strip(" \t>")
        last -= end.startswith(token.markup) and not end.strip(token.markup[0])
        if first >= last:
            continue
        block = "\n".join(lines[first:last])
        visible_block = (
            _strip_diagram(block, removals)
            if language == "mermaid"
            else _strip_formula(block, removals)
        )
        lines[first:last] = visible_block.split("\n")
    return "\n".join(lines)


def _strip_diagram(block: str, removals: Counter[str]) -> str:
    parts: list[str] = []
    position = 0
    while (start := block.find("%%{", position)) != -1:
        end = block.find("}%%", start)
        if end == -1:
            break
        removals[DIAGRAM] += 1
        parts += [block[position:start], "\n" * block.count("\n", start, end)]
        position = end + len("}%%")
    visible_block, comments = _DIAGRAM_COMMENT.subn(r"\1", "".join([*parts, block[position:]]))
    removals[DIAGRAM] += comments
    return visible_block


def _strip_formulas(text: str, code_regions: Sequence[Region], removals: Counter[str]) -> str:
    def strip_match(match: re.Match[str]) -> str:
        if region_at(code_regions, match.start()):
            return match[0]
        group = match.lastindex or 1
        begin, end = match.start(group) - match.start(), match.end(group) - match.start()
        return match[0][:begin] + _strip_formula(match[group], removals) + match[0][end:]

    for pattern in (_DISPLAYED, _BACKTICKED, _INLINE):
        changed = pattern.sub(strip_match, text)
        if changed != text:
            return changed  # offsets have changed; the other forms are left to the next pass
    return text


def _strip_formula(source: str, removals: Counter[str]) -> str:
    """Return the visible part of a formula.

    If removing a part keeps forming another one, nothing is left. The number of lines does not
    change, so that the offsets of the lines of a block stay valid.
    """
    for _ in range(_MAX_PASSES):
        previous, source = source, _strip_formula_once(source, removals)
        if source == previous:
            return source
    return "\n" * source.count("\n")


def _strip_formula_once(source: str, removals: Counter[str]) -> str:
    source, comments = _MATH_COMMENT.subn(r"\1", source)
    removals[MATH] += comments
    parts: list[str] = []
    position = 0
    while (invisible := _INVISIBLE_PART.search(source, position)) is not None:
        removals[MATH] += 1
        find_end = _end_of_enclosing_group if invisible["rest"] else _end_of_group
        end = find_end(source, invisible.end())
        parts += [
            source[position : invisible.start()],
            "\n" * source.count("\n", invisible.start(), end),
        ]
        position = end
    return "".join([*parts, source[position:]])


def _end_of_group(source: str, position: int) -> int:
    """Return the end of the argument at `position`: a group, a command or one character."""
    if not source.startswith("{", position):
        command = re.compile(r"\\[A-Za-z]+|\\.|.|\Z").match(source, position)
        return command.end() if command else position
    return min(_end_of_enclosing_group(source, position + 1) + 1, len(source))


def _end_of_enclosing_group(source: str, position: int) -> int:
    """Return the position of the brace that closes the current group, or the end of the source."""
    depth = 0
    for brace in _BRACE.finditer(source, position):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth < 0:
            return brace.start()
    return len(source)
