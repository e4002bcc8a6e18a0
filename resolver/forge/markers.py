"""Hidden markers: how a later run finds the comments and pull requests of an earlier one.

A marker is the first thing in a text of ours. It means something only in a text that our own
account wrote, and only at its very start: anybody can write one elsewhere.
"""

import hashlib
import re

from resolver.forge.report import Ending

_RUN = re.compile(
    r"<!-- resolver:run key=([0-9a-f]{40}) ending=([a-z_]+)"
    r"(?: issue=([1-9][0-9]{0,11}) run=([0-9A-Za-z-]{1,60}))? -->"
)
_REVIEW = re.compile(r"<!-- resolver:review key=[0-9a-f]{40} -->")
_REFUSAL = re.compile(r"<!-- resolver:refused actor=([0-9a-f]{40}) -->")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def run_marker(key: str, ending: Ending, issue: int | None = None, run: str = "") -> str:
    """The marker of a run. The key is hashed, so that no key can end the HTML comment.

    issue, run: given in a pull request, so that it leads to the work it came from.
    """
    work = f" issue={issue} run={run}" if issue and run else ""
    return f"<!-- resolver:run key={_digest(key)} ending={ending.value}{work} -->"


def work_of(body: str) -> tuple[int, str] | None:
    """Issue number and run that a pull request's `body` names in its marker."""
    found = _RUN.match(body)
    return (int(found[3]), found[4]) if found and found[3] else None


def refusal_marker(login: str) -> str:
    """The marker of a refusal: one per person and thread."""
    return f"<!-- resolver:refused actor={_digest(login.casefold())} -->"


def answer_marker(key: str) -> str:
    """The marker of a word that is no run's: one per request."""
    return f"<!-- resolver:answer key={_digest(key)} -->"


def review_marker(key: str) -> str:
    """The marker of a review: one per request."""
    return f"<!-- resolver:review key={_digest(key)} -->"


def is_review(body: str) -> bool:
    """True when `body` is that of a review of ours, whatever its request."""
    return _REVIEW.match(body) is not None


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
