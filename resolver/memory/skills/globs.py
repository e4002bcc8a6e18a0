"""Globs over repository paths, as `.gitignore` and editors' rules have them."""

import re
from functools import cache

MAX_ALTERNATIVES = 64


def covers(glob: str, path: str) -> bool:
    """Whether the glob means the path (from the repository's root, without a leading slash).

    `*` and `?` stay within a folder, `**` goes through any number, `{a,b}` is either, `[ab]` one
    character. A glob without a slash means files of that name in every folder, one that ends with
    a slash all files below the folder.
    """
    return any(pattern.fullmatch(path) for pattern in _patterns(glob))


@cache
def _patterns(glob: str) -> tuple[re.Pattern[str], ...]:
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


def _pattern(glob: str) -> re.Pattern[str]:
    glob = glob.removeprefix("./")
    glob += "**" if glob.endswith("/") else ""
    glob = glob.removeprefix("/") if "/" in glob else f"**/{glob}"
    out = []
    for part in re.findall(r"\*\*+/|\*\*+|\*|\?|\[[^\[\]/]+\]|[^*?\[]+|\[", glob):
        if part.startswith("**"):
            out.append("(?:[^/]+/)*" if part.endswith("/") else ".*")
        elif part == "*":
            out.append("[^/]*")
        elif part == "?":
            out.append("[^/]")
        elif part.startswith("[") and len(part) > 1:
            out.append(_one_of(part[1:-1]))
        else:
            out.append(re.escape(part))
    return re.compile("".join(out), re.DOTALL)


def _one_of(characters: str) -> str:
    negated = characters[0] in "!^" and len(characters) > 1
    inside = re.sub(r"[\\^\]\[&~|]", r"\\\g<0>", characters[1:] if negated else characters)
    try:
        re.compile(f"[{inside}]")
    except re.error:  # a range that runs backwards
        inside = re.escape(characters)
    return f"(?!/)[{'^' if negated else ''}{inside}]"
