"""The first user message: the task as the agent gets it.

The template reads the task's own values. Where its parts were not limited when they were read, the
longest are shortened here. All untrusted text is enclosed in lines with a marker that does not
occur in it, so that no text can end its own block, whatever markup it imitates.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from pydantic import BaseModel

from resolver.config.templates import render
from resolver.models.pull_request import (
    PullRequestContext,
    ReviewThread,
    ThreadRequest,
)
from resolver.models.run import Comment, Task
from resolver.models.truncate import marker_for, shorten_thread, truncate_middle

# Maximum lengths of single parts, in characters.
MAX_INSTRUCTION_LENGTH = 10_000
MAX_BODY_LENGTH = 30_000
MAX_DIFF_LENGTH = 50_000
MAX_COMMENT_LENGTH = 9_000
MAX_REVIEW_LENGTH = 4_000
MAX_THREAD_LENGTH = 6_000

# Maximum lengths of all parts of a kind together, in characters.
MAX_COMMENTS_LENGTH = 40_000
MAX_THREADS_LENGTH = 30_000
MAX_REQUESTED_THREADS_LENGTH = 50_000

MAX_REVIEWS = 10
MAX_SUBJECTS = 15
"""Maximum number of commit subjects that are shown."""

MAX_LISTED_OMISSIONS = 40
"""Maximum number of omissions that are listed individually."""

MAX_TEMPLATE_LENGTH = 8_000
"""Maximum length of a pull request template that is shown, in characters.

A longer one is not shown at all, because a part of it can't be filled in.
"""


Part = TypeVar("Part", bound=BaseModel)


def render_task(
    task: Task,
    base: str,
    root: str,
    reachable: str | None = None,
    *,
    expects_answer: bool = False,
    expects_review: bool = False,
    has_fixed_task: bool = False,
    diff: str | None = None,
    dialect: str = "tools",
    takes_answers: bool = True,
    subjects: Sequence[str] = (),
    template: str | None = None,
) -> str:
    """Return the task prompt.

    base, root: the commit that the work starts from, and the repository's path in the sandbox.
    reachable: the hosts that programs in the sandbox can reach; None for none.
    expects_answer, expects_review: the result is an answer instead of a change; it is a review.
    has_fixed_task: the agent does a specific kind of work, described in its system prompt.
    diff, dialect: the diff of the task's pull request, and the dialect of the agent.
    takes_answers: its `finish` takes an answer for each review thread that it is asked about.
    subjects, template: of the repository's newest commits, and for its pull requests.
    """
    asked = _fit_requested_threads(task.asked)
    fitted = _fit_task(task)
    pull, fitted_pull = task.pull, fitted.pull
    threads_left_out = 0
    if pull and fitted_pull:
        threads_left_out = len(_other_threads(task)) - len(fitted_pull.threads)
    values = {
        "task": fitted,
        "asked": asked,
        "dialect": dialect,
        "threads_left_out": threads_left_out,
        "more_left_out": len(task.left_out) - len(fitted.left_out),
        "diff": truncate_middle(diff, MAX_DIFF_LENGTH) if diff else "(nothing)",
        "subjects": subjects[:MAX_SUBJECTS],
        "template": template.strip() if template and len(template) <= MAX_TEMPLATE_LENGTH else None,
        "cut": truncate_middle,
        "max_thread": MAX_THREAD_LENGTH,
        "base": base,
        "root": root,
        "reachable": reachable,
        "expects_answer": expects_answer,
        "expects_review": expects_review,
        "has_fixed_task": has_fixed_task,
        "takes_answers": takes_answers,
    }
    # The parts of the task that are left out here must not contain the marker either: the agent
    # may read them later.
    task_json = task.model_dump_json(exclude={"pictures": {"__all__": {"data"}}})
    marker = marker_for(f"{render('agent/task.md.j2', marker='', **values)}\n{task_json}")
    return render("agent/task.md.j2", marker=marker, **values).strip()


def _fit_task(task: Task) -> Task:
    """Return the task with texts that fit."""
    values = {
        "trigger": _cut(task.trigger, instruction=MAX_INSTRUCTION_LENGTH),
        "body": truncate_middle(task.body.strip(), MAX_BODY_LENGTH),
        "pull": _fit_pull_request(task.pull, _other_threads(task)) if task.pull else None,
        "comments": _fit_comments(task.comments),
        "left_out": task.left_out[:MAX_LISTED_OMISSIONS],
    }
    return task.model_copy(update=values)


def _cut(value: Part, **limits: int) -> Part:
    """Return the value with these texts truncated."""
    texts = {
        name: truncate_middle(getattr(value, name).strip(), limit) for name, limit in limits.items()
    }
    return value.model_copy(update=texts)


def _fit_pull_request(
    pull: PullRequestContext, threads: Iterable[ReviewThread]
) -> PullRequestContext:
    """Return the pull request with texts that fit, and as many of the threads as fit."""
    remaining = MAX_THREADS_LENGTH
    shown: list[ReviewThread] = []
    for thread in threads:
        remaining -= min(MAX_THREAD_LENGTH, sum(len(comment.body) for comment in thread.comments))
        if remaining < 0:
            break
        shown.append(thread)
    values = {
        "threads": tuple(shown),
        "reviews": tuple(
            review.model_copy(update={"text": _cut(review.text, body=MAX_REVIEW_LENGTH)})
            for review in pull.reviews[-MAX_REVIEWS:]
        ),
    }
    return pull.model_copy(update=values)


def _other_threads(task: Task) -> list[ReviewThread]:
    """Return the threads that the request is not about: open ones first, then the newest."""
    requested = {asked.thread.id for asked in task.asked}
    threads = task.pull.threads if task.pull else ()
    newest = [thread for thread in reversed(threads) if thread.id not in requested]
    return sorted(newest, key=lambda thread: thread.is_resolved or thread.is_outdated)


def _fit_comments(comments: Sequence[Comment]) -> tuple[Comment, ...]:
    """Return the oldest and the newest comments that fit, in chronological order."""
    return shorten_thread(
        [_cut(comment, body=MAX_COMMENT_LENGTH) for comment in comments], MAX_COMMENTS_LENGTH
    )


def _fit_requested_threads(threads: Iterable[ThreadRequest]) -> tuple[ThreadRequest, ...]:
    """Return the threads that the request is about. Of those beyond the limit, only the request
    is left."""
    remaining = MAX_REQUESTED_THREADS_LENGTH
    fitted: list[ThreadRequest] = []
    for requested in threads:
        remaining -= _requested_length(requested)
        if remaining < 0:
            thread = requested.thread.model_copy(update={"comments": ()})
            request = truncate_middle(requested.request, MAX_THREAD_LENGTH // 4)
            values = {"thread": thread, "code": "", "request": request}
            requested = requested.model_copy(update=values)
        fitted.append(requested)
    return tuple(fitted)


def _requested_length(requested: ThreadRequest) -> int:
    """Return the approximate number of characters that the thread takes in the prompt."""
    comments = sum(len(comment.body) for comment in requested.thread.comments)
    conversation = comments or len(requested.request)
    return min(len(requested.code), MAX_THREAD_LENGTH) + min(conversation, MAX_THREAD_LENGTH)
