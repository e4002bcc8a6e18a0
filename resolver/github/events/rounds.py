"""Combine the events of one submitted review into one request.

The functions determine which review threads the review asks about and what it says as a whole. The
result is the same whichever of the review's events arrived first. No network is used.
"""

from collections.abc import Iterator, Sequence

from resolver.github.events.commands import read_instruction
from resolver.github.events.mention import find_instruction
from resolver.models.pull_request import AskedThread, AuthoredText, PullRequestContext, ReviewThread
from resolver.models.run import Command, Trigger, TriggerKind

MOST_ASKED = 50
"""Maximum number of review threads in one request. The others need another request."""

_ANSWERED = frozenset({Command.FIX, Command.QUESTION})
"""Commands that are carried out and answered thread by thread."""


def requested_threads(
    trigger: Trigger, pull: PullRequestContext, mention: str
) -> tuple[AskedThread, ...]:
    """Return the review threads that the trigger's review asks about, oldest first.

    They are labelled T1, T2, and so on. If the body of the review mentions Resolver, it asks about
    all threads it comments in; otherwise each comment with a mention asks for itself. Only what the
    requester wrote in that review counts.
    """
    if trigger.command not in _ANSWERED:
        return ()
    whole = _body(trigger, pull, mention) is not None
    asked: list[AskedThread] = []
    for thread in pull.threads:
        said = [w for w in thread.comments if _is_of_request(w, trigger)]
        asking = said if whole else [w for w in said if _asks(w, mention)]
        if asking and len(asked) < MOST_ASKED:
            words = "\n\n".join(find_instruction(w.body, mention) or w.body for w in asking)
            asked.append(AskedThread(label=f"T{len(asked) + 1}", thread=thread, request=words))
    return tuple(asked)


def render_deferred_threads(
    trigger: Trigger, pull: PullRequestContext, asked: Sequence[AskedThread]
) -> str:
    """Return a sentence about the threads beyond the maximum, or "" when there are none."""
    if len(asked) < MOST_ASKED:
        return ""
    known = {each.thread.id for each in asked}
    more = [t for t in pull.threads if t.id not in known and _is_in(t, trigger)]
    return f"{len(more)} more conversations of the review, beyond {MOST_ASKED}" if more else ""


def whole_request(
    trigger: Trigger, pull: PullRequestContext, asked: Sequence[AskedThread], mention: str
) -> Trigger:
    """Return the trigger with the text of the whole review.

    Its command becomes work if any part of the review asks for work.
    """
    body = _body(trigger, pull, mention)
    if not asked or (len(asked) == 1 and body is None):
        return trigger
    parts = [body] if body else []
    parts += [f"{each.label}: {each.request}" for each in asked]
    works = any(
        read_instruction(words, pull_request=True).command is Command.FIX
        for words in _instructions(trigger, asked, body, mention)
    )
    command = Command.FIX if works and trigger.command is Command.QUESTION else trigger.command
    return trigger.model_copy(update={"instruction": "\n\n".join(parts), "command": command})


def _body(trigger: Trigger, pull: PullRequestContext, mention: str) -> str | None:
    """Return what the review's own body asks, or None when it does not mention Resolver."""
    for review in pull.reviews:
        if review.words.id == trigger.review_id and _is_author(review.words, trigger):
            return find_instruction(review.words.body, mention)
    # The body was edited after the request and is not used; the event holds the original text.
    submitted = trigger.kind is TriggerKind.REVIEW_SUBMITTED
    return trigger.instruction if submitted and trigger.review_id is not None else None


def _instructions(
    trigger: Trigger, asked: Sequence[AskedThread], body: str | None, mention: str
) -> Iterator[str]:
    """Yield the text after each mention in the review's body and in its threads."""
    if body is not None:
        yield body
    for each in asked:
        for words in each.thread.comments:
            found = find_instruction(words.body, mention)
            if found is not None and _is_of_request(words, trigger):
                yield found


def _is_in(thread: ReviewThread, trigger: Trigger) -> bool:
    """Return True if the review comments in this thread."""
    return any(_is_of_request(words, trigger) for words in thread.comments)


def _is_of_request(words: AuthoredText, trigger: Trigger) -> bool:
    """Return True if the text is part of the trigger's review and was written by the requester."""
    of_review = trigger.review_id is not None and words.review == trigger.review_id
    return of_review and _is_author(words, trigger)


def _is_author(words: AuthoredText, trigger: Trigger) -> bool:
    """Return True if the requester wrote the text."""
    return words.author.casefold() == trigger.actor.login.casefold()


def _asks(words: AuthoredText, mention: str) -> bool:
    """Return True if the text contains a mention."""
    return find_instruction(words.body, mention) is not None
