"""Removes the invisible parts of diagrams and formulas, which GitHub renders instead of showing.

These are comments, directives, and text that is transparent or in the color of the page.

Source: https://docs.github.com/en/get-started/writing-on-github/working-with-advanced-formatting
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from resolver.github.text.markdown import block_parser

DIAGRAM = "diagram comment"
MATH = "hidden formula part"

_ROUNDS = 8

_DRAWN = re.compile(r"(?i)(?:```|~~~)[ \t]*(?:mermaid|math)")
_DIAGRAM_COMMENT = re.compile(r"^([ \t>]*)%%.*$", re.M)

_DISPLAYED = re.compile(r"\$\$((?:[^$\\\n]|\\(?s:.)|\n(?![ \t]*\n)|\$(?!\$)){1,5000}?)\$\$")
_INLINE = re.compile(r"(?<![\w$\\])\$(?![\s$`])((?:[^$\\\n]|\\.){1,2000})(?<!\s)\$(?![\w$])")
_TICKED = re.compile(r"(?<![\w$\\])\$`([^`]{1,5000})`\$(?![\w$])")

_MATH_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%[^\n]+")
_WHITE = r"white|transparent|\#?f{3}(?:f{3})?|(?:255\s*+,\s*+){2}255|(?:1\s*+,\s*+){2}1"
_IN_WHITE = rf"color\s*+(?:\[\s*+\w{{1,10}}\s*+\]\s*+)?\{{\s*+(?:{_WHITE})\s*+\}}"
_UNSEEN = re.compile(
    rf"\\(?:(?:[hv]?phantom(?![A-Za-z])|text{_IN_WHITE})|(?P<rest>{_IN_WHITE}))\s*+", re.I
)
_BRACE = re.compile(r"\\(?s:.)|[{}]")

Region = tuple[int, int]


def strip_drawn(text: str, code: Sequence[Region], found: Counter[str]) -> str:
    """Return `text` without the invisible parts of its diagrams and formulas.

    `code` holds the offsets of code blocks and code spans, in order. Removals are counted in
    `found`.
    """
    if "$" in text:
        text = _in_formulas(text, code, found)
    return _in_blocks(text, found) if _DRAWN.search(text) else text


def _in_blocks(text: str, found: Counter[str]) -> str:
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
        shown = _diagram(block, found) if language == "mermaid" else _formula(block, found)
        lines[first:last] = shown.split("\n")
    return "\n".join(lines)


def _diagram(block: str, found: Counter[str]) -> str:
    kept: list[str] = []
    position = 0
    while (start := block.find("%%{", position)) != -1:
        end = block.find("}%%", start)
        if end == -1:
            break
        found[DIAGRAM] += 1
        kept += [block[position:start], "\n" * block.count("\n", start, end)]
        position = end + len("}%%")
    shown, comments = _DIAGRAM_COMMENT.subn(r"\1", "".join([*kept, block[position:]]))
    found[DIAGRAM] += comments
    return shown


def _in_formulas(text: str, code: Sequence[Region], found: Counter[str]) -> str:
    starts = [region[0] for region in code]

    def shown(match: re.Match[str]) -> str:
        inside = bisect_right(starts, match.start()) - 1
        if inside >= 0 and match.start() < code[inside][1]:
            return match[0]
        last = match.lastindex or 1
        begin, end = match.start(last) - match.start(), match.end(last) - match.start()
        return match[0][:begin] + _formula(match[last], found) + match[0][end:]

    for formula in (_DISPLAYED, _TICKED, _INLINE):
        changed = formula.sub(shown, text)
        if changed != text:
            return changed  # offsets have changed; the other forms are left to the next pass
    return text


def _formula(source: str, found: Counter[str]) -> str:
    """Return the visible part of a formula.

    If removing a part keeps forming another one, nothing is left. The number of lines does not
    change, so that the offsets of the lines of a block stay valid.
    """
    for _ in range(_ROUNDS):
        before, source = source, _seen_of(source, found)
        if source == before:
            return source
    return "\n" * source.count("\n")


def _seen_of(source: str, found: Counter[str]) -> str:
    source, comments = _MATH_COMMENT.subn(r"\1", source)
    found[MATH] += comments
    kept: list[str] = []
    position = 0
    while (unseen := _UNSEEN.search(source, position)) is not None:
        found[MATH] += 1
        ends = _end_of_rest if unseen["rest"] else _end_of_group
        end = ends(source, unseen.end())
        kept += [source[position : unseen.start()], "\n" * source.count("\n", unseen.start(), end)]
        position = end
    return "".join([*kept, source[position:]])


def _end_of_group(source: str, position: int) -> int:
    """Return the end of the argument at `position`: a group, a command or one character."""
    if not source.startswith("{", position):
        command = re.compile(r"\\[A-Za-z]+|\\.|.|\Z").match(source, position)
        return command.end() if command else position
    return min(_end_of_rest(source, position + 1) + 1, len(source))


def _end_of_rest(source: str, position: int) -> int:
    """Return the position of the brace that closes the current group, or the end of the source."""
    depth = 0
    for brace in _BRACE.finditer(source, position):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth < 0:
            return brace.start()
    return len(source)
