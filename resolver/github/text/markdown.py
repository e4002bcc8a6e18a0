"""GitHub's markdown: its parsers, and escaping of text from others for code, lines and titles.

The parsers are CommonMark with the extensions of GitHub that matter here. Invisible characters are
removed, except zero-width joiners and the emoji variation selector where an emoji needs them. Whole
markdown documents by a model go through `resolver.github.text.comment_markdown` instead.

Commands to other bots are made inert. Bots such as Prow, bors, Dependabot and ChatOps actions carry
out what a line of a comment, a pull request or a commit message begins with, in code blocks too. A
model's text must not command them in Resolver's name. Source:
https://docs.prow.k8s.io/docs/components/plugins/, https://docs.github.com/en/code-security/dependabot
"""

import re
from collections.abc import Iterable
from functools import cache
from urllib.parse import urlsplit

from markdown_it import MarkdownIt

from resolver.security.invisible_text import without_invisible
from resolver.trace.untrusted_text import fenced, inline_code

WORD_JOINER = "\u2060"
"""A zero-width character that breaks a command after its first character."""

_BOTS = (
    "bors|claude|codecov|coderabbitai|codex|copilot|cursor|dependabot|github-actions|gemini-cli"
    "|greptileai|homu|k8s-ci-robot|mergify|mergifyio|pre-commit-ci|renovate|renovatebot|rustbot"
    "|sourcery-ai|sweep-ai"
)
_COMMAND = re.compile(
    r"^(?P<lead>(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*)"
    r"(?:"
    r"(?P<sign>[/!])(?=[a-z][a-z0-9_-]{1,40}(?:[ \t=]|$))"
    rf"|(?P<at>@)(?=(?:{_BOTS})(?:\[bot\])?(?:[ \t:,]|$))"
    r"|(?P<word>[bort])(?=(?<=b)ors:?[ \t]+[a-z]|(?<=o)k[ \t]to[ \t]test\b"
    r"|(?<=r)e(?:test[ \t]this|check$)|(?<=t)est[ \t]this[ \t]please)"
    r")",
    re.IGNORECASE | re.MULTILINE,
)


def without_bot_commands(text: str) -> str:
    """Return text that looks the same and in which no line begins with a command to a bot.

    The function is idempotent and takes linear time.
    """
    return _COMMAND.sub(rf"\g<0>{WORD_JOINER}", text)


@cache
def markdown_parser() -> MarkdownIt:
    """Return a parser for tables and strikethrough too. Link tokens keep their label."""
    return MarkdownIt("commonmark", {"store_labels": True}).enable(["table", "strikethrough"])


@cache
def block_parser() -> MarkdownIt:
    """Return a parser for blocks only. It does not parse the content of lines."""
    parser = MarkdownIt("commonmark").enable("table")
    return parser.disable(["inline", "text_join"])


MAX_TITLE = 256
"""Maximum length of a title on GitHub, in characters."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,20}")
# Languages that GitHub renders, or offers to apply, instead of showing the code.
_RENDERED_LANGUAGES = {"mermaid", "geojson", "topojson", "stl", "math", "suggestion"}

_URL = (
    r"(?P<url>(?:https?://|(?<![A-Za-z0-9])[wW]{3}\.)[^\s<>`\"\\^{|}\[\]/?#][^\s<>`\"\\^{|}\[\]]*)"
)
_MENTION = r"(?P<mention>(?<![A-Za-z0-9])@[A-Za-z0-9][A-Za-z0-9-]*(?:/[A-Za-z0-9._-]+)?)"
# Names of accounts and repositories have at most 100 characters. Without these limits, text such as
# `a.a.a.` would be read to its end from each of its dots.
_REFERENCE = (
    r"(?P<reference>(?:(?<![\w/])[A-Za-z0-9][\w.-]{0,99}(?:/[\w.-]{1,100})?)?#\d+"
    r"|(?<![A-Za-z0-9])[Gg][Hh]-\d+)"
)
_COMMIT = (
    r"(?P<commit>(?<![\w/.-])[A-Za-z0-9][\w.-]{0,99}(?:/[\w.-]{1,100})?@[0-9a-fA-F]{7,40}\b"
    r"|(?<!\w)[0-9a-fA-F]{40}(?!\w))"
)
NOTIFYING = re.compile(f"{_URL}|{_COMMIT}|{_MENTION}|{_REFERENCE}")
"""Text that GitHub turns into a link, a notification or an event on another issue."""

_BREAK_POSITION = re.compile(
    r"^(?:[\w./-]+@)?[0-9a-f]{3}(?=[0-9a-f]{4,37}\Z)|[@#:]|\bgh-(?=\d)", re.I
)
"""The positions at which such text is broken.

