"""Raw words of a command, as a shell would hand them on: without quotes, behind assignments."""

import re
from collections.abc import Iterator, Sequence
from posixpath import basename

from resolver.security.shell.syntax import assignment
from resolver.security.shell.wrappers import unwrapped

MOST_WORDS = 2_000
"""Words of one command that are looked at."""

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
_QUOTED = re.compile(r"'([^']*)'?|\"((?:\\.|[^\"\\])*)\"?|\\(\n|.)|([^'\"\\]+)", re.S)


def skip_assignments(words: Sequence[str]) -> Iterator[str]:
    """The words from the program on."""
    started = False
    for word in words:
        started = started or assignment(word) is None
        if started:
            yield word


def inline_script(words: Sequence[str]) -> str | None:
    """The script of `bash -c`; None without one, or where it is put together as it is run."""
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
    """Return whether a raw word holds what another command writes: `$(...)`, `<(...)`."""
    return any(sign in part for part in _unquoted(word) for sign in ("$(", "`", "<(", ">("))


def _expands(word: str) -> bool:
    return any("$" in part or "`" in part for part in _unquoted(word))


def _unquoted(word: str) -> Iterator[str]:
    """The parts of a raw word in which a shell expands."""
    return (found[2] or found[4] or "" for found in _QUOTED.finditer(word))


def plain_word(word: str) -> str:
    """A raw word without its quotes. What it would be expanded to is not known, and stays as is."""
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
