"""Builds names of branches: a safe slug from any title, and a free name."""

import re
import unicodedata
from collections.abc import Collection

PREFIX = "agent/"
"""Prefix of every branch that Resolver creates."""

_LONGEST = 50
"""Maximum length of a slug in characters."""


def slug(title: str) -> str:
    """Return 1 to 50 ASCII lower-case letters, digits and single hyphens made from `title`."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    if len(words) > _LONGEST:
        cut = words[: _LONGEST + 1].rpartition("-")[0]
        words = (cut or words)[:_LONGEST].strip("-")
    return words or "change"


def branch_name(title: str, number: int | None = None, *, of: str = "issue") -> str:
    """Return the preferred branch name for work on a title, such as `agent/issue-12-<slug>`.

    Without a number, it is `agent/<slug>`. of: what the number belongs to, `issue` or `pull`.
    """
    return f"{PREFIX}{of}-{number}-{slug(title)}" if number is not None else PREFIX + slug(title)


def branches_of_issue(number: int) -> str:
    """Return the prefix of the branches that Resolver creates for work on an issue."""
    return f"{PREFIX}issue-{number}-"


def free_branch(existing: Collection[str], wanted: str) -> str:
    """Return `wanted`, or `wanted-2`, `wanted-3` and so on if that is in `existing`.

    Names are compared without case, because some file systems do so. A branch below `wanted/` also
    makes the name unavailable, because a ref can't be a file and a folder at once.
    """
    taken = [name.casefold() for name in existing]
    number, name = 1, wanted
    while any(t == name.casefold() or t.startswith(f"{name.casefold()}/") for t in taken):
        number += 1
        name = f"{wanted}-{number}"
    return name
