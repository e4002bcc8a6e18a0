"""Publishes a review: the reviewer's comments, and replies in the threads of earlier reviews.

Comments that repeat an open thread are left out, and the most important ones come first.

A reply in a thread contains what the agent says it did, and the commit. Threads that the request
was not about are not touched.
"""

import time
from collections.abc import Iterable, Sequence

from resolver.agents.built_in import REVIEWER
from resolver.config.templates import render
from resolver.errors import ForgeError
from resolver.events import actions as a
from resolver.events.log import Event
from resolver.events.run_log import DONE_STATES, RunLog
from resolver.git.workspace import Workspace
from resolver.github.comments.report import Report
from resolver.github.comments.review import remark_body, review_body
from resolver.github.github_forge import GitHubForge
from resolver.models.pull_request import (
    PostedReplies,
    PublishedReview,
    PullRequestContext,
    Remark,
    Review,
    ReviewThread,
    ThreadAnswer,
    ThreadReply,
    ThreadRequest,
)
from resolver.models.run import Outcome
from resolver.publishing.review_comments import fits_in_diff, match_diff_side, to_remark
from resolver.security.redaction import Redactor

MAX_COMMENTS = 25
"""Maximum number of comments in one review; the most important are kept."""

_IMPORTANCE = {"high": 0, "medium": 1, "low": 2}


def review_remarks(events: Iterable[Event]) -> list[Remark]:
    """Return the comments that the agent made for its last review, in order.

    Of several comments on the same lines, only the last is returned.
    """
    remarks: dict[tuple[str, str, int, int], Remark] = {}
    is_finished = False
    for event in events:
        # The comments before a Finish were published by the earlier run that this one continues.
        if isinstance(event, a.ReviewComment | a.Finish) and is_finished:
            remarks, is_finished = {}, False
        if isinstance(event, a.Finish):
            is_finished = True
        if isinstance(event, a.ReviewComment):
            remark = to_remark(event)
            key = (remark.path, remark.side, remark.first, remark.line)
            remarks.pop(key, None)
            remarks[key] = remark
    return list(remarks.values())


def place_remarks(
    remarks: Sequence[Remark],
    pull: PullRequestContext,
    own_login: str,
    max_comments: int = MAX_COMMENTS,
) -> Review:
    """Return the review with these comments.

    own_login: Resolver's login. Comments that repeat one of its open threads are left out.
    """
    open_threads = [t for t in pull.threads if not t.is_resolved and not t.is_outdated]
    located = [match_diff_side(remark, pull.files) for remark in remarks]
    new = [r for r in located if not any(_is_repeated_by(t, r, own_login) for t in open_threads)]
    by_importance = sorted(new, key=lambda remark: _IMPORTANCE[remark.severity])
    chosen = by_importance[:max_comments]
    return Review(
        commit=pull.head,
        inline_comments=tuple(r for r in chosen if fits_in_diff(r, pull.files)),
        body_comments=tuple(r for r in chosen if not fits_in_diff(r, pull.files)),
        repeated=len(remarks) - len(new),
        left_out=len(by_importance) - len(chosen),
    )


def _is_repeated_by(thread: ReviewThread, remark: Remark, own_login: str) -> bool:
    """Return True if the thread is one of Resolver's that ends on the same line."""
    where = (thread.path, thread.side, thread.line)
    is_own = thread.comments[0].author.casefold() == own_login.casefold()
    return is_own and where == (remark.path, remark.side, remark.line)


def build_review(workspace: Workspace, log: RunLog, own_login: str) -> Review | None:
    """Return the review made of the agent's comments, None if there is no pull request."""
    pull = workspace.pull
    return place_remarks(review_remarks(log.state.events), pull, own_login) if pull else None


def render_review(report: Report, review: Review) -> str:
    """Return the whole review as text, for a person who doesn't see it on GitHub."""
    remarks = [(remark.place, remark_body(report, remark)) for remark in review.inline_comments]
    return render("run/review.md.j2", body=review_body(report, review), remarks=remarks)


