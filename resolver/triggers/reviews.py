"""From a review, or a comment on the code of a pull request, to a Trigger.

What steers a run at work is said in the conversation below the code, where everybody who waits for
the run sees it: here it is ignored.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from resolver.model import Actor, Command, Snapshot, Trigger, TriggerKind
from resolver.triggers.commands import asks_for_nothing, read_instruction
from resolver.triggers.ignored import Ignored, not_a_person
from resolver.triggers.mention import find_instruction
from resolver.triggers.payloads import PullRequestEvent, ReviewCommentEvent, ReviewEvent, User

ASKED_HERE = frozenset({Command.FIX, Command.QUESTION, Command.REVIEW, Command.HELP})
"""What can be asked in a review."""


@dataclass(frozen=True)
class _Said:
    """What somebody said in a review. kind: of the trigger that it makes."""

    kind: TriggerKind
    id: int
    author: User | None
    body: str
    at: datetime


def from_review(
    name: str,
    payload: Mapping[str, Any],
    mention: str,
    bot_login: str,
    allowed_users: Collection[str],
) -> Trigger | Ignored:
    """What the event asks for. Raises pydantic's ValidationError for a payload that is none."""
    event: PullRequestEvent
    if name == "pull_request_review":
        event = review = ReviewEvent.model_validate(payload)
        words, at = review.review, review.review.submitted_at
        if event.action != "submitted" or at is None:
            return Ignored(f"the review was {event.action}, only a new one starts work")
        said = _Said(TriggerKind.REVIEW_SUBMITTED, words.id, words.user, words.body or "", at)
    else:
        event = commented = ReviewCommentEvent.model_validate(payload)
        if event.action != "created":
            return Ignored(f"the comment was {event.action}, only a new one starts work")
        line = commented.comment
        at = max(line.created_at, line.updated_at)
        said = _Said(TriggerKind.REVIEW_COMMENT, line.id, line.user, line.body or "", at)
    if said.author is None or said.author.id != event.sender.id:
        return Ignored("the words' author didn't send them")
    ignored = not_a_person(said.author, bot_login, allowed_users)
    return ignored or _asked(event, said, mention)


def _asked(event: PullRequestEvent, said: _Said, mention: str) -> Trigger | Ignored:
    instruction = find_instruction(said.body, mention)
    if instruction is None:
        return Ignored(f"the words don't mention {mention}")
    if asks_for_nothing(instruction):
        return Ignored("the words ask for nothing")
    asked = read_instruction(instruction, pull_request=True)
    if asked.command not in ASKED_HERE:
        return Ignored(f"{asked.command.value} is said in the conversation, not on the code")
    pull, sender = event.pull_request, event.sender
    author = pull.user.login if pull.user else ""
    return Trigger(
        key=f"{said.kind.value}:{said.id}",
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
        snapshot=Snapshot(title=pull.title, body=pull.body or "", author=author),
        head=pull.head.sha,
    )
