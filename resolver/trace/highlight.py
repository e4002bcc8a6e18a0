"""Highlights code for the HTML trace with Pygments, in a few classes and with bounded work."""

from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from pygments.lexer import Lexer

MAX_HIGHLIGHTED_LENGTH = 20_000
"""Maximum number of characters of one text that is highlighted."""

MAX_HIGHLIGHTED_PAGE = 300_000
"""Maximum number of characters that are highlighted on a page; it bounds the processor time."""

_ALIASES = {
    "bash": "bash", "c": "c", "cc": "cpp", "cpp": "cpp", "cs": "csharp", "css": "css", "go": "go",
    "h": "c", "html": "html", "java": "java", "js": "javascript", "json": "json",
    "jsx": "javascript", "kt": "kotlin", "mjs": "javascript", "php": "php", "py": "python",
    "pyi": "python", "python": "python", "rb": "ruby", "rs": "rust", "sh": "bash", "sql": "sql",
    "swift": "swift", "toml": "toml", "ts": "typescript", "tsx": "typescript", "yaml": "yaml",
    "yml": "yaml",
}  # fmt: skip
"""Names of languages and endings of files, and the lexer for each."""

_CLASSES = (
    ("Token.Comment.", "h-c"),
    ("Token.Keyword.", "h-k"),
    ("Token.Literal.String.", "h-s"),
    ("Token.Literal.Number.", "h-n"),
    ("Token.Name.Function.", "h-f"),
    ("Token.Name.Class.", "h-f"),
    ("Token.Name.Decorator.", "h-f"),
    ("Token.Name.Builtin.", "h-b"),
    ("Token.Name.Tag.", "h-k"),
)
"""Starts of the names of token types, and the class for each.

Source: https://pygments.org/docs/tokens/
"""


class CodeHighlighter:
    """Highlights the code of one page, until the page has had its share of it."""

    def __init__(self, max_length: int = MAX_HIGHLIGHTED_PAGE) -> None:
        self._remaining = max_length

    def highlight(self, text: str, language: str) -> Markup:
        """Return the text as HTML: escaped, with spans around tokens if its language is known.

        language: the name of a language, or the path of a file.
        """
        alias = _alias(language)
        if not alias or len(text) > min(self._remaining, MAX_HIGHLIGHTED_LENGTH):
            return escape(text)
        self._remaining -= len(text)
        return _highlight(text, alias)


def _alias(language: str) -> str:
    name = PurePosixPath(language)
    return _ALIASES.get((name.suffix.removeprefix(".") or name.name).lower(), "")


@cache
def _lexer(alias: str) -> "Lexer":
    from pygments.lexers import get_lexer_by_name  # every run imports this module at its start

    lexer: Lexer = get_lexer_by_name(alias, stripnl=False, ensurenl=False)
    return lexer


@cache
def _class_of(token: object) -> str:
    return next((name for kind, name in _CLASSES if f"{token}.".startswith(kind)), "")


def _highlight(text: str, alias: str) -> Markup:
    parts: list[str] = []
    # The third item of each tuple is the text; unlike get_tokens, this changes no line end.
    for _, token, value in _lexer(alias).get_tokens_unprocessed(text):
        name = _class_of(token)
        escaped = escape(value)
        parts.append(f'<span class="{name}">{escaped}</span>' if name else escaped)
    return Markup("".join(parts))  # noqa: S704 - each value is escaped, the names are fixed
