"""Reads CODEOWNERS files as GitHub does, to find the owners of changed files.

Source:
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
    """A line of a CODEOWNERS file: a pattern, and the logins and ORG/TEAM names of its owners.

    The owners may be empty: then nobody owns what the pattern matches.
    """

    pattern: re.Pattern[str]
    owners: tuple[str, ...]


def owners_of(codeowners: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the logins and ORG/TEAM names that own any of the files, without duplicates.

    `paths` are relative to the repository's root. The last line that matches a path decides.
    """
    rules = list(read_rules(codeowners))
    found: dict[str, str] = {}
    for path in paths:
        last = next((rule for rule in reversed(rules) if rule.pattern.fullmatch(path)), None)
        for owner in last.owners if last else ():
            found.setdefault(owner.casefold(), owner)
    return tuple(found.values())


def read_rules(codeowners: str) -> Iterator[OwnerRule]:
    """Yield the valid lines in order. Invalid lines are skipped, as GitHub does.

    An owner given by email address is left out, because reviews are requested by login, but the
    line still takes precedence over earlier ones.
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
    """Return the words of a line without its comment. Escaped spaces do not separate words."""
    words: list[str] = []
    for found in _WORD.finditer(line):
        if found[0].startswith("#"):
            break
        words.append(found[0])
    return words


def _pattern(text: str) -> re.Pattern[str] | None:
    """Compile a pattern; return None for negations and ranges, which GitHub does not support."""
    if text.startswith(("!", "\\#")) or "[" in text or "***" in text:
        return None
    parts = text.split("/")
    if parts[0] == "":
        del parts[0]
    elif len(parts) == 1 or parts[1:] == [""]:
        parts.insert(0, "**")  # a name alone matches at any depth
    if not any(parts):
        return re.compile(r"(?!)")
    is_folder = parts[-1] == ""
    if is_folder:
        parts[-1] = "**"
    written = "".join(_part(part, last=False) for part in parts[:-1])
    return re.compile(written + _part(parts[-1], last=True), re.DOTALL)


def _part(part: str, *, last: bool) -> str:
    """Return the regular expression for one segment of a path.

    The last segment also matches everything in a folder of that name, except for `*`, which only
    matches the folder's direct entries.
    """
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
