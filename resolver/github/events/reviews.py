"""Parse a review, or a comment on the code of a pull request, into a trigger.

One submitted review is one request, however many events it causes: all of them have the same key,
and the run reads the review's other parts from GitHub. GitHub treats a single comment on a line as
a review of its own, and so does this module.

Commands that control a run at work belong into the conversation of the pull request, where
everybody who waits for the run sees them. In a review they are ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from resolver.github.events.commands import asks_for_nothing, read_instruction
from resolver.github.events.ignored import IgnoredEvent, ListeningPolicy, is_our_text
from resolver.github.events.mention import find_instruction
from resolver.github.events.payloads import PullRequestEvent, ReviewCommentEvent, ReviewEvent, User
from resolver.github.events.snapshot import snapshot_of
from resolver.models.run import Actor, Command, Trigger, TriggerKind

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
