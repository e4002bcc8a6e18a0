"""CODEOWNERS as GitHub reads it: who owns the files of a change.

https://docs.github.com/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_OWNER = re.compile(r"@([A-Za-z0-9][\w-]*(?:/[A-Za-z0-9_.-]+)?)", re.ASCII)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_WORD = re.compile(r"(?:\\.|[^\\\s])+")


@dataclass(frozen=True)
class OwnerRule:
    """A line: a pattern, and the logins and `ORG/TEAM`s that own what it matches; maybe none."""

    pattern: re.Pattern[str]
    owners: tuple[str, ...]


def owners_of(codeowners: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Logins and `ORG/TEAM`s of the owners of any of the files, each once, as they are first met.

    paths: from the repository's root. For each the last line that matches decides.
    """
    rules = list(read_rules(codeowners))
    found: dict[str, str] = {}
    for path in paths:
        last = next((rule for rule in reversed(rules) if rule.pattern.fullmatch(path)), None)
        for owner in last.owners if last else ():
            found.setdefault(owner.casefold(), owner)
    return tuple(found.values())


def read_rules(codeowners: str) -> Iterator[OwnerRule]:
    """The lines that GitHub can read, in order; it leaves out the others, as is done here.

    An address is no login: nobody can be asked by it, but its line decides as any other.
    """
    for line in codeowners.splitlines():
        words = _words(line)
        if not words:
            continue
        pattern = _pattern(words[0])
        owners = [_OWNER.fullmatch(word) for word in words[1:]]
        known = (o or _EMAIL.fullmatch(w) for o, w in zip(owners, words[1:], strict=True))
        if pattern is not None and all(known):
            yield OwnerRule(pattern, tuple(owner[1] for owner in owners if owner))


def _words(line: str) -> list[str]:
    """Split at blanks that are not escaped, up to a comment."""
    words: list[str] = []
    for found in _WORD.finditer(line):
        if found[0].startswith("#"):
            break
        words.append(found[0])
    return words


def _pattern(text: str) -> re.Pattern[str] | None:
    """What a pattern matches; None for those that GitHub does not know: negations, ranges."""
    if text.startswith(("!", "\\#")) or "[" in text or "***" in text:
        return None
    parts = text.split("/")
    if parts[0] == "":
        del parts[0]
    elif len(parts) == 1 or parts[1:] == [""]:
        parts.insert(0, "**")  # a name alone is looked for at any depth
    if not any(parts):
        return re.compile(r"(?!)")
    is_folder = parts[-1] == ""
    if is_folder:
        parts[-1] = "**"
    written = "".join(_part(part, last=False) for part in parts[:-1])
    return re.compile(written + _part(parts[-1], last=True), re.DOTALL)


def _part(part: str, *, last: bool) -> str:
    """One part of a path; what is matched in full may be a folder, all of which is meant, but for
    `*`, which is only what lies right there."""
    if part == "**":
        return ".+" if last else "(?:[^/]+/)*"
    if part == "*":
        return "[^/]+" if last else "[^/]+/"
    written = "".join(_characters(part))
    return f"{written}(?:/.*)?" if last else f"{written}/"


def _characters(part: str) -> Iterator[str]:
    escaped = False
    for char in part:
        if escaped or char not in "\\*?":
            yield re.escape(char)
            escaped = False
        elif char == "\\":
            escaped = True
        else:
            yield "[^/]*" if char == "*" else "[^/]"
