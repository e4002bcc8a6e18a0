"""Glob patterns over repository paths, in the style of `.gitignore` and editor rules."""

import re
from functools import cache

MAX_ALTERNATIVES = 64


def covers(glob: str, path: str) -> bool:
    """Return True if the glob matches the path (from the repository's root, no leading slash).

    `*` and `?` match within one folder, `**` matches any number of folders, `{a,b}` matches either,
    `[ab]` one of the characters. A glob without a slash matches files of that name in any folder;
    one with a trailing slash matches all files below the folder. The time is at most proportional
    to the product of both lengths.
    """
    names = path.split("/")
    return any(_fits(pattern, names) for pattern in _patterns(glob))


_Pattern = tuple[re.Pattern[str] | None, ...]
"""A regular expression for each name of a path; None stands for any number of names."""


def _fits(pattern: _Pattern, names: list[str]) -> bool:
    # `reached` has the numbers of names that the pattern up to here can match: all alternatives
    # are followed at once, so that several `**` need no backtracking
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
    """Return the glob without braces: one glob for each combination of their alternatives."""
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
    """Compile the pattern of one name.

    Each `*` but the last one matches as little as possible, in an atomic group that is never
    re-entered: if what follows it does not fit there, it fits nowhere else either. The match
    therefore needs no backtracking.
    """
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
    inside = inside.replace("--", r"-\-")  # Python reserves `--` in a set for set difference
    try:
        re.compile(f"[{inside}]")
    except re.error:  # a range in reverse order, such as `z-a`
        inside = re.escape(characters)
    return f"[{'^' if negated else ''}{inside}]"
