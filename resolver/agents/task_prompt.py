"""The first user message: the issue as the agent is told it.

Everything that others wrote stands between two lines with a marker that occurs in none of it, so
that no text can end its own block, whatever markup it imitates.
"""

import hashlib

from resolver.agents.pull_prompt import told_pull
from resolver.memory.text import cut_middle
from resolver.model import Comment, Task
from resolver.templates import render

MAX_BODY = 40_000
"""Characters of the description that are told."""

MAX_COMMENTS = 60_000
"""Characters of all comments together; the newest are told, since they decide."""

MAX_COMMENT = 15_000
MAX_LINE = 500
MAX_INSTRUCTION = 10_000


def render_task(
    task: Task,
    base: str,
    root: str,
    reachable: str = "",
    *,
    asks: bool = False,
    reviews: bool = False,
    calls: bool = False,
    diff: str = "",
) -> str:
    """The task prompt.

    base: the commit the work starts from. root: the repository's path in the sandbox.
    reachable: the hosts that programs in the sandbox can reach; "" for none.
    asks: whether it is a question, or else something that an agent says and no change.
    reviews: whether that is a review. calls: whether the agent has a work of its own, which its
    system prompt says. diff: what the task's pull request changes.
    """
    comments, earlier = _newest(task.comments)
    values = {
        "title": _line(task.title),
        "body": cut_middle(task.body, MAX_BODY),
        "author": _line(task.author),
        "labels": [_line(label) for label in task.labels],
        "comments": comments,
        "instruction": cut_middle(task.trigger.instruction.strip(), MAX_INSTRUCTION),
        "requester": _line(task.trigger.actor.login),
        "pull": told_pull(task.pull, diff),
    }
    return render(
        "agent/task.md.j2",
        **values,
        earlier=earlier,
        left_out=[_line(reason) for reason in task.left_out],
        number=task.trigger.number,
        is_pull_request=task.trigger.is_pull_request,
        base_branch=_line(task.base_branch),
        base=base,
        root=root,
        reachable=reachable,
        asks=asks,
        reviews=reviews,
        calls=calls,
        marker=_marker(repr(values), task),
    ).strip()


def _newest(comments: tuple[Comment, ...]) -> tuple[list[Comment], int]:
    """The newest comments that fit, oldest first, and how many earlier ones are not told."""
    told: list[Comment] = []
    room = MAX_COMMENTS
    for comment in reversed(comments):
        body = cut_middle(comment.body, MAX_COMMENT)
        room -= len(body)
        if room < 0:
            break
        told.insert(0, comment.model_copy(update={"body": body, "author": _line(comment.author)}))
    return told, len(comments) - len(told)


def _line(text: str) -> str:
    return cut_middle(" ".join(text.split()), MAX_LINE)


def _marker(shown: str, task: Task) -> str:
    """A word that occurs nowhere in what others wrote; the same task gives the same word."""
    whole = f"{shown}\n{task.model_dump_json()}".lower()
    seed = whole
    while True:
        word = hashlib.sha256(seed.encode(errors="replace")).hexdigest()[:16]
        if word not in whole:
            return word
        seed += word
