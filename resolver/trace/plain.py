"""Makes text from outside safe to display: no terminal control, no runner commands, limited length.

Every renderer passes its texts through `clean`. markdown.py handles what is specific to markdown,
and the HTML template escapes HTML.
"""

import math
import re
from collections.abc import Sequence

from resolver.security.invisible_text import INVISIBLE, TERMINAL_SEQUENCE, with_invisible_shown

_SEQUENCE = re.compile(TERMINAL_SEQUENCE)
# The joiners and variation selectors are kept, because emoji and some scripts need them.
_NOT_SHOWN = re.compile(rf"{TERMINAL_SEQUENCE}|(?![\u200c\u200d\ufe00-\ufe0f])[{INVISIBLE}]")
_LINE_END = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORKFLOW_COMMAND = re.compile(r"^([^\S\n]*:)(?=:)", re.MULTILINE)
_ZERO_WIDTH = "\u200b"


def clean(text: str) -> str:
    """Return `text` without ANSI sequences and control, bidi or invisible characters.

    All line ends become LF. A lone carriage return becomes one too, so that text which a terminal
    would have overwritten is shown.
    """
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text  # as most texts are, and the expressions below are slow
    return _NOT_SHOWN.sub("", _SURROGATE.sub("\ufffd", _LINE_END.sub("\n", text)))


def clean_diff(text: str) -> str:
    """Return a diff cleaned, with the invisible characters of its lines as `[U+202E]`."""
    without_sequences = _SEQUENCE.sub("", _LINE_END.sub("\n", text))
    return clean(with_invisible_shown(without_sequences))


def one_line(text: str, limit: int = 100) -> str:
    """Return the first non-blank line of the cleaned text, truncated to `limit` characters."""
    beginning = clean(text[: 50 * limit]).strip()
    line = " ".join(beginning.partition("\n")[0].split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def for_terminal(text: str) -> str:
    """Return the cleaned text so that GitHub's runner does not interpret it as workflow commands.

    The runner recognizes `::name::` after leading white space, and `##[name]` anywhere in a line.
    """
    text = _WORKFLOW_COMMAND.sub(r"\1" + _ZERO_WIDTH, clean(text))
    return text.replace("##[", f"#{_ZERO_WIDTH}#[")


def duration(seconds: float) -> str:
    """Format seconds for a person: `30 ms`, `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`."""
    if not math.isfinite(seconds) or seconds < 0:
        return "unknown"
    if seconds < 0.1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60} s"
    return f"{rounded // 3600} h {rounded % 3600 // 60} min"


def money(cost: float | None) -> str:
    """Format US dollars: two decimals, up to four below one dollar; "unknown" without a price."""
    if cost is None or not math.isfinite(cost):
        return "unknown"
    if cost >= 0.995 or cost == 0:
        return f"${cost:.2f}"
    digits = f"{cost:.4f}"
    return f"${digits[:-2]}{digits[-2:].rstrip('0')}"


def plural(count: int, noun: str, many: str | None = None) -> str:
    """Format a count with its noun: `1 step`, `1,200 steps`. many: a plural without `s`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {many or f'{noun}s'}"


def relative_command(text: str, roots: Sequence[str]) -> str:
    """Return a command or a path as it would be written at the repository's root: without an
    initial `cd` into the repository, and with paths below it made relative.

    roots: paths of the repository in the sandboxes, which mean nothing to a reader.

    The result is for display only. If the shell was in another directory, it is another command.
    """
    for root in roots:
        relative = re.escape(root.rstrip("/"))
        if not relative:
            continue
        text = re.sub(rf"\A\s*cd\s+(['\"]?){relative}/?\1\s*(?:&&|;|\n)\s*(?=\S)", "", text)
        text = re.sub(rf"(?<![\w./-]){relative}/(?=[\w.*-])", "", text)
        text = re.sub(rf"(?<![\w./-]){relative}/?(?![\w./-])", ".", text)
    return text
