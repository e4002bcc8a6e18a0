"""Parse a review, or a comment on the code of a pull request, into a trigger.

One submitted review is one request, however many events it causes: all of them have the same key,
and the run reads the review's other parts from GitHub. GitHub treats a single comment on a line as
a review of its own, and so does this module. Which review threads the review asks about and what it
says as a whole is the same whichever of its events arrived first. No network is used.

Commands that control a run at work belong into the conversation of the pull request, where
everybody who waits for the run sees them. In a review they are ignored.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from resolver.github.events.commands import asks_for_nothing, find_instruction, read_instruction
from resolver.github.events.payloads import (
    PullRequestEvent,
    ReviewCommentEvent,
    ReviewEvent,
    User,
    snapshot_of,
)
from resolver.github.events.permission import IgnoredEvent, ListeningPolicy, is_our_text
from resolver.models.pull_request import AskedThread, AuthoredText, PullRequestContext, ReviewThread
from resolver.models.run import Actor, Command, Trigger, TriggerKind

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


ASKED_HERE = frozenset(
    {Command.FIX, Command.QUESTION, Command.REVIEW, Command.UPDATE, Command.HELP}
)
"""Commands that a review can give."""


@dataclass(frozen=True)
class _Said:
    """A text that somebody wrote in a review.

    Attributes:
        kind: Kind of the trigger that it becomes.
        id: Id of the review or of the comment.
        review: Id of the review that it belongs to, when known.
        author: Its author; None when the account was deleted.
        body: The text.
        at: When it was made public.
        seen: The commit that its author looked at; "" when the event does not say.
    """

    kind: TriggerKind
    id: int
    review: int | None
    author: User | None
    body: str
    at: datetime
    seen: str = ""


def from_review(
    name: str, payload: Mapping[str, Any], listening: ListeningPolicy
) -> Trigger | IgnoredEvent:
    """Return the trigger for the event, or the reason why there is none.

    Raises pydantic's ValidationError if the payload does not have the documented form.
    """
    event: PullRequestEvent
    if name == "pull_request_review":
        event = review = ReviewEvent.model_validate(payload)
        words, at = review.review, review.review.submitted_at
        if event.action != "submitted" or at is None:
            return IgnoredEvent(f"the review was {event.action}, only a new one starts work")
        kind, body = TriggerKind.REVIEW_SUBMITTED, words.body or ""
        said = _Said(kind, words.id, words.id, words.user, body, at, words.commit_id or "")
    else:
        event = commented = ReviewCommentEvent.model_validate(payload)
        if event.action != "created":
            return IgnoredEvent(f"the comment was {event.action}, only a new one starts work")
        line = commented.comment
        at = max(line.created_at, line.updated_at)
        kind, body = TriggerKind.REVIEW_COMMENT, line.body or ""
        seen = "" if line.in_reply_to_id else line.commit_id
        said = _Said(kind, line.id, line.pull_request_review_id, line.user, body, at, seen)
    if said.author is None or said.author.id != event.sender.id:
        return IgnoredEvent("the words' author didn't send them")
    return listening.ignores(said.author) or _asked(event, said, listening.mention)


def review_key(review: int) -> str:
    """Return the trigger key shared by everything that one submitted review asks."""
    return f"review:{review}"


def _asked(event: PullRequestEvent, said: _Said, mention: str) -> Trigger | IgnoredEvent:
    """Return the trigger for a text of a review, or the reason why it asks for nothing."""
    if is_our_text(said.body):
        return IgnoredEvent("it's our own")
    instruction = find_instruction(said.body, mention)
    if instruction is None:
        return IgnoredEvent(f"the words don't mention {mention}")
    if asks_for_nothing(instruction):
        return IgnoredEvent("the words ask for nothing")
    asked = read_instruction(instruction, pull_request=True)
    if asked.command not in ASKED_HERE:
        return IgnoredEvent(f"{asked.command.value} is said in the conversation, not on the code")
    pull, sender = event.pull_request, event.sender
    return Trigger(
        key=review_key(said.review) if said.review else f"{said.kind.value}:{said.id}",
        kind=said.kind,
        repository=event.repository.full_name,
        number=pull.number,
        is_pull_request=True,
        actor=Actor(login=sender.login, id=sender.id, is_bot=sender.type == "Bot"),
        instruction=asked.words,
        command=asked.command,
        named=asked.named,
        at=said.at,
        comment_id=said.id,
        snapshot=snapshot_of(pull),
        head=said.seen or pull.head.sha,
        base=pull.base.ref,
        review_id=said.review,
    )
