"""Shorten conversations and texts that are too long.

A conversation keeps its beginning, which says what it is about, and its end, which says where it
stands. A long output keeps its last lines.
"""

from collections.abc import Sequence

from resolver.models.run import Comment

BEGINNING = 0.25
"""Share of the available length that goes to the beginning."""


def keep_head_and_tail(
    sizes: Sequence[int], room: int, share: float = BEGINNING
) -> tuple[int, int]:
    """Return how many items to keep at the beginning and at the end.

    The beginning takes at most its share of the available length, the end what remains.

    Args:
        sizes: Sizes of the items, in order.
        room: The available length, in the same unit.
        share: Share of the beginning, from 0 to 1.
    """
    if sum(sizes) <= room:
        return len(sizes), 0
    first, used = 0, 0
    while first < len(sizes) and used + sizes[first] <= room * share:
        used += sizes[first]
        first += 1
    last = 0
    while first + last < len(sizes) and used + sizes[-1 - last] <= room:
        used += sizes[-1 - last]
        last += 1
    return first, last


def shorten_thread(comments: Sequence[Comment], room: int) -> tuple[Comment, ...]:
    """Return the oldest and the newest comments that fit into `room` characters.

    The first of the newest comments says in `skipped` how many were dropped before it. If there is
    no room for it, no comments are returned.
    """
    first, last = keep_head_and_tail([len(comment.body) for comment in comments], room)
    if first == len(comments):
        return tuple(comments)
    dropped = comments[first : len(comments) - last]
    newest = comments[len(comments) - last :]
    if not newest:
        return ()
    gone = sum(1 + comment.skipped for comment in dropped) + newest[0].skipped
    return (*comments[:first], newest[0].model_copy(update={"skipped": gone}), *newest[1:])


def keep_last_lines(text: str, limit: int) -> str:
    """Return the last lines of `text` that fit into `limit` characters.

    A last line that is longer than the limit begins at a word if possible.
    """
    if len(text) <= limit:
        return text
    tail = text[len(text) - limit :] if limit > 0 else ""
    if text[len(text) - limit - 1] == "\n":
        return tail
    for whole in (tail.partition("\n")[2], tail.partition(" ")[2]):
        if whole.strip():
            return whole
    return tail
