"""Parses new comments and reviews into triggers.

One submitted review is one request, however many events it causes: all of them have the same key,
and the run reads the review's other parts from GitHub. GitHub treats a single comment on a line as
a review of its own, and so does this module.

Commands that control an active run belong in the conversation of the pull request, where everybody
who waits for the run sees them. In a review they are ignored.
"""

from collections.abc import Mapping
from typing import Any

from resolver.github.events.commands import REVIEW_COMMANDS, Instruction
from resolver.github.events.mentions import find_request
from resolver.github.events.payloads import IssueEvent, PullRequestEvent, Text, User, trigger_of
from resolver.github.events.permission import IgnoredEvent
from resolver.github.events.starting_events import ListeningPolicy
from resolver.models.run import Trigger, TriggerKind


def command_of(body: str, author: User, policy: ListeningPolicy) -> Instruction | None:
    """Return the instruction in a comment, or None when it is not addressed to Resolver."""
    return None if policy.ignores(author) else find_request(body, policy.mention, reaches_run=True)


def trigger_from_comment(
    payload: Mapping[str, Any], policy: ListeningPolicy
) -> Trigger | IgnoredEvent:
    """Return the trigger for an `issue_comment` event, or the reason why there is none."""
    event = IssueEvent.model_validate(payload)
    comment = event.comment
    if event.action != "created" or comment is None:
        return IgnoredEvent(f"the comment was {event.action}, only a new one starts work")
    instruction = _read_instruction(event, comment, policy, in_review=False)
    if isinstance(instruction, IgnoredEvent):
        return instruction
    return trigger_of(
        event,
        TriggerKind.ISSUE_COMMENT,
        f"issue_comment:{comment.id}",
        comment.created_at,
        instruction,
        comment_id=comment.id,
    )


def trigger_from_review(
    payload: Mapping[str, Any], policy: ListeningPolicy
) -> Trigger | IgnoredEvent:
    """Return the trigger for a `pull_request_review` or `pull_request_review_comment` event.

    If there is none, return the reason.
    """
    event = PullRequestEvent.model_validate(payload)
    text: Text
    if event.comment is not None:
        noun, is_new, text = "comment", event.action == "created", event.comment
        kind, review_id = TriggerKind.REVIEW_COMMENT, event.comment.pull_request_review_id
        commit = None if event.comment.in_reply_to_id else event.comment.commit_id
        at = max(event.comment.created_at, event.comment.updated_at)
    elif event.review is not None and event.review.submitted_at is not None:
        noun, is_new, text = "review", event.action == "submitted", event.review
        kind, review_id = TriggerKind.REVIEW_SUBMITTED, event.review.id
        commit, at = event.review.commit_id, event.review.submitted_at
    else:
        return IgnoredEvent(f"the review was {event.action}, only a new one starts work")
    if not is_new:
        return IgnoredEvent(f"the {noun} was {event.action}, only a new one starts work")
    instruction = _read_instruction(event, text, policy, in_review=True)
    if isinstance(instruction, IgnoredEvent):
        return instruction
    return trigger_of(
        event,
        kind,
        f"review:{review_id}" if review_id else f"{kind.value}:{text.id}",
        at,
        instruction,
        comment_id=text.id,
        head=commit or event.issue.head,
        review_id=review_id,
    )


def _read_instruction(
    event: IssueEvent, text: Text, policy: ListeningPolicy, in_review: bool
) -> Instruction | IgnoredEvent:
    """Return what a new text asks Resolver for, or the reason to ignore it."""
    if text.user is None or text.user.id != event.sender.id:
        return IgnoredEvent("the event was not sent by the author of the text")
    ignored = policy.ignores(text.user)
    if ignored:
        return ignored
    instruction = find_request(
        text.body, policy.mention, pull_request=event.is_pull_request, reaches_run=not in_review
    )
    if instruction is None:
        return IgnoredEvent(f"the text doesn't ask {policy.mention} for anything")
    if in_review and instruction.command not in REVIEW_COMMANDS:
        return IgnoredEvent(
            f"{instruction.command.value} is only possible in the conversation, not on the code"
        )
    return instruction
