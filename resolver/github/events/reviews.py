"""Parses a review, or a comment on the code of a pull request, into a trigger.

One submitted review is one request, however many events it causes: all of them have the same key,
and the run reads the review's other parts from GitHub. GitHub treats a single comment on a line as
a review of its own, and so does this module. Which review threads the review asks about and what it
says as a whole is the same whichever of its events arrived first. No network is used.

Commands that control an active run belong in the conversation of the pull request, where everybody
who waits for the run sees them. In a review they are ignored.
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
from resolver.github.events.permission import IgnoredEvent, is_own_text
from resolver.github.events.starting_events import ListeningPolicy
from resolver.models.pull_request import (
    AuthoredText,
    PullRequestContext,
    ReviewThread,
    ThreadRequest,
)
from resolver.models.run import Command, Trigger, TriggerKind

MAX_REQUESTED_THREADS = 50
"""Maximum number of review threads in one request. The others need another request."""

_THREAD_COMMANDS = frozenset({Command.FIX, Command.QUESTION})
"""Commands that are carried out and answered thread by thread."""


def requested_threads(
    trigger: Trigger, pull: PullRequestContext, mention: str
) -> tuple[ThreadRequest, ...]:
    """Return the review threads that the trigger's review asks about, oldest first.

    They are labeled T1, T2, and so on. If the body of the review mentions Resolver, it asks about
    all threads it comments in; otherwise each comment with a mention asks for itself. Only what the
    requester wrote in that review counts.
    """
    if trigger.command not in _THREAD_COMMANDS:
        return ()
    is_whole_review = _find_body_request(trigger, pull, mention) is not None
    requested: list[ThreadRequest] = []
    for thread in pull.threads:
        own_comments = [comment for comment in thread.comments if _is_of_request(comment, trigger)]
        asking_comments = (
            own_comments
            if is_whole_review
            else [comment for comment in own_comments if _has_mention(comment, mention)]
        )
        if asking_comments and len(requested) < MAX_REQUESTED_THREADS:
            request = "\n\n".join(
                find_instruction(comment.body, mention) or comment.body
                for comment in asking_comments
            )
            requested.append(
                ThreadRequest(label=f"T{len(requested) + 1}", thread=thread, request=request)
            )
    return tuple(requested)


def render_deferred_threads(
    trigger: Trigger, pull: PullRequestContext, requested: Sequence[ThreadRequest]
) -> str:
    """Return a sentence about the threads beyond the maximum, or "" when there are none."""
    if len(requested) < MAX_REQUESTED_THREADS:
        return ""
    requested_ids = {requested_thread.thread.id for requested_thread in requested}
    deferred = [
        thread
        for thread in pull.threads
        if thread.id not in requested_ids and _has_review_comment(thread, trigger)
    ]
    return (
        f"{len(deferred)} more conversations of the review, beyond {MAX_REQUESTED_THREADS}"
        if deferred
        else ""
    )


def whole_request(
    trigger: Trigger, pull: PullRequestContext, requested: Sequence[ThreadRequest], mention: str
) -> Trigger:
    """Return the trigger with the text of the whole review.

    Its command becomes work if any part of the review asks for work.
    """
    body = _find_body_request(trigger, pull, mention)
    if not requested or (len(requested) == 1 and body is None):
        return trigger
    parts = [body] if body else []
    parts += [
        f"{requested_thread.label}: {requested_thread.request}" for requested_thread in requested
    ]
    is_work = any(
        read_instruction(instruction, pull_request=True).command is Command.FIX
        for instruction in _instructions(trigger, requested, body, mention)
    )
    command = Command.FIX if is_work and trigger.command is Command.QUESTION else trigger.command
    return trigger.model_copy(update={"instruction": "\n\n".join(parts), "command": command})


def _find_body_request(trigger: Trigger, pull: PullRequestContext, mention: str) -> str | None:
    """Return what the review's own body asks, or None when it does not mention Resolver."""
    for review in pull.reviews:
        if review.text.id == trigger.review_id and _is_author(review.text, trigger):
            return find_instruction(review.text.body, mention)
    # The body was edited after the request and is not used; the event holds the original text.
    submitted = trigger.kind is TriggerKind.REVIEW_SUBMITTED
    return trigger.instruction if submitted and trigger.review_id is not None else None


def _instructions(
    trigger: Trigger, requested: Sequence[ThreadRequest], body: str | None, mention: str
) -> Iterator[str]:
    """Yield the text after each mention in the review's body and in its threads."""
    if body is not None:
        yield body
    for requested_thread in requested:
        for comment in requested_thread.thread.comments:
            instruction = find_instruction(comment.body, mention)
            if instruction is not None and _is_of_request(comment, trigger):
                yield instruction


