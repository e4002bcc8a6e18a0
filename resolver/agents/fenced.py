"""Finds code that a model wrote in a Markdown fence instead of calling a tool with it."""

from dataclasses import dataclass
from typing import Final

from markdown_it import MarkdownIt

from resolver.memory.text import truncate_middle

MAX_EXCERPT: Final = 400
"""Characters of the code that are shown back to the model."""

_SHELL: Final = frozenset(
    {"bash", "console", "sh", "shell", "shell-session", "terminal", "zsh", "execute_bash"}
)
_PYTHON: Final = frozenset(
    {"ipython", "py", "python", "python3", "tool_code", "execute_ipython", "execute_ipython_cell"}
)
"""`tool_code` is how Gemini's own training writes Python that it wants to be run."""


@dataclass(frozen=True)
class FencedCode:
    """A fenced block of shell commands or Python. language: as the model wrote it. excerpt: its
    code, with the middle left out where it is long."""

    language: str
    is_python: bool
    excerpt: str


def find_fenced_code(text: str) -> FencedCode | None:
    """The first fenced block of shell commands or Python; None when there is none.

    A block in another language, or in none, is taken for a quotation.
    """
    # CommonMark decides what a fence is: https://spec.commonmark.org/0.31.2/#fenced-code-blocks
    for token in MarkdownIt("commonmark").disable(["inline", "text_join"]).parse(text):
        words = token.info.split() if token.type == "fence" else []
        language = words[0].strip("{}.").lower() if words else ""
        if language in _SHELL | _PYTHON and token.content.strip():
            excerpt = truncate_middle(token.content.strip("\n"), MAX_EXCERPT)
            return FencedCode(language, language in _PYTHON, excerpt)
    return None
