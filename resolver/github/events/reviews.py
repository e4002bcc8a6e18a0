"""From a review, or a comment on the code of a pull request, to a Trigger.

One submitted review is one request, whatever its words and its comments ask: all its events have
one key, and the run reads the others from the forge. A single comment on a line is a review of its
own for GitHub, and here.

What steers a run at work is said in the conversation below the code, where everybody who waits for
the run sees it: here it is ignored.
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
"""What can be asked in a review."""


@dataclass(frozen=True)
class _Said:
    """What somebody said in a review. kind: of the trigger that it makes. seen: the commit that
    they looked at, "" where the event does not tell."""

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
    """What the event asks for. Raises pydantic's ValidationError for a payload that is none."""
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
    """The key of all that is asked in one submitted review."""
    return f"review:{review}"


def _asked(event: PullRequestEvent, said: _Said, mention: str) -> Trigger | IgnoredEvent:
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
