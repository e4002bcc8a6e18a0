"""Replies in the review threads that a request was about.

A reply contains what the agent says it did, and the commit. Other threads are not touched.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from resolver.config.templates import render
from resolver.errors import ForgeError
from resolver.events.run_log import DONE, RunLog
from resolver.github.comments.report import Report
from resolver.github.forge import Forge
from resolver.models.pull_request import AskedThread, ThreadAnswer, ThreadReply
from resolver.models.run import Outcome
from resolver.security.redaction import Redactor

ADDED = frozenset({"added", "pushed", "updated"})
"""The values of `how` with which a change became a part of the pull request."""


@dataclass(frozen=True)
class RepliesPosted:
    """The replies that were posted.

    comment_url: URL of the reply that answers the whole request, "" if there is none.
    warnings: what could not be done.
    """

    comment_url: str = ""
    warnings: tuple[str, ...] = ()


def answer_threads(
    report: Report, log: RunLog, forge: Forge, redactor: Redactor, *, resolve: bool
) -> RepliesPosted:
    """Post the replies of a finished run.

    A run that did not finish posts none; its final comment says how it ended. Never raises
    ForgeError: replies that were posted stay, and a warning says what is missing.

    resolve: mark the threads that were addressed as resolved.
    """
    task, outcome, publication = report.task, report.outcome, report.publication
    if task is None or outcome is None or not task.asked or outcome.state not in DONE:
        return RepliesPosted()
    finish = log.state.finish
    said = finish.threads if finish else ()
    replies = compose_replies(task.asked, said, outcome, _is_public(report))
    if not replies:
        return RepliesPosted()
    # A question in a single thread is answered in that thread only, without a final comment.
    whole = report.answers and report.trigger.in_thread and len(task.asked) == 1
    started = time.monotonic()
    replies = tuple(
        redactor.redact_model(each.model_copy(update={"whole": whole})) for each in replies
    )
    commit = (publication.commit or "") if publication.how in ADDED else ""
    try:
        done = forge.answer_threads(report, replies, commit, resolve=resolve)
    except ForgeError as error:
        words = render("run/unanswered_threads.md.j2", why=error.what, next_step=error.next_step)
        return RepliesPosted(warnings=(words.strip(),))
    log.stage("answered", done.url, time.monotonic() - started)
    warnings: tuple[str, ...] = ()
    if done.gone or done.unresolved:
        words = render("run/answered_threads.md.j2", gone=done.gone, unresolved=done.unresolved)
        warnings = (words.strip(),)
    return RepliesPosted(done.url if whole else "", warnings)


def compose_replies(
    asked: Sequence[AskedThread], said: Sequence[ThreadAnswer], outcome: Outcome, is_public: bool
) -> tuple[ThreadReply, ...]:
    """Return the replies, in the order of the threads.

    said: the agent's answers.
    is_public: whether a change of this run is published; without one, nothing counts as addressed.

    If there is only one thread and the agent has not answered it, its final message is the reply.
    """
    if len(asked) == 1 and not said:
        words = outcome.message if not is_public else outcome.change or outcome.message
        done = is_public and outcome.task_completed
        return (ThreadReply(asked=asked[0], done=done, words=words),) if words.strip() else ()
    by_id = {each.id: each for each in said}
    replies = []
    for each in asked:
        answer = by_id.get(each.label)
        done = answer is not None and answer.addressed and is_public
        if answer is not None and (done or answer.answer.strip()):
            replies.append(ThreadReply(asked=each, done=done, words=answer.answer))
    return tuple(replies)


def _is_public(report: Report) -> bool:
    """Return True if the people who made the request can see a change of this run."""
    publication = report.publication
    if report.answers or publication.how == "unchanged":
        return False
    if publication.how in ADDED:
        return publication.commit is not None
    return publication.pull_request is not None and publication.pull_request.url is not None
