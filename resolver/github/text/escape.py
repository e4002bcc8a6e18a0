"""Escapes text from others for GitHub markdown: code spans, fences, single lines and titles.

Whole markdown documents by a model go through `resolver.github.text.safe_markdown` instead.
"""

import re
from collections.abc import Iterable

from resolver.github.text.invisible import without_invisible
from resolver.trace.markdown import fenced, inline_code

WORD_JOINER = "\u2060"
"""A zero-width character that breaks a mention after `@`, and a reference after `#`."""

MAX_TITLE = 256
"""Maximum length of a title on GitHub, in characters."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,20}")
# Languages that GitHub renders, or offers to apply, instead of showing the code.
_DRAWN = {"mermaid", "geojson", "topojson", "stl", "math", "suggestion"}

_URL = r"(?P<url>https?://[^\s<>`\"\\^{|}\[\]/?#][^\s<>`\"\\^{|}\[\]]*)"
_MENTION = r"(?P<mention>(?<![A-Za-z0-9])@[A-Za-z0-9][A-Za-z0-9-]*(?:/[A-Za-z0-9._-]+)?)"
_REFERENCE = (
    r"(?P<reference>(?:(?<![\w/])[A-Za-z0-9][\w.-]*(?:/[\w.-]+)?)?#\d+"
    r"|(?<![A-Za-z0-9])[Gg][Hh]-\d+)"
)
NOTIFYING = re.compile(f"{_URL}|{_MENTION}|{_REFERENCE}")
"""Text that GitHub turns into a link, a notification or an event on another issue."""

_LOUD = re.compile(r"[@#:]|^gh-(?=\d+\Z)", re.I)
"""The position at which such text is broken.

Breaking at an earlier hyphen would leave a rest that still matches.
"""

_SKIPS = re.compile(r"\[(?=(?:(?:skip|no) [\w-]+|[\w-]+ skip)\])", re.I)
"""Markers such as `[skip ci]`, which disable checks.

They work in a commit message, and so in a title that becomes one.
"""

_FORGE_PATH = re.compile(r"/(?:issues|pull|pulls|discussions|commit|commits|compare)\b", re.I)
_ISSUE_PAGE = re.compile(r"/(?:issues|pull|pulls|discussions|commit|commits)/[0-9a-f]", re.I)
# An exclamation mark before a link would turn it into an image.
_SPECIAL = re.compile(r"[\\`*\[\]~|$]|!\Z|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|[<>&]")
_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_LINE_START = re.compile(r"^(\s*)(?:([#=:+-])|(\d{1,9})([.)]))")


def visible(text: str) -> str:
    """Return the text without terminal codes, control characters and invisible characters.

    All line ends become newlines.
    """
    text = _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return without_invisible(text)


def code_span(text: str, *, in_table: bool = False) -> str:
    """Return `text` as inline code on one line, or "" if it is empty."""
    span = inline_code(visible(text))
    return span.replace("|", "\\|") if in_table else span


def fence(text: str, language: str = "") -> str:
    """Return `text` as a code block that nothing in it can close.

    Languages that GitHub renders are replaced by "text".
    """
    if not _LANGUAGE.fullmatch(language) or language.lower() in _DRAWN:
        language = "text" if language else ""
    return fenced(visible(text).rstrip("\n"), language)


def joined(parts: Iterable[str]) -> str:
    """Join the parts of a line, with a space between two code spans.

    Without it their backticks would join into one delimiter, and their content would no longer be
    code.
    """
    line = ""
    for part in parts:
        line += f" {part}" if line.endswith("`") and part.startswith("`") else part
    return line


def escape(text: str, *, at_line_start: bool = False) -> str:
    """Escape characters that are special in markdown or HTML. Mentions still notify people."""
    escaped = _SPECIAL.sub(lambda m: _ENTITIES.get(m[0], f"\\{m[0]}"), text)
    if at_line_start:
        escaped = _LINE_START.sub(
            lambda m: f"{m[1]}\\{m[2]}" if m[2] else f"{m[1]}{m[3]}\\{m[4]}", escaped
        )
    return escaped


def links_to_forge(url: str) -> bool:
    """Return True if GitHub may report the link on another issue, pull request or commit."""
    return bool(_FORGE_PATH.search(url))


def inert(text: str, *, own_issue: int | None = None, at_line_start: bool = False) -> str:
    """Return plain text as markdown that notifies nobody and references no other issue.

    Mentions, references and URLs of issues become code; a reference to `own_issue` is kept.
    """
    parts: list[str] = []
    # A code span ends the context of what precedes it, so the rest is searched on its own.
    while found := NOTIFYING.search(text):
        before = text[: found.start()]
        parts.append(escape(before, at_line_start=at_line_start and not parts))
        parts.append(_silenced(found, own_issue))
        text = text[found.end() :]
    parts.append(escape(text, at_line_start=at_line_start and not parts))
    return joined(parts)


def _silenced(found: re.Match[str], own_issue: int | None) -> str:
    url = found["url"]
    if url is None:
        own = found["reference"] == f"#{own_issue}"
        return found[0] if own else code_span(found[0])
    end = url.rstrip(".,;:!?'*_~)")
    rest = escape(url[len(end) :])
    if "@" in end or links_to_forge(end):
        return code_span(end) + rest
    return f"<{end}>{rest}"


def single_line(text: str, limit: int = 200) -> str:
    """Return `text` as one escaped line of at most about `limit` characters.

    Inline code is kept.
    """
    line = shorten_text(" ".join(visible(text).split()), limit)
    parts = _CODE.split(line)
    return joined(
        code_span(part) if index % 2 else inert(part, at_line_start=index == 0)
        for index, part in enumerate(parts)
    )


def shorten_text(text: str, limit: int) -> str:
    """Return the first `limit` characters, with an ellipsis if the text was shortened."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def quieted(text: str, *, own_issue: int | None = None) -> str:
    """Return markdown that looks the same but notifies nobody.

    Mentions, references to other issues and links to issues are broken with a zero-width character.
    """

    def broken(found: re.Match[str]) -> str:
        url = found["url"]
        if found["reference"] == f"#{own_issue}" or (url and not _ISSUE_PAGE.search(url)):
            return found[0]
        return _LOUD.sub(rf"\g<0>{WORD_JOINER}", found[0], count=1)

    return NOTIFYING.sub(broken, _SKIPS.sub(f"[{WORD_JOINER}", text))


def title(text: str, *, own_issue: int | None = None) -> str:
    """Return one line for a title, 1 to 256 characters.

    A title may become a commit message, so mentions and references to other issues are broken with
    a zero-width character.
    """

    def broken(found: re.Match[str]) -> str:
        if found[0] == f"#{own_issue}":
            return found[0]
        return _LOUD.sub(rf"\g<0>{WORD_JOINER}", found[0], count=1)

    line = " ".join(visible(text).split())
    for loud in (r"https?://", _MENTION, _REFERENCE):
        line = re.sub(loud, broken, line)
    line = _SKIPS.sub(f"[{WORD_JOINER}", line)
    return shorten_text(line, MAX_TITLE) or "Change"
