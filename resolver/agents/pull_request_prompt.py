"""Template values for the pull request that the agent works on, truncated to limits."""

from collections.abc import Collection
from typing import Any

from resolver.memory.text import truncate_middle
from resolver.models.pull_request import PullRequestContext, ReviewThread

MOST_THREADS = 40_000
"""Maximum length of all review threads together, in characters.

Open threads come first, then the newest.
"""

MOST_OF_THREAD = 6_000
"""Maximum length of one review thread, in characters."""
MOST_REVIEWS = 10
MOST_OF_REVIEW = 4_000
MOST_COMMITS = 20_000
MOST_LINE = 300
MOST_CONFLICTS = 10_000

_WRITERS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
"""Author associations of people who may have write access.

They are only shown to the agent and authorize nothing.
"""


def render_pull_request(
    pull: PullRequestContext | None, diff: str, asked: Collection[str] = ()
) -> dict[str, Any] | None:
    """Return the template values of the pull request, None if there is none.

    asked: ids of the review threads that are left out here, because they are rendered separately.
    """
    if pull is None:
        return None
    threads, left_out = _threads(pull, asked)
    commits = "\n".join(f"{c.id[:12]} {_line(c.author)}: {c.message}" for c in pull.commits)
    return {
        "author": _line(pull.author),
        "association": pull.association,
        "is_trusted": pull.association in _WRITERS,
        "head_branch": _line(pull.head_branch),
        "head_repository": pull.head_repository,
        "is_fork": pull.is_fork,
        "is_draft": pull.is_draft,
        "base_branch": _line(pull.base_branch),
        "merge_base": pull.merge_base,
        "base": pull.base,
        "conflicts": truncate_middle("\n".join(pull.conflicts), MOST_CONFLICTS),
        "conflict_notes": truncate_middle("\n".join(pull.conflict_notes), MOST_CONFLICTS),
        "commits": truncate_middle(commits, MOST_COMMITS),
        "closes": [
            {
                "number": i.number,
                "by": who(i.author, i.association),
                "title": _line(i.title),
                "body": i.body,
            }
            for i in pull.closes
        ],
        "reviews": [
            {
                "head": f"review by {who(r.words.author, r.words.association)}: {r.state}",
                "body": truncate_middle(r.words.body, MOST_OF_REVIEW),
            }
            for r in pull.reviews[-MOST_REVIEWS:]
        ],
        "threads": threads,
        "threads_left_out": left_out,
        "diff": diff or "(nothing)",
    }


def _threads(pull: PullRequestContext, asked: Collection[str]) -> tuple[list[dict[str, str]], int]:
    newest = [thread for thread in reversed(pull.threads) if thread.id not in asked]
    ordered = sorted(newest, key=lambda t: t.is_resolved or t.is_outdated)
    told: list[dict[str, str]] = []
    room = MOST_THREADS
    for thread in ordered:
        text = truncate_middle(_words(thread), MOST_OF_THREAD)
        room -= len(text)
        if room < 0:
            break
        told.append({"head": head_of(thread), "body": text})
    return told, len(ordered) - len(told)


def head_of(thread: ReviewThread) -> str:
    """Return the heading of a review thread: its state, file and line."""
    state = "resolved" if thread.is_resolved else "outdated" if thread.is_outdated else "open"
    line = thread.line or thread.original_line
    place = _line(thread.path) + (f":{line}" if line else "")
    side = ", a line that is taken out" if thread.side == "LEFT" else ""
    return f"{state} conversation on {place}{side}"


def _words(thread: ReviewThread) -> str:
    return "\n\n".join(f"{who(c.author, c.association)}: {c.body}" for c in thread.comments)


def who(author: str, association: str) -> str:
    """Return the author with the association, marked if not known to have write access."""
    trusted = "" if association in _WRITERS else ", not known to have write access"
    return f"{_line(author)} ({_line(association)}{trusted})"


def _line(text: str) -> str:
    return truncate_middle(" ".join(text.split()), MOST_LINE)
