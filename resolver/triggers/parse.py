"""From a GitHub event to a Trigger, or to the reason why there is none. No network here.

Whether the person may start work is asked afterwards, in `resolver.triggers.permission`.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from resolver.model import Actor, Snapshot, Trigger, TriggerKind
from resolver.triggers.commands import FIX, Instruction, asks_for_nothing, read_instruction
from resolver.triggers.ignored import Ignored, not_a_person
from resolver.triggers.mention import find_instruction
from resolver.triggers.payloads import Event, Issue, IssueCommentEvent, IssuesEvent, User
from resolver.triggers.reviews import from_review


def parse_event(
    name: str,
    payload: Mapping[str, Any],
    *,
    mention: str,
    label: str,
    bot_login: str = "",
    allowed_users: Collection[str] = (),
) -> Trigger | Ignored:
    """What the event `name` (X-GitHub-Event, GITHUB_EVENT_NAME) asks for.

    bot_login: our own account, never listened to; allowed_users: bots that are.
    The trigger's key is made from the event itself, not from the delivery: a redelivery, a copy
    under another delivery id and a re-run of the same workflow all give the same key.
    """
    try:
        if name == "issue_comment":
            return _from_comment(
                IssueCommentEvent.model_validate(payload), mention, bot_login, allowed_users
            )
        if name == "issues":
            return _from_label(IssuesEvent.model_validate(payload), label, bot_login, allowed_users)
        if name in {"pull_request_review", "pull_request_review_comment"}:
            return from_review(name, payload, mention, bot_login, allowed_users)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return Ignored(f"the {name} payload isn't one: {where}: {first['msg']}")
    return Ignored(f"{name} events start no work")


def command_of(
    body: str,
    *,
    login: str,
    type: str,
    mention: str,
    bot_login: str = "",
    allowed_users: Collection[str] = (),
) -> Instruction | None:
    """What a comment that was read from its thread asks for, None when it isn't for us.

    type: the author's account type, as the API has it.
    """
    account = User(login=login, id=0, type=type)
    if not_a_person(account, bot_login, allowed_users):
        return None
    instruction = find_instruction(body, mention)
    return None if instruction is None else read_instruction(instruction)


def label_key(issue: int, label: str, at: datetime) -> str:
    """The key of a labelling. issue: its id, not its number; at: in UTC."""
    return f"labeled:{issue}:{label}:{at.isoformat()}"


def _from_comment(
    event: IssueCommentEvent, mention: str, bot_login: str, allowed_users: Collection[str]
) -> Trigger | Ignored:
    if event.action != "created":
        return Ignored(f"the comment was {event.action}, only a new one starts work")
    author = event.comment.user
    if author is None or author.id != event.sender.id:
        return Ignored("the comment's author didn't send it")
    ignored = not_a_person(author, bot_login, allowed_users)
    if ignored:
        return ignored
    instruction = find_instruction(event.comment.body or "", mention)
    if instruction is None:
        return Ignored(f"the comment doesn't mention {mention}")
    if asks_for_nothing(instruction):
        return Ignored("the comment asks for nothing")
    return _trigger(
        event,
        key=f"issue_comment:{event.comment.id}",
        kind=TriggerKind.ISSUE_COMMENT,
        at=event.comment.created_at,
        asked=read_instruction(instruction, pull_request=event.issue.pull_request is not None),
        comment_id=event.comment.id,
    )


def _from_label(
    event: IssuesEvent, label: str, bot_login: str, allowed_users: Collection[str]
) -> Trigger | Ignored:
    if event.action != "labeled":
        return Ignored(f"the issue was {event.action}, only a label starts work")
    if event.label is None or event.label.name.casefold() != label.casefold():
        return Ignored(f"the label isn't {label}")
    if event.issue.state != "open":
        return Ignored("the issue is closed")
    ignored = not_a_person(event.sender, bot_login, allowed_users)
    if ignored:
        return ignored
    at = event.issue.updated_at
    return _trigger(
        event,
        key=label_key(event.issue.id, event.label.name, at),
        kind=TriggerKind.ISSUE_LABELED,
        at=at,
    )


def _trigger(
    event: Event,
    *,
    key: str,
    kind: TriggerKind,
    at: datetime,
    asked: Instruction = FIX,
    comment_id: int | None = None,
) -> Trigger:
    issue, sender = event.issue, event.sender
    return Trigger(
        key=key,
        kind=kind,
        repository=event.repository.full_name,
        number=issue.number,
        is_pull_request=issue.pull_request is not None,
        actor=Actor(login=sender.login, id=sender.id, is_bot=sender.type == "Bot"),
        instruction=asked.words,
        command=asked.command,
        named=asked.named,
        extension=asked.extension,
        at=at,
        comment_id=comment_id,
        snapshot=_snapshot(issue),
    )


def _snapshot(issue: Issue) -> Snapshot:
    author = issue.user.login if issue.user else ""
    return Snapshot(title=issue.title, body=issue.body or "", author=author)