def publish_review(
    report: Report, review: Review, forge: GitHubForge, log: RunLog
) -> PublishedReview:
    """Publish the review, or find the one that an earlier attempt has published."""
    started = time.monotonic()
    published = forge.publish_review(report, review)
    log.stage("reviewed", published.url, time.monotonic() - started)
    return published


def append_remarks(outcome: Outcome, log: RunLog) -> Outcome:
    """Return the outcome with the reviewer's comments added to its message.

    It applies to a reviewer without a pull request, whose comments can't be shown in a diff.
    """
    opening = log.opening
    if opening is None or opening.agent != REVIEWER.name or opening.task.pull is not None:
        return outcome
    remarks = review_remarks(log.state.events)
    message = render("run/remarks.md.j2", message=outcome.message, remarks=remarks).strip()
    return outcome.model_copy(update={"message": message})


ADDED_METHODS = frozenset({"added", "pushed", "updated"})
"""The values of `how` with which a change became a part of the pull request."""


def answer_threads(
    report: Report, log: RunLog, forge: GitHubForge, redactor: Redactor
) -> PostedReplies:
    """Post the replies of a finished run.

    A run that did not finish posts none; its final comment says how it ended. Never raises
    ForgeError: replies that were posted stay, and a warning says what is missing.
    """
    task, outcome, publication = report.task, report.outcome, report.publication
    if task is None or outcome is None or not task.asked or outcome.state not in DONE_STATES:
        return PostedReplies()
    finish = log.state.finish
    answers = finish.threads if finish else ()
    replies = compose_replies(task.asked, answers, outcome, _is_public(report))
    if not replies:
        return PostedReplies()
    # A question in a single thread is answered in that thread only, without a final comment.
    is_only_answer = report.answers and report.trigger.in_thread and len(task.asked) == 1
    started = time.monotonic()
    replies = tuple(
        redactor(reply.model_copy(update={"is_only_answer": is_only_answer})) for reply in replies
    )
    commit = publication.commit if publication.how in ADDED_METHODS else None
    try:
        posted = forge.answer_threads(report, replies, commit)
    except ForgeError as error:
        warning = render("run/unanswered_threads.md.j2", why=error.what, next_step=error.next_step)
        return PostedReplies(warnings=(warning.strip(),))
    log.stage("answered", posted.url, time.monotonic() - started)
    warnings: tuple[str, ...] = ()
    if posted.missing_places:
        warning = render("run/answered_threads.md.j2", gone=posted.missing_places)
        warnings = (warning.strip(),)
    return PostedReplies((posted.url or None) if is_only_answer else None, warnings)


def compose_replies(
    threads: Sequence[ThreadRequest],
    answers: Sequence[ThreadAnswer],
    outcome: Outcome,
    is_public: bool,
) -> tuple[ThreadReply, ...]:
    """Return the replies, in the order of the threads.

    answers: what the agent replied to each thread.
    is_public: whether a change of this run is published; without one, nothing counts as addressed.

    If there is only one thread and the agent has not answered it, its final message is the reply.
    """
    if len(threads) == 1 and not answers:
        text = outcome.message if not is_public else outcome.change or outcome.message
        is_addressed = is_public and outcome.task_completed
        return (
            (ThreadReply(thread=threads[0], is_addressed=is_addressed, text=text),)
            if text.strip()
            else ()
        )
    by_id = {answer.id: answer for answer in answers}
    replies = []
    for thread in threads:
        answer = by_id.get(thread.label)
        is_addressed = answer is not None and answer.addressed and is_public
        if answer is not None and (is_addressed or answer.answer.strip()):
            replies.append(
                ThreadReply(thread=thread, is_addressed=is_addressed, text=answer.answer)
            )
    return tuple(replies)


def _is_public(report: Report) -> bool:
    """Return True if the people who made the request can see a change of this run."""
    publication = report.publication
    if report.answers or publication.how == "unchanged":
        return False
    if publication.how in ADDED_METHODS:
        return publication.commit is not None
    return publication.pull_request is not None and publication.pull_request.url is not None
