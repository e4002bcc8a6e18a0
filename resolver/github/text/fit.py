"""Shortens a long trace to fit into a comment: whole blocks from its start and end, tags closed.

Sizes are in UTF-16 units. GitHub's limit is 65,536 characters, and a text never has more characters
than units.
"""

import re

from resolver.github.text.escape import fence
from resolver.github.text.markdown import markdown_parser
from resolver.trace.markdown import utf16_length

MAX_BODY = 65_536
"""Maximum length of the body of an issue, pull request or comment on GitHub, in characters."""

_PARSED = 200_000
"""Number of characters of a longer trace that are used."""

_CHECKED = 2_000

_SENTINEL = "end-of-the-trace"
_OPEN = re.compile(r"<details\b", re.I)
_CLOSE = re.compile(r"</details\s*>", re.I)


def fit(markdown: str, limit: int) -> str:
    """Return `markdown` shortened to `limit` UTF-16 units, "" if that is impossible.

    The first and last blocks are kept whole, with a line between them that says how much was left
    out. A block that is too long becomes a code block with its start and end; if the text would
    leave a construct open, all of it becomes a code block.
    """
    if utf16_length(markdown) <= limit and is_closed(markdown):
        return markdown
    units = _units(markdown[:_PARSED])
    # Checking every unit is slow if there are many, and rarely necessary.
    for check in (False, True) if len(units) <= _CHECKED else (False,):
        short = [_cut_unit(unit, max(200, limit // 4), check=check) for unit in units]
        chosen = _both_ends(short, limit - 200, cut=len(markdown) > _PARSED)
        if utf16_length(chosen) <= limit and is_closed(chosen):
            return chosen
    chosen = _as_code(markdown, limit)
    return chosen if utf16_length(chosen) <= limit else ""


def is_closed(markdown: str) -> bool:
    """Return True if text after `markdown` would be a paragraph outside of all constructs."""
    tokens = markdown_parser().parse(f"{markdown}\n\n{_SENTINEL}\n")
    if len(tokens) < 3 or tokens[-3].type != "paragraph_open" or tokens[-3].level != 0:
        return False
    html = "".join(t.content for t in tokens if t.type == "html_block")
    return tokens[-2].content == _SENTINEL and _depth(html) == 0


def _depth(html: str) -> int:
    return len(_OPEN.findall(html)) - len(_CLOSE.findall(html))


def _units(markdown: str) -> list[str]:
    """Return the top-level blocks; everything from a <details> to its end is one unit."""
    lines = markdown.split("\n")
    units: list[str] = []
    start = depth = 0
    for token in markdown_parser().parse(markdown):
        if token.level != 0 or token.map is None:
            continue
        if token.type == "html_block":
            depth += _depth(token.content)
        if depth <= 0:
            units.append("\n".join(lines[start : token.map[1]]).strip("\n"))
            start, depth = token.map[1], 0
    rest = "\n".join(lines[start:]).strip("\n")
    return [unit for unit in [*units, rest] if unit]


def _cut_unit(unit: str, limit: int, *, check: bool) -> str:
    if utf16_length(unit) <= limit and (not check or is_closed(unit)):
        return unit
    return _as_code(unit, limit)


def _as_code(text: str, limit: int) -> str:
    budget = max(40, limit - 120)
    while True:
        half = budget // 2
        if len(text) <= budget:
            block = fence(text)
        else:
            left_out = len(text) - 2 * half
            block = fence(
                f"{text[:half]}\n[... {left_out} characters left out ...]\n{text[-half:]}"
            )
        if utf16_length(block) <= limit or budget <= 40:
            return block
        budget = max(40, budget * limit // utf16_length(block) - 10)


def _both_ends(units: list[str], limit: int, *, cut: bool) -> str:
    """Return as many whole units as fit: two thirds from the start, the rest from the end."""
    sizes = [utf16_length(unit) + 2 for unit in units]
    room = limit * 2 // 3 if cut or sum(sizes) > limit else limit
    head = used = 0
    while head < len(units) and used + sizes[head] <= room:
        used += sizes[head]
        head += 1
    tail = len(units)
    while not cut and tail > head and used + sizes[tail - 1] <= limit:
        tail -= 1
        used += sizes[tail]
    middle = []
    if cut:
        middle = ["*(the rest is left out here)*"]
    elif tail > head:
        middle = [f"*({tail - head} parts left out here)*"]
    return "\n\n".join([*units[:head], *middle, *units[tail:]])
