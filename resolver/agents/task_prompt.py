"""The first user message: the task as the agent gets it.

The template reads the task's own values. Before that, its texts are shortened to share one budget
of characters, the most important ones first. All untrusted text is enclosed in lines with a marker
that does not occur in it, so that no text can end its own block, whatever markup it imitates.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from resolver.agents.tags import write_tags
from resolver.config.templates import render
from resolver.events import actions as a
from resolver.models.issue_context import FailedCheck
from resolver.models.pull_request import (
    PullRequestContext,
    ReviewThread,
    ThreadAnswer,
    ThreadRequest,
)
from resolver.models.run import Comment, Task
from resolver.models.truncate import HEAD_SHARE, marker_for, shorten_thread, truncate_middle

MAX_PROMPT_LENGTH = 200_000
"""Approximate maximum length of a task prompt, in characters."""

MIN_PART_LENGTH = 400
"""Minimum number of characters that a part gets, even if the budget is used up."""

# Maximum lengths of single parts, in characters.
MAX_INSTRUCTION_LENGTH = 10_000
MAX_BODY_LENGTH = 40_000
MAX_CHECK_LENGTH = 8_000
MAX_COMMENT_LENGTH = 15_000
MAX_REVIEW_LENGTH = 4_000
MAX_REFERENCE_LENGTH = 3_000
MAX_THREAD_LENGTH = 6_000

# Maximum lengths of all parts of a kind together, in characters.
MAX_COMMENTS_LENGTH = 60_000
MAX_REFERENCES_LENGTH = 18_000
MAX_THREADS_LENGTH = 40_000
MAX_REQUESTED_THREADS_LENGTH = 80_000

MIN_COMMENTS_LENGTH = 20_000
"""Characters that are available for comments even if the prompt is full."""

MAX_REVIEWS = 10
MAX_SUBJECTS = 15
"""Maximum number of commit subjects that are shown."""

MAX_LISTED_OMISSIONS = 40
"""Maximum number of omissions that are listed individually."""

MAX_TEMPLATE_LENGTH = 8_000
"""Maximum length of a pull request template that is shown, in characters.

A longer one is not shown at all, because a part of it can't be filled in.
"""


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
    budget = _Budget(MAX_PROMPT_LENGTH - sum(map(_requested_length, asked)))
    fitted, diff = _fit_task(task, diff, budget)
    pull, fitted_pull = task.pull, fitted.pull
    threads_left_out = 0
    if pull and fitted_pull:
        threads_left_out = len(_other_threads(task)) - len(fitted_pull.threads)
    values = {
        "task": fitted,
        "asked": asked,
        "example": write_tags(_ANSWERS_EXAMPLE) if dialect == "tags" else None,
        "threads_left_out": threads_left_out,
        "more_left_out": len(task.left_out) - len(fitted.left_out),
        "diff": diff or "(nothing)",
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


_ANSWERS_EXAMPLE = a.Finish(
    message="Round half() to the nearest even",
    threads=(
        ThreadAnswer(id="T1", addressed=True, answer="Renamed to `half`, with its callers."),
        ThreadAnswer(id="T2", answer="It is kept: `cli.py` passes None here."),
    ),
)


@dataclass
class _Budget:
    """The character budget of a prompt. remaining: characters that are not used yet."""

    remaining: int

    def cut(self, text: str, max_length: int | None = None) -> str:
        """Return the text truncated to `max_length` characters or to what is left of the budget.

        The length of the result is subtracted from `remaining`. A text always gets MIN_PART_LENGTH
        characters, so that `remaining` can become negative.
        """
        available = max(self.remaining, MIN_PART_LENGTH)
        truncated = truncate_middle(text, min(max_length or available, available))
        self.remaining -= len(truncated)
        return truncated


def _fit_task(task: Task, diff: str | None, budget: _Budget) -> tuple[Task, str | None]:
    """Return the task and the diff with texts that fit. They share the budget in this order."""
    instruction = budget.cut(task.trigger.instruction.strip(), MAX_INSTRUCTION_LENGTH)
    body = budget.cut(task.body.strip(), MAX_BODY_LENGTH)
    checks = tuple(_fit_check(check, budget) for check in task.checks)
    diff = budget.cut(diff) if diff else None
    pull = _fit_pull_request(task.pull, _other_threads(task), budget) if task.pull else None
    comments = _fit_comments(task.comments, budget)
    references_budget = _Budget(min(budget.remaining, MAX_REFERENCES_LENGTH))
    references = tuple(
        one.model_copy(update={"body": references_budget.cut(one.body, MAX_REFERENCE_LENGTH)})
        for one in task.references
    )
    values = {
        "trigger": task.trigger.model_copy(update={"instruction": instruction}),
        "body": body,
        "checks": checks,
        "pull": pull,
        "comments": comments,
        "references": references,
        "left_out": task.left_out[:MAX_LISTED_OMISSIONS],
    }
    return task.model_copy(update=values), diff


def _fit_check(check: FailedCheck, budget: _Budget) -> FailedCheck:
    log = budget.cut(check.log, MAX_CHECK_LENGTH)
    summary = budget.cut(check.summary.strip(), MAX_CHECK_LENGTH // 2)
    return check.model_copy(update={"log": log, "summary": summary})


def _fit_pull_request(
    pull: PullRequestContext, threads: Iterable[ReviewThread], budget: _Budget
) -> PullRequestContext:
    """Return the pull request with texts that fit, and as many of the threads as fit."""
    remaining = min(MAX_THREADS_LENGTH, max(budget.remaining, MAX_THREAD_LENGTH))
    shown: list[ReviewThread] = []
    for thread in threads:
        length = min(MAX_THREAD_LENGTH, sum(len(comment.body) for comment in thread.comments))
        remaining -= length
        if remaining < 0:
            break
        budget.remaining -= length
        shown.append(thread)
    values = {
        "threads": tuple(shown),
        "closes": tuple(
            issue.model_copy(update={"body": budget.cut(issue.body)}) for issue in pull.closes
        ),
        "reviews": tuple(
            review.model_copy(
                update={
                    "text": review.text.model_copy(
                        update={"body": budget.cut(review.text.body, MAX_REVIEW_LENGTH)}
                    )
                }
            )
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


def _fit_comments(comments: Sequence[Comment], budget: _Budget) -> tuple[Comment, ...]:
    """Return the oldest and the newest comments that fit, in chronological order."""
    max_length = max(MIN_COMMENTS_LENGTH, min(MAX_COMMENTS_LENGTH, budget.remaining))
    max_comment_length = min(
        MAX_COMMENT_LENGTH, int(max_length * HEAD_SHARE) - 100
    )  # 100: the note about the truncation
    truncated = [
        c.model_copy(update={"body": truncate_middle(c.body, max_comment_length)}) for c in comments
    ]
    shown = shorten_thread(truncated, max_length)
    budget.remaining -= sum(len(comment.body) for comment in shown)
    return shown


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
