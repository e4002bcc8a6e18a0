"""The answers in the conversations on lines that a request was about: what the agent says it did in
each, said there, with the commit. No other conversation is touched.
"""

import time
from collections.abc import Sequence

from resolver.errors import ForgeError
from resolver.forge.base import Forge
from resolver.model import Outcome
from resolver.pull import AskedThread, ThreadAnswer, ThreadReply
from resolver.record import Record
from resolver.runlog import DONE
from resolver.templates import render

ADDED = frozenset({"added", "pushed", "updated"})
"""How a change became part of the pull request that was asked about."""


def answer_threads(record: Record, forge: Forge) -> None:
    """Reply where there is something to say. Nothing of a run that did not finish: only its comment
    tells. Never raises ForgeError: what is public stays so, and the comment says what is missing.
    """
    task, outcome = record.task, record.outcome
    if task is None or outcome is None or not task.asked or record.log is None:
        return
    if outcome.state not in DONE or record.failure is not None:
        return
    finish = record.log.state.finish
    said = finish.threads if finish else ()
    replies = replies_to(task.asked, said, outcome, _is_public(record))
    if not replies or not record.job.publish:
        return
    # A question in one conversation is answered there, and in no second place.
    whole = record.answers and record.job.trigger.in_thread and len(task.asked) == 1
    started = time.monotonic()
    clean = record.redactor()
    replies = tuple(
        clean.redact_model(each.model_copy(update={"whole": whole})) for each in replies
    )
    commit = (record.publication.commit or "") if record.publication.how in ADDED else ""
    resolve = record.settings.resolve_threads == "addressed"
    try:
        done = forge.answer_threads(record.report(), replies, commit, resolve=resolve)
    except ForgeError as error:
        words = render("run/unanswered_threads.md.j2", why=error.what, next_step=error.next_step)
        record.warnings.append(words.strip())
        return
    record.log.stage("answered", done.url, time.monotonic() - started)
    if done.gone or done.unresolved:
        words = render("run/answered_threads.md.j2", gone=done.gone, unresolved=done.unresolved)
        record.warnings.append(words.strip())
    if whole and done.url:
        record.publication = record.publication.model_copy(update={"comment_url": done.url})


def replies_to(
    asked: Sequence[AskedThread], said: Sequence[ThreadAnswer], outcome: Outcome, is_public: bool
) -> tuple[ThreadReply, ...]:
    """What is to be said, in the order of the conversations.

    said: the agent's answers. is_public: whether a change of this run is; without one nothing was
    done. The only conversation that was asked about, and that the agent says nothing of by itself,
    gets its closing words.
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


def _is_public(record: Record) -> bool:
    """Whether a change of this run can be seen by the people who asked."""
    publication = record.publication
    if record.answers or publication.how == "unchanged":
        return False
    if publication.how in ADDED:
        return publication.commit is not None
    return publication.pull_request is not None and publication.pull_request.url is not None
