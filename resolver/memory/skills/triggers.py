"""Decides whether a text or a path asks for a skill.

A trigger matches whole words, in any case; the words of a phrase may be separated by any white
space. Letters of other scripts count as word boundaries, since many don't separate words by spaces:
`docker` matches in `dockerの設定`.

Globs name repository paths in the style of `.gitignore` and editor rules. They are matched
in linear time: the regular expressions of `pathspec` backtrack, and any repository can bring globs.
"""

import re
from functools import cache
from typing import Final

from resolver.models.path_globs import ANY_NAMES, PathPattern, compile_path_pattern, matches_path


def find_trigger(trigger: str, text: str) -> str | None:
    """Return the first match of the trigger as the text spells it, or None."""
    match = _trigger_pattern(trigger).search(text)
    return " ".join(match[0].split()) if match else None


@cache
def _trigger_pattern(trigger: str) -> re.Pattern[str]:
    words = r"\s+".join(re.escape(word) for word in trigger.split())
    return re.compile(rf"(?<![A-Za-z0-9_]){words}(?![A-Za-z0-9_])", re.IGNORECASE)


MAX_ALTERNATIVES = 64

_CHARACTER_SET: Final = re.compile(r"\[(?:([!^]?)([^\[\]]+)\])?")


def covers(glob: str, path: str) -> bool:
    """Return True if the glob matches the path (from the repository's root, no leading slash).

    `*` and `?` match within one folder, `**` matches any number of folders, `{a,b}` matches either,
    `[ab]` one of the characters. A glob without a slash matches files of that name in any folder;
    one with a trailing slash matches all files below the folder. The time is at most proportional
    to the product of both lengths.
    """
    names = path.split("/")
    return any(matches_path(pattern, names) for pattern in _glob_patterns(glob))


@cache
def _glob_patterns(glob: str) -> tuple[PathPattern, ...]:
    return tuple(_glob_pattern(expanded) for expanded in _alternatives(glob.strip()))


def _alternatives(glob: str) -> list[str]:
    """Return the glob without braces: one glob for each combination of their alternatives."""
    pending: list[str] = [glob]
    expanded: list[str] = []
    while pending and len(pending) + len(expanded) <= MAX_ALTERNATIVES:
        candidate = pending.pop()
        braces = re.search(r"\{([^{}]*)\}", candidate)
        if braces is None:
            expanded.append(candidate)
        else:
            parts = braces[1].split(",")
            pending += [
                candidate[: braces.start()] + part + candidate[braces.end() :] for part in parts
            ]
    return expanded


def _glob_pattern(glob: str) -> PathPattern:
    glob = glob.removeprefix("./")
    glob += "**" if glob.endswith("/") else ""
    glob = glob.removeprefix("/") if "/" in glob else f"**/{glob}"
    parts = re.sub(r"(^|/)\*\*+(?=[^/*])", r"\1**/*", glob).split("/")
    if set(parts[-1]) == {"*"} and len(parts[-1]) > 1:
        parts[-1:] = ["**", "*"]
    return compile_path_pattern(
        tuple(ANY_NAMES if re.fullmatch(r"\*\*+", part) else _as_fnmatch(part) for part in parts)
    )


def _as_fnmatch(name: str) -> str:
    """Return the glob of one name as `fnmatch` reads it.

    `fnmatch` negates a set by `!` only, and a range in reverse order (`z-a`) matches nothing there.
    Here its characters stand for themselves.
    """
    return _CHARACTER_SET.sub(_fnmatch_set, name)


def _fnmatch_set(match: re.Match[str]) -> str:
    negation, characters = match.groups()
    if characters is None:
        return "[[]"  # a bracket that begins no set
    if any(first > last for first, last in re.findall("(.)-(.)", characters, re.DOTALL)):
        characters = f"{characters.replace('-', '')}-"
    return f"[{'!' if negation else ''}{characters}]"
