"""Hidden markers: how a later run finds the comments and pull requests of an earlier one.

A marker is the first thing in a text of ours. It means something only in a text that our own
account wrote, and only at its very start: anybody can write one elsewhere.
"""

import hashlib
import re

from resolver.forge.report import Ending

_RUN = re.compile(r"<!-- resolver:run key=([0-9a-f]{40}) ending=([a-z_]+) -->")
_REFUSAL = re.compile(r"<!-- resolver:refused actor=([0-9a-f]{40}) -->")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def run_marker(key: str, ending: Ending) -> str:
    """The marker of a run. The key is hashed, so that no key can end the HTML comment."""
    return f"<!-- resolver:run key={_digest(key)} ending={ending.value} -->"


def refusal_marker(login: str) -> str:
    """The marker of a refusal: one per person and thread."""
    return f"<!-- resolver:refused actor={_digest(login.casefold())} -->"


def ending_of(body: str, key: str) -> Ending | None:
    """The ending that `body` tells of, when it starts with the marker of `key`."""
    found = _RUN.match(body)
    if found is None or found[1] != _digest(key) or found[2] not in set(Ending):
        return None
    return Ending(found[2])


def is_refusal_of(body: str, login: str) -> bool:
    """True when `body` is our refusal of this person."""
    found = _REFUSAL.match(body)
    return found is not None and found[1] == _digest(login.casefold())
