"""Names of branches: a safe slug from any title, and a free name among those taken."""

import re
import unicodedata
from collections.abc import Collection

PREFIX = "agent/"
"""Every branch of ours starts with this; nothing else is ever written."""

_LONGEST = 50


def slug(title: str) -> str:
    """ASCII letters, digits and single hyphens, 1 to 50 characters, from whatever `title` is."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    if len(words) > _LONGEST:
        cut = words[: _LONGEST + 1].rpartition("-")[0]
        words = (cut or words)[:_LONGEST].strip("-")
    return words or "change"


def branch_name(title: str, number: int | None = None, *, of: str = "issue") -> str:
    """The branch wanted for work on a title: `agent/issue-12-<slug>`, or `agent/<slug>` where it
    has no number. of: what is numbered, `issue` or `pull`."""
    return f"{PREFIX}{of}-{number}-{slug(title)}" if number is not None else PREFIX + slug(title)


def branches_of_issue(number: int) -> str:
    """How the name of every branch of ours for work on an issue begins."""
    return f"{PREFIX}issue-{number}-"


def free_branch(existing: Collection[str], wanted: str) -> str:
    """`wanted`, or `wanted-2`, `wanted-3`, ... when it is in `existing`.

    Compared without case, as some file systems do; a branch below `wanted/` takes the name too.
    """
    taken = [name.casefold() for name in existing]
    number, name = 1, wanted
    while any(t == name.casefold() or t.startswith(f"{name.casefold()}/") for t in taken):
        number += 1
        name = f"{wanted}-{number}"
    return name
