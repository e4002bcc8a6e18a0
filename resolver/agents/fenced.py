"""Detection of code that a model wrote in a markdown fence instead of calling a tool with it."""

from dataclasses import dataclass
from typing import Final

from markdown_it import MarkdownIt

from resolver.memory.text import truncate_middle

MAX_EXCERPT: Final = 400
"""Maximum length of the code that is quoted back to the model, in characters."""

_SHELL: Final = frozenset(
    {"bash", "console", "sh", "shell", "shell-session", "terminal", "zsh", "execute_bash"}
)
_PYTHON: Final = frozenset(
    {"ipython", "py", "python", "python3", "tool_code", "execute_ipython", "execute_ipython_cell"}
)
"""Languages of Python code. Gemini is trained to write Python to be executed as `tool_code`."""


@dataclass(frozen=True)
class FencedCode:
    """A fenced block of shell commands or Python.

    language: the language in lower case, from the fence's info string.
    excerpt: the code, truncated in the middle if it is long.
    """

    language: str
    is_python: bool
    excerpt: str


def find_fenced_code(text: str) -> FencedCode | None:
    """Return the first fenced block of shell commands or Python, None if there is none.

    Blocks in another language, or without one, are taken for quotations.
    """
    # Fences as CommonMark defines them: https://spec.commonmark.org/0.31.2/#fenced-code-blocks
    for token in MarkdownIt("commonmark").disable(["inline", "text_join"]).parse(text):
        words = token.info.split() if token.type == "fence" else []
        language = words[0].strip("{}.").lower() if words else ""
        if language in _SHELL | _PYTHON and token.content.strip():
            excerpt = truncate_middle(token.content.strip("\n"), MAX_EXCERPT)
            return FencedCode(language, language in _PYTHON, excerpt)
    return None