def _has_review_comment(thread: ReviewThread, trigger: Trigger) -> bool:
    """Return True if the review comments in this thread."""
    return any(_is_of_request(comment, trigger) for comment in thread.comments)


def _is_of_request(text: AuthoredText, trigger: Trigger) -> bool:
    """Return True if the text is part of the trigger's review and was written by the requester."""
    is_in_review = trigger.review_id is not None and text.review == trigger.review_id
    return is_in_review and _is_author(text, trigger)


def _is_author(text: AuthoredText, trigger: Trigger) -> bool:
    """Return True if the requester wrote the text."""
    return text.author.casefold() == trigger.actor.login.casefold()


def _has_mention(text: AuthoredText, mention: str) -> bool:
    """Return True if the text contains a mention."""
    return find_instruction(text.body, mention) is not None


REVIEW_COMMANDS = frozenset(
    {Command.FIX, Command.QUESTION, Command.REVIEW, Command.UPDATE, Command.HELP}
)
"""Commands that a review can give."""


@dataclass(frozen=True)
class _SubmittedText:
    """A text that somebody wrote in a review.

    Attributes:
        kind: Kind of the trigger that it becomes.
        id: Id of the review or of the comment.
        review: Id of the review that it belongs to, when known.
        author: Its author; None when the account was deleted.
        body: The text.
        at: When it was made public.
        node: Its GraphQL id.
        commit: The commit that its author looked at; "" when the event does not say.
    """

    kind: TriggerKind
    id: int
    review: int | None
    author: User | None
    body: str
    at: datetime
    node: str
    commit: str = ""


def trigger_from_review(
    name: str, payload: Mapping[str, Any], policy: ListeningPolicy
) -> Trigger | IgnoredEvent:
    """Return the trigger for the event, or the reason why there is none.

    Raises pydantic's ValidationError if the payload does not have the documented form.
    """
    event: PullRequestEvent
    if name == "pull_request_review":
        event = review = ReviewEvent.model_validate(payload)
        review_payload, at = review.review, review.review.submitted_at
        if event.action != "submitted" or at is None:
            return IgnoredEvent(f"the review was {event.action}, only a new one starts work")
        kind, body = TriggerKind.REVIEW_SUBMITTED, review_payload.body or ""
        text = _SubmittedText(
            kind,
            review_payload.id,
            review_payload.id,
            review_payload.user,
            body,
            at,
            review_payload.node_id,
            review_payload.commit_id or "",
        )
    else:
        event = comment_event = ReviewCommentEvent.model_validate(payload)
        if event.action != "created":
            return IgnoredEvent(f"the comment was {event.action}, only a new one starts work")
        comment = comment_event.comment
        at = max(comment.created_at, comment.updated_at)
        kind, body = TriggerKind.REVIEW_COMMENT, comment.body or ""
        commit = "" if comment.in_reply_to_id else comment.commit_id
        review_id, node = comment.pull_request_review_id, comment.node_id
        text = _SubmittedText(kind, comment.id, review_id, comment.user, body, at, node, commit)
    if text.author is None or text.author.id != event.sender.id:
        return IgnoredEvent("the event was not sent by the author of the text")
    return policy.ignores(text.author) or _make_trigger(event, text, policy.mention)


def review_key(review: int) -> str:
    """Return the trigger key shared by everything that one submitted review asks."""
    return f"review:{review}"


def _make_trigger(
    event: PullRequestEvent, text: _SubmittedText, mention: str
) -> Trigger | IgnoredEvent:
    """Return the trigger for a text of a review, or the reason why it asks for nothing."""
    if is_own_text(text.body):
        return IgnoredEvent("it was made by Resolver itself")
    instruction = find_instruction(text.body, mention)
    if instruction is None:
        return IgnoredEvent(f"the text doesn't mention {mention}")
    if asks_for_nothing(instruction):
        return IgnoredEvent("the text contains no request")
    parsed = read_instruction(instruction, pull_request=True)
    if parsed.command not in REVIEW_COMMANDS:
        return IgnoredEvent(
            f"{parsed.command.value} is only possible in the conversation, not on the code"
        )
    pull = event.pull_request
    return Trigger(
        key=review_key(text.review) if text.review else f"{text.kind.value}:{text.id}",
        kind=text.kind,
        repository=event.repository.full_name,
        number=pull.number,
        is_pull_request=True,
        actor=event.sender.actor,
        instruction=parsed.text,
        command=parsed.command,
        named=parsed.named,
        at=text.at,
        comment_id=text.id,
        comment_node=text.node,
        snapshot=snapshot_of(pull),
        head=text.commit or pull.head.sha,
        base=pull.base.ref,
        review_id=text.review,
    )
