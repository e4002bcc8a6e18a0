"""Renders what the agent wrote as Markdown in which only code, bold text and lists have an effect.

Everything else is made inert, as `prose` in markdown.py does: tags, links, mentions, references.
"""

import re
from collections.abc import Callable, Iterator, Sequence

# `x` next to a dollar sign is a formula on GitHub.
_CODE_SPAN = re.compile(r"(?<![`$])`([^`\n]{1,500})`(?![`$])")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ ]*([A-Za-z0-9+#-]{0,20})[ ]*$")
_PLACE = re.compile("\ue000([0-9]+)\ue001")
# Bold text and bullets, as `prose` escapes them.
_BOLD = re.compile(r"\\\*\\\*(?=[^\s\\*])([^\n*\\]{1,300}[^\s\\*])\\\*\\\*")
_BULLET = re.compile("^(?:-\\\\|\\\\-|\\\\\\*) (?=[A-Za-z\ue000])", re.MULTILINE)


def quote_markdown(
    text: str,
    prose: Callable[[str], str],
    inline_code: Callable[[str], str],
    fenced: Callable[[str, str], str],
) -> str:
    """Return `text` in a block quote that keeps its lines; empty for empty text.

    prose, inline_code, fenced: make text inert, or code of it, as the functions of markdown.py do.
    """
    quoted: list[str] = []
    for part, language in _split_fences(text.split("\n")):
        if language is None:
            lines = _escape_text("\n".join(part), prose, inline_code).split("\n")
            # Two trailing spaces keep a line break in a file; in a comment GitHub keeps it anyway.
            quoted += [f"> {line}  " if line else ">" for line in lines]
        else:
            code = fenced("\n".join(part), language).split("\n")
            quoted += [">", *(f"> {line}".rstrip() for line in code), ">"]
    return "\n".join(quoted) if text else ""


def _escape_text(text: str, prose: Callable[[str], str], inline_code: Callable[[str], str]) -> str:
    # Two private characters stand for the code while the text between it is escaped.
    text = text.replace("\ue000", "\ufffd").replace("\ue001", "\ufffd")
    spans = [match[1] for match in _CODE_SPAN.finditer(text) if match[1].strip()]
    numbers = iter(range(len(spans)))
    escaped = prose(_CODE_SPAN.sub(lambda match: _place(match, numbers), text))
    escaped = _BULLET.sub("- ", _BOLD.sub(r"**\1**", escaped))
    return _PLACE.sub(lambda match: inline_code(spans[int(match[1])]), escaped)


def _place(match: re.Match[str], numbers: Iterator[int]) -> str:
    return f"\ue000{next(numbers)}\ue001" if match[1].strip() else match[0]


def _split_fences(lines: Sequence[str]) -> list[tuple[list[str], str | None]]:
    """Divide lines into text and fenced code, with the code's language; None for text.

    A fence that is not closed is text.
    """
    parts: list[tuple[list[str], str | None]] = []
    rest: list[str] = []
    last_closing = _last_fences(lines)
    index = 0
    while index < len(lines):
        opening = _FENCE.match(lines[index])
        if opening and last_closing.get(opening[1], -1) > index:
            end = next(i for i in range(index + 1, len(lines)) if lines[i].strip() == opening[1])
            parts += [(rest, None)] if rest else []
            parts.append((list(lines[index + 1 : end]), opening[2]))
            rest, index = [], end + 1
        else:
            rest.append(lines[index])
            index += 1
    return [*parts, (rest, None)] if rest else parts


def _last_fences(lines: Sequence[str]) -> dict[str, int]:
    """Return the last line that closes a fence, by the fence's mark."""
    return {
        match[1]: index
        for index, line in enumerate(lines)
        if (match := _FENCE.match(line)) and not match[2]
    }
