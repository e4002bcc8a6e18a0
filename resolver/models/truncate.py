"""What is kept of a thread that is too long: its beginning, which says what it is about, and its
end, which decides. And the end of a long output, from a line's start on.
"""

from collections.abc import Sequence

from resolver.models.run import Comment

BEGINNING = 0.25
"""Share of the room that is the beginning's."""


def keep_head_and_tail(
    sizes: Sequence[int], room: int, share: float = BEGINNING
) -> tuple[int, int]:
    """How many items are kept at the beginning, and at the end, of those with these sizes.

    The beginning takes at most its share of the room, the end what is left of it then.
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
    """The oldest and the newest comments that fit into so many characters; the first of the newest
    says how many were left out before it. Without room for that one there are none."""
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
    """Return the last lines of `text` that fit into `limit` characters. A last line that is longer
    begins at a word where it has one."""
    if len(text) <= limit:
        return text
    tail = text[len(text) - limit :] if limit > 0 else ""
    if text[len(text) - limit - 1] == "\n":
        return tail
    for whole in (tail.partition("\n")[2], tail.partition(" ")[2]):
        if whole.strip():
            return whole
    return tail