There are several in `GH-3#1`, either part of which is a reference. Breaking at an earlier hyphen
would leave a rest that still matches.
"""

_SKIP_MARKER = re.compile(r"\[(?=(?:(?:skip|no) [\w-]+|[\w-]+ skip)\])", re.I)
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


def fence(text: str, language: str | None = None) -> str:
    """Return `text` as a code block that nothing in it can close.

    Languages that GitHub renders are replaced by "text".
    """
    if language and (not _LANGUAGE.fullmatch(language) or language.lower() in _RENDERED_LANGUAGES):
        language = "text"
    return fenced(without_bot_commands(visible(text).rstrip("\n")), language)


def join_line_parts(parts: Iterable[str]) -> str:
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


def may_be_linked(url: str, forge_host: str | None) -> bool:
    """Return True if a model's text may link to the URL.

    Only pages of the repository's own forge are linked, and only without a query: other links may
    lead anywhere, and carry data there.
    """
    try:
        parts = urlsplit(url)
        host = parts.netloc
    except ValueError:
        return False
    if parts.scheme not in {"http", "https"} or not forge_host or host != forge_host:
        return False
    is_plain = not parts.query and not any(character in url for character in "@<>\n \t")
    # GitHub may report a link to one of these pages on another issue, pull request or commit.
    return is_plain and not _FORGE_PATH.search(url)


def make_inert(
    text: str,
    *,
    own_issue: int | None = None,
    at_line_start: bool = False,
    forge_host: str | None = None,
) -> str:
    """Return plain text as markdown that notifies nobody and references no other issue.

    Mentions, references, commits and URLs become code. A reference to `own_issue` is kept, and so
    is a link to `forge_host`, the host of the repository, unless it is an issue's.
    """
    parts: list[str] = []
    # A code span ends the context of what precedes it, so the rest is searched on its own.
    while match := NOTIFYING.search(text):
        before = text[: match.start()]
        parts.append(escape(before, at_line_start=at_line_start and not parts))
        parts.append(_neutralize_match(match, own_issue, forge_host))
        text = text[match.end() :]
    parts.append(escape(text, at_line_start=at_line_start and not parts))
    return join_line_parts(parts)


def _neutralize_match(match: re.Match[str], own_issue: int | None, forge_host: str | None) -> str:
    url = match["url"]
    if url is None:
        is_own_issue = match["reference"] == f"#{own_issue}"
        return match[0] if is_own_issue else code_span(match[0])
    trimmed_url = url.rstrip(".,;:!?'*_~)")
    trailing = escape(url[len(trimmed_url) :])
    if not may_be_linked(trimmed_url, forge_host):
        return code_span(trimmed_url) + trailing
    return f"<{trimmed_url}>{trailing}"


def single_line(text: str, limit: int = 200) -> str:
    """Return `text` as one escaped line of at most about `limit` characters.

    Inline code is kept.
    """
    line = shorten_text(" ".join(visible(text).split()), limit)
    parts = _CODE.split(line)
    escaped = join_line_parts(
        code_span(part) if index % 2 else make_inert(part, at_line_start=index == 0)
        for index, part in enumerate(parts)
    )
    return without_bot_commands(escaped)


def shorten_text(text: str, limit: int) -> str:
    """Return the first `limit` characters, with an ellipsis if the text was shortened."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…" if limit > 0 else ""


def without_notifications(text: str, *, own_issue: int | None = None) -> str:
    """Return markdown that looks the same but notifies nobody.

    Mentions, references to other issues and links to issues are broken with a zero-width character.
    """

    def break_match(match: re.Match[str]) -> str:
        url = match["url"]
        is_kept = match["reference"] == f"#{own_issue}" or (url and not _ISSUE_PAGE.search(url))
        return match[0] if is_kept else _break(match)

    quiet = NOTIFYING.sub(break_match, _SKIP_MARKER.sub(f"[{WORD_JOINER}", text))
    return without_bot_commands(quiet)


def _break(match: re.Match[str]) -> str:
    return _BREAK_POSITION.sub(rf"\g<0>{WORD_JOINER}", match[0])


def format_title(text: str, *, own_issue: int | None = None) -> str:
    """Return one line for a title, 1 to 256 characters.

    A title may become a commit message, so mentions and references to other issues are broken with
    a zero-width character.
    """
    line = " ".join(visible(text).split())
    for pattern in (r"https?://", _COMMIT, _MENTION, _REFERENCE):
        line = re.sub(pattern, lambda m: m[0] if m[0] == f"#{own_issue}" else _break(m), line)
    line = without_bot_commands(_SKIP_MARKER.sub(f"[{WORD_JOINER}", line))
    return shorten_text(line, MAX_TITLE) or "Change"
