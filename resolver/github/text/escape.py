"""Making text of others inert in GitHub markdown: code spans, fences, single lines, titles.

Whole markdown written by a model goes through `resolver.github.text.safe_markdown` instead.
"""

import re
from collections.abc import Iterable

from resolver.github.text.invisible import without_invisible
from resolver.trace.markdown import fenced, inline_code

WORD_JOINER = "\u2060"
"""Zero-width; between `@` and a name nobody is notified, between `#` and a number nothing links."""

MAX_TITLE = 256
"""Characters GitHub takes as a title."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,20}")
# languages that GitHub draws, or offers to apply, instead of showing
_DRAWN = {"mermaid", "geojson", "topojson", "stl", "math", "suggestion"}

_URL = r"(?P<url>https?://[^\s<>`\"\\^{|}\[\]/?#][^\s<>`\"\\^{|}\[\]]*)"
_MENTION = r"(?P<mention>(?<![A-Za-z0-9])@[A-Za-z0-9][A-Za-z0-9-]*(?:/[A-Za-z0-9._-]+)?)"
_REFERENCE = (
    r"(?P<reference>(?:(?<![\w/])[A-Za-z0-9][\w.-]*(?:/[\w.-]+)?)?#\d+"
    r"|(?<![A-Za-z0-9])[Gg][Hh]-\d+)"
)
NOTIFYING = re.compile(f"{_URL}|{_MENTION}|{_REFERENCE}")
"""What GitHub turns into a link, a notification or a note on another issue."""

_LOUD = re.compile(r"[@#:]|^gh-(?=\d+\Z)", re.I)
"""Where it is broken: not at a hyphen before that, or the rest would still be one of these."""

_SKIPS = re.compile(r"\[(?=(?:(?:skip|no) [\w-]+|[\w-]+ skip)\])", re.I)
"""As `[skip ci]`: in a commit's message, or in a title that becomes one, it turns checks off."""

_FORGE_PATH = re.compile(r"/(?:issues|pull|pulls|discussions|commit|commits|compare)\b", re.I)
_ISSUE_PAGE = re.compile(r"/(?:issues|pull|pulls|discussions|commit|commits)/[0-9a-f]", re.I)
# a `!` before something that follows, maybe a link, would make it an image
_SPECIAL = re.compile(r"[\\`*\[\]~|$]|!\Z|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|[<>&]")
_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_LINE_START = re.compile(r"^(\s*)(?:([#=:+-])|(\d{1,9})([.)]))")


def visible(text: str) -> str:
    """Without terminal codes, control and invisible characters; line ends as newlines."""
    text = _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return without_invisible(text)


def code_span(text: str, *, in_table: bool = False) -> str:
    """`text` as inline code on one line; "" stays ""."""
    span = inline_code(visible(text))
    return span.replace("|", "\\|") if in_table else span


def fence(text: str, language: str = "") -> str:
    """`text` as a code block that nothing in it can end; no language that GitHub draws."""
    if not _LANGUAGE.fullmatch(language) or language.lower() in _DRAWN:
        language = "text" if language else ""
    return fenced(visible(text).rstrip("\n"), language)


def joined(parts: Iterable[str]) -> str:
    """The parts of a line in a row. Two code spans are kept apart: their backticks would make one
    mark, and what they hold would be no code any more."""
    line = ""
    for part in parts:
        line += f" {part}" if line.endswith("`") and part.startswith("`") else part
    return line


def escape(text: str, *, at_line_start: bool = False) -> str:
    """Plain characters that markdown and HTML leave alone. Doesn't silence mentions."""
    escaped = _SPECIAL.sub(lambda m: _ENTITIES.get(m[0], f"\\{m[0]}"), text)
    if at_line_start:
        escaped = _LINE_START.sub(
            lambda m: f"{m[1]}\\{m[2]}" if m[2] else f"{m[1]}{m[3]}\\{m[4]}", escaped
        )
    return escaped


def links_to_forge(url: str) -> bool:
    """True when GitHub may note the link on another issue, pull request or commit."""
    return bool(_FORGE_PATH.search(url))


def inert(text: str, *, own_issue: int | None = None, at_line_start: bool = False) -> str:
    """Plain text as markdown that notifies nobody and links no other issue.

    Mentions, references and addresses of issues become code; `own_issue` may stay a reference.
    """
    parts: list[str] = []
    # what follows code starts anew for GitHub, so the rest is looked at by itself
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
    """`text` on one inert line of at most about `limit` characters; `code` stays code."""
    line = shorten_text(" ".join(visible(text).split()), limit)
    parts = _CODE.split(line)
    return joined(
        code_span(part) if index % 2 else inert(part, at_line_start=index == 0)
        for index, part in enumerate(parts)
    )


def shorten_text(text: str, limit: int) -> str:
    """The first `limit` characters, with an ellipsis when something was cut."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def quieted(text: str, *, own_issue: int | None = None) -> str:
    """Markdown that stays as it looks and notifies nobody: mentions, references to other issues
    and links to them are broken with a zero-width character."""

    def broken(found: re.Match[str]) -> str:
        url = found["url"]
        if found["reference"] == f"#{own_issue}" or (url and not _ISSUE_PAGE.search(url)):
            return found[0]
        return _LOUD.sub(rf"\g<0>{WORD_JOINER}", found[0], count=1)

    return NOTIFYING.sub(broken, _SKIPS.sub(f"[{WORD_JOINER}", text))


def title(text: str, *, own_issue: int | None = None) -> str:
    """One line for a title, 1 to 256 characters; it may become a commit message, so mentions and
    references to other issues are broken with a zero-width character."""

    def broken(found: re.Match[str]) -> str:
        if found[0] == f"#{own_issue}":
            return found[0]
        return _LOUD.sub(rf"\g<0>{WORD_JOINER}", found[0], count=1)

    line = " ".join(visible(text).split())
    for loud in (r"https?://", _MENTION, _REFERENCE):
        line = re.sub(loud, broken, line)
    line = _SKIPS.sub(f"[{WORD_JOINER}", line)
    return shorten_text(line, MAX_TITLE) or "Change"
