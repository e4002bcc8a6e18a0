"""Template values for the review threads that the agent is asked about."""

from collections.abc import Sequence
from typing import Any

from resolver.agents.pull_request_prompt import head_of, who
from resolver.agents.tags import write_tags
from resolver.events import actions as a
from resolver.memory.text import truncate_middle
from resolver.models.pull_request import AskedThread, AuthoredText, ThreadAnswer

MOST_OF_WORDS = 6_000
"""Maximum length of the comments of one thread, in characters."""

MOST_OF_CODE = 6_000
"""Maximum length of the code of one thread, in characters."""
MOST = 80_000
"""Maximum length of all threads together, in characters.

Of the threads beyond it only the request is shown.
"""


def render_requested_threads(
    asked: Sequence[AskedThread], requester: str, dialect: str, *, offered: bool = True
) -> dict[str, Any] | None:
    """Return the template values, None if the run is not asked about review threads.

    requester: login of the person who asks.
    dialect: the dialect of the agent.
    offered: the agent's `finish` takes an answer for each of the threads.
    """
    if not asked:
        return None
    room = MOST
    threads: list[dict[str, Any]] = []
    for each in asked:
        code = truncate_middle(each.code, MOST_OF_CODE)
        words = truncate_middle(_conversation(each, requester), MOST_OF_WORDS)
        room -= len(code) + len(words)
        if room < 0:
            code, words = "", truncate_middle(each.request, MOST_OF_WORDS // 4)
        head = f"{each.label}, {head_of(each.thread)}"
        threads.append({"head": head, "code": code, "words": words, "is_then": each.is_then})
    example = a.Finish(
        message="Round half() to the nearest even",
        threads=(
            ThreadAnswer(id="T1", addressed=True, answer="Renamed to `half`, with its callers."),
            ThreadAnswer(id="T2", answer="It is kept: `cli.py` passes None here."),
        ),
    )
    return {
        "threads": threads,
        "labels": [each.label for each in asked],
        "offered": offered,
        "example": write_tags(example) if dialect == "tags" else "",
    }


def _conversation(asked: AskedThread, requester: str) -> str:
    said = "\n\n".join(_said(words, requester) for words in asked.thread.comments)
    return said or asked.request


def _said(words: AuthoredText, requester: str) -> str:
    asks = ", who asks" if words.author.casefold() == requester.casefold() else ""
    return f"{who(words.author, words.association)}{asks}: {words.body}"
