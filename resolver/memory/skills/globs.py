"""Globs over repository paths, as `.gitignore` and editors' rules have them."""

import re
from functools import cache

MAX_ALTERNATIVES = 64


def covers(glob: str, path: str) -> bool:
    """Whether the glob means the path (from the repository's root, without a leading slash).

    `*` and `?` stay within a folder, `**` goes through any number, `{a,b}` is either, `[ab]` one
    character. A glob without a slash means files of that name in every folder, one that ends with
    a slash all files below the folder. Takes no longer than the lengths of both, multiplied.
    """
    names = path.split("/")
    return any(_fits(pattern, names) for pattern in _patterns(glob))


_Pattern = tuple[re.Pattern[str] | None, ...]
"""What each name of a path must be; None is any number of names."""


def _fits(pattern: _Pattern, names: list[str]) -> bool:
    reached = {0}
    for each in pattern:
        if each is None:
            reached = set(range(min(reached), len(names) + 1))
        else:
            reached = {n + 1 for n in reached if n < len(names) and each.fullmatch(names[n])}
        if not reached:
            return False
    return len(names) in reached


@cache
def _patterns(glob: str) -> tuple[_Pattern, ...]:
    return tuple(_pattern(one) for one in _alternatives(glob.strip()))


def _alternatives(glob: str) -> list[str]:
    """The glob without braces: one for each of what stands in them."""
    todo: list[str] = [glob]
    done: list[str] = []
    while todo and len(todo) + len(done) <= MAX_ALTERNATIVES:
        one = todo.pop()
        found = re.search(r"\{([^{}]*)\}", one)
        if found is None:
            done.append(one)
        else:
            parts = found[1].split(",")
            todo += [one[: found.start()] + part + one[found.end() :] for part in parts]
    return done


def _pattern(glob: str) -> _Pattern:
    glob = glob.removeprefix("./")
    glob += "**" if glob.endswith("/") else ""
    glob = glob.removeprefix("/") if "/" in glob else f"**/{glob}"
    parts = re.sub(r"(^|/)\*\*+(?=[^/*])", r"\1**/*", glob).split("/")
    if set(parts[-1]) == {"*"} and len(parts[-1]) > 1:
        parts[-1:] = ["**", "*"]
    return tuple(None if re.fullmatch(r"\*\*+", part) else _name(part) for part in parts)


def _name(glob: str) -> re.Pattern[str]:
    """One name. Of several `*` all but the last take as little as they can, once and for all: what
    follows fits there or nowhere, so nothing is tried twice."""
    chunks = [""]
    for part in re.findall(r"\*+|\?|\[[^\[\]]+\]|[^*?\[]+|\[", glob):
        if part.startswith("*"):
            chunks.append("")
        elif part == "?":
            chunks[-1] += "."
        elif part.startswith("[") and len(part) > 1:
            chunks[-1] += _one_of(part[1:-1])
        else:
            chunks[-1] += re.escape(part)
    first, *middle = chunks
    last = f".*{middle.pop()}" if middle else ""
    between = "".join(f"(?>.*?{chunk})" for chunk in middle)
    return re.compile(f"{first}{between}{last}", re.DOTALL)


def _one_of(characters: str) -> str:
    negated = characters[0] in "!^" and len(characters) > 1
    inside = re.sub(r"[\\^\]\[&~|]", r"\\\g<0>", characters[1:] if negated else characters)
    inside = inside.replace("--", r"-\-")  # which would mean a difference of sets one day
    try:
        re.compile(f"[{inside}]")
    except re.error:  # a range that runs backwards
        inside = re.escape(characters)
    return f"[{'^' if negated else ''}{inside}]"
