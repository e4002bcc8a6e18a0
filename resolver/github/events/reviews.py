"""Finds what a submitted review asks for: in which of its review threads, and as a whole.

The result is the same whichever of the review's events arrived first. No network is used.
"""

from collections.abc import Iterator, Sequence

from resolver.github.events.commands import read_instruction
from resolver.github.events.mentions import find_instruction
from resolver.models.pull_request import (
    AuthoredText,
    PullRequestContext,
    ThreadRequest,
)
from resolver.models.run import Command, Trigger, TriggerKind

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
        if asking_comments:
            request = "\n\n".join(
                find_instruction(comment.body, mention) or comment.body
                for comment in asking_comments
            )
            requested.append(
                ThreadRequest(label=f"T{len(requested) + 1}", thread=thread, request=request)
            )
    return tuple(requested)


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
