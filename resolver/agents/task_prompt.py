"""The first user message: the task as the agent gets it.

All untrusted text is enclosed in lines with a marker that does not occur in it, so that no text can
end its own block, whatever markup it imitates.
"""

import hashlib
from typing import Any

from resolver.agents.context_prompt import (
    ROOM,
    PromptRoom,
    fit_pull,
    render_facts,
    render_failed_checks,
    render_form,
    render_pictures,
    render_references,
)
from resolver.agents.pull_request_prompt import render_pull_request, who
from resolver.agents.threads_prompt import render_requested_threads
from resolver.config.templates import render
from resolver.memory.text import truncate_middle
from resolver.models.run import Comment, Task
from resolver.models.truncate import BEGINNING, shorten_thread

MAX_BODY = 40_000
"""Maximum length of the issue's description, in characters."""

MAX_COMMENTS = 60_000
"""Maximum length of all comments together, in characters. The oldest and the newest are kept."""

LEAST_OF_COMMENTS = 20_000
"""Characters that are available for comments even if the prompt is full."""

MAX_COMMENT = 15_000
"""Maximum length of one comment, in characters."""
MOST_REASONS = 40
"""Maximum number of omissions that are listed individually."""

MAX_LINE = 500
"""Maximum length of a value that is shown on one line, in characters."""
MAX_INSTRUCTION = 10_000
"""Maximum length of the instruction, in characters."""


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
    dialect: str = "tools",
    threads: bool = True,
) -> str:
    """Return the task prompt.

    base, root: the commit that the work starts from, and the repository's path in the sandbox.
    reachable: the hosts that programs in the sandbox can reach; "" for none.
    asks, reviews: the result is an answer or report instead of a change; it is a review.
    calls: the agent does a specific kind of work, described in its system prompt.
    diff, dialect: the diff of the task's pull request, and the dialect of the agent.
    threads: its `finish` takes an answer for each review thread that it is asked about.
    """
    requester = task.trigger.actor.login
    asked = render_requested_threads(task.asked, requester, dialect, offered=threads)
    room = PromptRoom(ROOM - len(str(asked or "")))
    values = {
        "title": _line(task.title),
        "instruction": room.cut(task.trigger.instruction.strip(), MAX_INSTRUCTION),
        "body": room.cut(task.body, MAX_BODY),
        "author": _who(task.author, task.association, requester) if task.author else "",
        "form": render_form(task.form, room),
        "facts": render_facts(task),
        "requester": _line(requester),
        "asked": asked,
        "checks": render_failed_checks(task.checks, room),
        "follows": _follows(task),
        "pull": fit_pull(
            render_pull_request(task.pull, diff, [each.thread.id for each in task.asked]), room
        ),
        "comments": _comments(task.comments, requester, room),
        "references": render_references(task.references, room),
        "pictures": render_pictures(task.pictures),
    }
    return render(
        "agent/task.md.j2",
        **values,
        left_out=[_line(reason) for reason in task.left_out[:MOST_REASONS]],
        more_left_out=max(0, len(task.left_out) - MOST_REASONS),
        number=task.trigger.number,
        is_pull_request=task.trigger.is_pull_request,
        check=bool(task.trigger.check),
        base_branch=_line(task.base_branch),
        base=base,
        root=root,
        reachable=reachable,
        asks=asks,
        reviews=reviews,
        calls=calls,
        marker=_marker(repr(values), task),
    ).strip()


def _comments(
    comments: tuple[Comment, ...], requester: str, room: PromptRoom
) -> list[dict[str, Any]]:
    """Return the oldest and the newest comments that fit, in chronological order."""
    most = max(LEAST_OF_COMMENTS, min(MAX_COMMENTS, room.left))
    each = min(MAX_COMMENT, int(most * BEGINNING) - 100)  # 100: the note about the truncation
    cut = [c.model_copy(update={"body": truncate_middle(c.body, each)}) for c in comments]
    told = shorten_thread(cut, most)
    room.left -= sum(len(comment.body) for comment in told)
    return [
        {
            "by": _speaker(comment, requester),
            "at": f"{comment.created_at:%Y-%m-%d %H:%M}",
            "body": comment.body.strip(),
            "skipped": comment.skipped,
        }
        for comment in told
    ]


def _speaker(comment: Comment, requester: str) -> str:
    if comment.is_ours:
        return "yourself at the end of an earlier run"
    return _who(comment.author, comment.association, requester)


def _follows(task: Task) -> dict[str, Any] | None:
    """Return the values of the open pull request that the change is added to, if any."""
    follows = task.follows
    if follows is None:
        return None
    names = {"branch": _line(follows.branch), "base_branch": _line(follows.base_branch)}
    return {"number": follows.number, "title": _line(follows.title), **names}


def _who(author: str, association: str, requester: str) -> str:
    """Return the author with the association.

    The requester is marked as such and is known to be authorized.
    """
    if requester and author.casefold() == requester.casefold():
        known = f"{_line(association)}, " if association else ""
        return f"{_line(author)} ({known}who asks)"
    return who(author, association) if association else _line(author)


def _line(text: str) -> str:
    return truncate_middle(" ".join(text.split()), MAX_LINE)


def _marker(shown: str, task: Task) -> str:
    """Return a word that no untrusted text contains. The same task gives the same word."""
    words = task.model_dump_json(exclude={"pictures": {"__all__": {"data"}}})
    whole = f"{shown}\n{words}".lower()
    seed = whole
    while True:
        word = hashlib.sha256(seed.encode(errors="replace")).hexdigest()[:16]
        if word not in whole:
            return word
        seed += word
