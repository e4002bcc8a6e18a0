"""Functions on raw words of a command: remove quotes and assignments, find inline scripts."""

import re
from collections.abc import Iterator, Sequence
from posixpath import basename

from resolver.security.shell.syntax import assignment
from resolver.security.shell.wrappers import unwrapped

MOST_WORDS = 2_000
"""Maximum words of one command that are looked at."""

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
_QUOTED = re.compile(r"'([^']*)'?|\"((?:\\.|[^\"\\])*)\"?|\\(\n|.)|([^'\"\\]+)", re.S)


def skip_assignments(words: Sequence[str]) -> Iterator[str]:
    """Yield the words from the program's name on, without the assignments before it."""
    started = False
    for word in words:
        started = started or assignment(word) is None
        if started:
            yield word


def inline_script(words: Sequence[str]) -> str | None:
    """Return the script of `bash -c`; None if there is none, or if it contains an expansion whose
    result is not known."""
    argv = unwrapped(tuple(words))[0] if words else ()
    if not argv or basename(argv[0]) not in _SHELLS:
        return None
    for at, word in enumerate(argv[1:], start=1):
        if not word.startswith("-"):
            return None
        if not word.startswith("--") and "c" in word[1:] and "o" not in word[1:]:
            script = argv[at + 1] if at + 1 < len(argv) else ""
            return None if _expands(script) else plain_word(script)
    return None


def substitutes(word: str) -> bool:
    """Return True if a raw word contains a command or process substitution: `$(...)`, `<(...)`."""
    return any(sign in part for part in _unquoted(word) for sign in ("$(", "`", "<(", ">("))


def _expands(word: str) -> bool:
    return any("$" in part or "`" in part for part in _unquoted(word))


def _unquoted(word: str) -> Iterator[str]:
    """Yield the parts of a raw word that a shell expands: those not in single quotes."""
    return (found[2] or found[4] or "" for found in _QUOTED.finditer(word))


def plain_word(word: str) -> str:
    """Return a raw word without its quotes. Expansions stay as written, since their results are not
    known."""
    if not any(char in word for char in "'\"\\"):
        return word

    def text(found: re.Match[str]) -> str:
        single, double, escaped, bare = found.groups()
        if single is not None:
            return single
        if double is not None:
            return re.sub(r"\\([\"\\$`\n])", lambda m: m[1].strip("\n"), double)
        if escaped is not None:
            return escaped.strip("\n")
        return bare or ""

    return "".join(text(found) for found in _QUOTED.finditer(word))
