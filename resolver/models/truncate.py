"""Shortens conversations and texts that are too long.

A conversation keeps its beginning, which says what it is about, and its end, which says where it
stands. A long output keeps its last lines. A text that a model reads has a note that says so and
how to read the rest. Markers delimit text written by others.
"""

import hashlib
from collections.abc import Sequence

from resolver.models.run import Comment


def truncate_middle(text: str, limit: int, hint: str = "") -> str:
    """Return the text, with its middle left out if it is longer than `limit` characters.

    Head and tail get half of the limit each and are cut at a line end if one is near. The note
    between them says how much is missing, followed by `hint`, a sentence that says how to read it.
    The note is not counted in the limit.
    """
    if len(text) <= limit:
        return text
    head = text[: limit // 2]
    tail = text[len(text) - (limit - limit // 2) :]
    line_end = head.rfind("\n", len(head) * 3 // 4)
    head = head[: line_end + 1] if line_end >= 0 else head
    line_start = tail.find("\n", 0, len(tail) // 4)
    tail = tail[line_start + 1 :] if line_start >= 0 else tail
    missing = len(text) - len(head) - len(tail)
    note = f"[... {missing} characters left out. {hint}".rstrip() + " ...]"
    return f"{head.rstrip(chr(10))}\n{note}\n{tail.lstrip(chr(10))}"


def marker_for(text: str) -> str:
    """Return a word that does not occur in the text; the same text always gives the same word.

    Templates use it to delimit quoted text, which therefore can't contain its own end marker.
    """
    seed = text
    while (word := hashlib.sha256(seed.encode(errors="replace")).hexdigest()[:16]) in text.lower():
        seed += word
    return word


HEAD_SHARE = 0.25
"""Share of the available length that goes to the beginning."""


def keep_head_and_tail(
    sizes: Sequence[int], limit: int, share: float = HEAD_SHARE
) -> tuple[int, int]:
    """Return how many items to keep at the beginning and at the end.

    The beginning takes at most its share of the available length, the end what remains.

    sizes: sizes of the items, in order.
    limit: the available length, in the same unit.
    share: share of the beginning, from 0 to 1.
    """
    if sum(sizes) <= limit:
        return len(sizes), 0
    head, used = 0, 0
    while head < len(sizes) and used + sizes[head] <= limit * share:
        used += sizes[head]
        head += 1
    tail = 0
    while head + tail < len(sizes) and used + sizes[-1 - tail] <= limit:
        used += sizes[-1 - tail]
        tail += 1
    return head, tail


def shorten_thread(comments: Sequence[Comment], limit: int) -> tuple[Comment, ...]:
    """Return the oldest and the newest comments that fit into `limit` characters.

    The first of the newest comments says in `skipped` how many were dropped before it. If there is
    no room for it, no comments are returned.
    """
    head, tail = keep_head_and_tail([len(comment.body) for comment in comments], limit)
    if head == len(comments):
        return tuple(comments)
    dropped = comments[head : len(comments) - tail]
    newest = comments[len(comments) - tail :]
    if not newest:
        return ()
    dropped_count = sum(1 + comment.skipped for comment in dropped) + newest[0].skipped
    return (*comments[:head], newest[0].model_copy(update={"skipped": dropped_count}), *newest[1:])


def keep_last_lines(text: str, limit: int) -> str:
    """Return the last lines of `text` that fit into `limit` characters.

    A last line that is longer than the limit begins at a word if possible.
    """
    if len(text) <= limit:
        return text
    tail = text[len(text) - limit :] if limit > 0 else ""
    if text[len(text) - limit - 1] == "\n":
        return tail
    for candidate in (tail.partition("\n")[2], tail.partition(" ")[2]):
        if candidate.strip():
            return candidate
    return tail
