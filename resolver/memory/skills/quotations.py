"""Removes from a text what its author pasted rather than wrote: code, quotations, logs, tracebacks,
version listings, and file paths of somebody's machine."""

import re
from functools import cache
from typing import Final

from markdown_it import MarkdownIt

MAX_LINE: Final = 400
"""Maximum characters of a line that are examined: the patterns below may backtrack."""

_BLOCKS: Final = frozenset({"fence", "code_block", "blockquote_open"})

_NAME: Final = r"[\w.+-]+(?:\s+version)?"
_VERSION: Final = r"v?\d+(?:\.\d+)+[\w.+-]*"
_LISTED: Final = re.compile(rf"\W*{_NAME}(?:==|\s*[:=]\s*|\s+|[@-]){_VERSION}\W*")
"""A line that consists of a name and its version, as in `pip list` or issue forms."""

_LISTED_TWICE: Final = re.compile(
    rf"\b[\w.+]+(?:==|[@-]){_VERSION}.*\b[\w.+]+(?:==|[@-]){_VERSION}"
)
"""Several names with versions, as in the first lines of a test run (program and plugins)."""

_LOGGED: Final = re.compile(
    r"\s*(?:"
    r"\[?\d{4}-\d\d-\d\d[T ]\d|\[?\d\d:\d\d:\d\d|"
    r"\[(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR)\]|(?:TRACE|DEBUG|INFO|WARNING|ERROR)[: ]|"
    r"Traceback \(most recent|File \".*\", line \d|at \S+\(.*\)\s*$|"
    r"\$ |>>> |\.\.\. |platform \w+ -- |plugins: |E {2,}"
    r")"
)
_FRAME: Final = re.compile(r"\s*File \".*\", line \d")
"""A frame of a Python traceback; the line after it is source code."""

_ODD_LINE_END: Final = re.compile(r"[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")

_MACHINE_PATH: Final = re.compile(
    r"(?<![\w.:/\\-])(?:~|[A-Za-z]:)?[/\\](?:[\w.+@~-]+[/\\])+[\w.+@~-]*"
)


def remove_quotations(text: str) -> str:
    """Return the text with pasted parts replaced by spaces. Line breaks and code spans in prose
    are kept."""
    # `splitlines` splits at more characters than the parser, whose line numbers are used below
    text = _ODD_LINE_END.sub(" ", text)
    lines = text.splitlines(keepends=True)
    quoted = _quoted_lines(text)
    frame = False
    for number, line in enumerate(lines):
        words = line.rstrip("\r\n")
        if number in quoted or frame or _is_pasted(words):
            lines[number] = " " * len(words) + line[len(words) :]
        frame = _FRAME.match(words) is not None
    return _MACHINE_PATH.sub(lambda found: " " * len(found[0]), "".join(lines))


def _is_pasted(line: str) -> bool:
    line = line[:MAX_LINE]
    return (
        _LISTED.fullmatch(line) is not None
        or _LOGGED.match(line) is not None
        or _LISTED_TWICE.search(line) is not None
    )


def _quoted_lines(text: str) -> set[int]:
    """Return the numbers of lines in code blocks and quotations, as CommonMark defines them."""
    found: set[int] = set()
    for token in _parser().parse(text):
        if token.type in _BLOCKS and token.map:
            found.update(range(*token.map))
    return found


@cache
def _parser() -> MarkdownIt:
    # block structure is all that is needed, so inline parsing is switched off
    return MarkdownIt("commonmark").disable(["inline", "text_join"])
