"""Parse a GitHub event into a trigger, or into the reason why it starts no work.

No network is used. Authorization follows in `resolver.github.events.permission`.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from resolver.github.events.checks import CHECK_EVENTS, from_check
from resolver.github.events.commands import Instruction, asks_for_nothing, read_instruction
from resolver.github.events.dashboard_boxes import from_box
from resolver.github.events.dispatch import DISPATCH_EVENTS, DispatchSource, from_dispatch
from resolver.github.events.ignored import (
    IgnoredEvent,
    ListeningPolicy,
    MalformedEvent,
    is_our_text,
    not_a_person,
)
from resolver.github.events.issues import from_issue
from resolver.github.events.mention import find_instruction
from resolver.github.events.payloads import IssueCommentEvent, User
from resolver.github.events.reviews import from_review
from resolver.github.events.snapshot import snapshot_of
from resolver.models.run import Actor, Trigger, TriggerKind


def parse_github_event(
    name: str,
    payload: Mapping[str, Any],
    *,
    mention: str,
    label: str,
    bot_login: str = "",
    allowed_users: Collection[str] = (),
    denied_users: Collection[str] = (),
    checks: str = "none",
    review_teams: Collection[str] = (),
    arrival: DispatchSource | None = None,
) -> Trigger | IgnoredEvent:
    """Return the trigger for an event, or the reason why there is none.

    The trigger's key is made from the event itself, not from the delivery: a redelivery, a copy
    under another delivery id and a re-run of the same workflow all give the same key.

    Args:
        name: Name of the event, as in the header X-GitHub-Event or the variable GITHUB_EVENT_NAME.
        payload: The event's payload.
        mention: The mention that addresses Resolver, such as `@agent`.
        label: The label that asks for work.
        bot_login: Login of Resolver's own account. Its events are ignored; assignments and review
            requests to it start work.
        allowed_users: Bots whose events are accepted.
        denied_users: Accounts whose events are always ignored.
        checks: Whose failing checks start work; see `ListeningPolicy`.
        review_teams: Teams whose reviews Resolver does; see `ListeningPolicy`.
        arrival: Id and time of a dispatch, which its payload does not contain.
    """
    listening = ListeningPolicy(
        mention, label, bot_login, allowed_users, denied_users, checks, review_teams
    )
    try:
        return _read(name, payload, listening, arrival)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        why = f"the {name} payload isn't one: {where}: {first['msg']}"
        return MalformedEvent(why) if name in DISPATCH_EVENTS else IgnoredEvent(why)


def _read(
    name: str,
    payload: Mapping[str, Any],
    listening: ListeningPolicy,
    arrival: DispatchSource | None,
) -> Trigger | IgnoredEvent:
    """Pass the payload to the parser of its event."""
    if name == "issue_comment":
        return _from_comment(IssueCommentEvent.model_validate(payload), listening)
    if name == "issues" and payload.get("action") == "edited":
        return from_box(payload, listening)
    if name in {"issues", "pull_request"}:
        return from_issue(name, payload, listening)
    if name in {"pull_request_review", "pull_request_review_comment"}:
        return from_review(name, payload, listening)
    if name in DISPATCH_EVENTS:
        return from_dispatch(name, payload, listening, arrival)
    if name in CHECK_EVENTS:
        return from_check(name, payload, listening)
    return IgnoredEvent(f"{name} events start no work")


def needs_own_login(name: str, payload: Mapping[str, Any]) -> bool:
    """Return True if the event can't be parsed without the login of Resolver's own account."""
    asked = str(payload.get("action")) in {"assigned", "review_requested"}
    return asked and name in {"issues", "pull_request"}


def command_of(
    body: str,
    *,
    login: str,
    type: str,
    mention: str,
    bot_login: str = "",
    allowed_users: Collection[str] = (),
    denied_users: Collection[str] = (),
) -> Instruction | None:
    """Return the instruction in a comment of a conversation, or None when it is not for Resolver.

    Args:
        body: The comment's text.
        login: Login of its author.
        type: The author's account type, as the API returns it ("User", "Bot").
        mention: The mention that addresses Resolver.
        bot_login: Login of Resolver's own account, whose comments are ignored.
        allowed_users: Bots whose comments are accepted.
        denied_users: Accounts whose comments are always ignored.
    """
    account = User(login=login, id=0, type=type)
    if is_our_text(body) or not_a_person(account, bot_login, allowed_users, denied_users):
        return None
    instruction = find_instruction(body, mention)
    return None if instruction is None else read_instruction(instruction)


def _from_comment(event: IssueCommentEvent, listening: ListeningPolicy) -> Trigger | IgnoredEvent:
    """Return the trigger for a new comment on an issue or pull request."""
    if event.action != "created":
        return IgnoredEvent(f"the comment was {event.action}, only a new one starts work")
    author, issue, sender = event.comment.user, event.issue, event.sender
    if author is None or author.id != sender.id:
        return IgnoredEvent("the comment's author didn't send it")
    ignored = listening.ignores(author)
    if ignored:
        return ignored
    if is_our_text(event.comment.body):
        return IgnoredEvent("it's our own")
    instruction = find_instruction(event.comment.body or "", listening.mention)
    if instruction is None:
        return IgnoredEvent(f"the comment doesn't mention {listening.mention}")
    if asks_for_nothing(instruction):
        return IgnoredEvent("the comment asks for nothing")
    on_pull = issue.pull_request is not None
    asked = read_instruction(instruction, pull_request=on_pull)
    at: datetime = event.comment.created_at
    return Trigger(
        key=f"issue_comment:{event.comment.id}",
        kind=TriggerKind.ISSUE_COMMENT,
        repository=event.repository.full_name,
        number=issue.number,
        is_pull_request=on_pull,
        actor=Actor(login=sender.login, id=sender.id, is_bot=sender.type == "Bot"),
        instruction=asked.words,
        command=asked.command,
        named=asked.named,
        extension=asked.extension,
        at=at,
        comment_id=event.comment.id,
        snapshot=snapshot_of(issue),
    )
