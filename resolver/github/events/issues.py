"""Parses events of issues and pull requests themselves into triggers.

The events are: opened with a mention, labeled, assigned, or a review requested. GitHub sends
several of them when an issue is opened with, for example, a mention and a label. Together they are
one request: the label's if there is one, else the mention's, else the assignment's.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from resolver.github.events.commands import (
    FIX,
    REVIEW_COMMANDS,
    Instruction,
)
from resolver.github.events.mentions import find_instruction, find_request
from resolver.github.events.payloads import IssueEvent, PullRequestEvent, User, trigger_of
from resolver.github.events.permission import IgnoredEvent
from resolver.github.events.starting_events import ListeningPolicy, starting_actions
from resolver.models.run import Command, Trigger, TriggerKind

OPENING_WINDOW = timedelta(seconds=10)
"""Time within which the author's actions count as part of opening the issue.

GitHub sends a separate event for each label and assignee that an issue is opened with.
"""


def trigger_from_issue(
    name: str, payload: Mapping[str, Any], policy: ListeningPolicy
) -> Trigger | IgnoredEvent:
    """Return the trigger for an `issues` or `pull_request` event, or why there is none."""
    model = PullRequestEvent if name == "pull_request" else IssueEvent
    event = model.model_validate(payload)
    noun = name.replace("issues", "issue").replace("_", " ")
    if event.action not in starting_actions()[name]:
        return IgnoredEvent(f"the {noun} was {event.action}, which starts no work")
    if event.issue.state != "open":
        return IgnoredEvent(f"the {noun} is closed")
    ignored = policy.ignores(event.sender)
    if ignored:
        return ignored
    match event.action:
        case "opened":
            return _opened(event, policy, noun)
        case "labeled":
            return _labeled(event, policy)
        case "assigned":
            return _assigned(event, policy)
        case _:
            return _review_requested(event, policy)


def label_key(issue: int, label: str, at: datetime) -> str:
    """Return the trigger key of a labeling.

    `issue` is the issue's id, not its number; `at` is in UTC.
    """
    return f"labeled:{issue}:{label}:{at.isoformat()}"


def _is_by_author(event: IssueEvent) -> bool:
    return event.issue.user is not None and event.issue.user.id == event.sender.id


def _is_part_of_opening(event: IssueEvent) -> bool:
    """Return True if the author did this as part of opening the issue."""
    issue = event.issue
    return _is_by_author(event) and issue.updated_at - issue.created_at <= OPENING_WINDOW


def _find_request(event: IssueEvent, policy: ListeningPolicy) -> Instruction | None:
    """Return what the issue's own text asks for, or None.

    A command for an existing run is taken as work, since no run exists yet.
    """
    body = event.issue.body or ""
    instruction = find_request(body, policy.mention, pull_request=event.is_pull_request)
    if instruction is None or instruction.command in REVIEW_COMMANDS:
        return instruction
    return Instruction(text=find_instruction(body, policy.mention) or "")


def _has_label(event: IssueEvent, policy: ListeningPolicy) -> bool:
    """Return True if the issue has the label that asks for work."""
    return any(policy.is_label(label.name) for label in event.issue.labels or ())


def _opened(event: IssueEvent, policy: ListeningPolicy, noun: str) -> Trigger | IgnoredEvent:
    """Return the trigger of an issue that was opened with a mention."""
    if not _is_by_author(event):
        return IgnoredEvent(f"the event was not sent by the {noun}'s author")
    request = _find_request(event, policy)
    if request is None:
        return IgnoredEvent(f"the {noun} doesn't ask {policy.mention} for anything")
    if _has_label(event, policy):
        return IgnoredEvent("it was opened with the label, which has an event of its own")
    key = f"opened:{_unique_id(event)}"
    return trigger_of(event, TriggerKind.ISSUE_OPENED, key, event.issue.created_at, request)


def _labeled(event: IssueEvent, policy: ListeningPolicy) -> Trigger | IgnoredEvent:
    """Return the trigger of a labeling."""
    if event.label is None or not policy.is_label(event.label.name):
        return IgnoredEvent(f"the label isn't {policy.label}")
    request = _find_request(event, policy) if _is_part_of_opening(event) else None
    at = event.issue.updated_at
    prefix = "pull:" if event.is_pull_request else ""
    key = f"{prefix}{label_key(event.issue.id, event.label.name, at)}"
    return trigger_of(event, TriggerKind.ISSUE_LABELED, key, at, request or FIX)


def _assigned(event: IssueEvent, policy: ListeningPolicy) -> Trigger | IgnoredEvent:
    """Return the trigger of an assignment to Resolver's account."""
    ignored = _reason_to_ignore_assignee(event.assignee, policy, "was assigned")
    if ignored:
        return ignored
    if _is_part_of_opening(event):
        if _has_label(event, policy):
            return IgnoredEvent("it was opened with the label, which has an event of its own")
        if _find_request(event, policy) is not None:
            return IgnoredEvent("its text already asks for the work")
    at = event.issue.updated_at
    key = f"assigned:{_unique_id(event)}:{(policy.bot_login or '').casefold()}:{at.isoformat()}"
    return trigger_of(event, TriggerKind.ISSUE_ASSIGNED, key, at, FIX)


def _review_requested(event: IssueEvent, policy: ListeningPolicy) -> Trigger | IgnoredEvent:
    """Return the trigger of a review request to Resolver's account."""
    account = event.requested_reviewer
    ignored = _reason_to_ignore_assignee(account, policy, "was asked for the review")
    if ignored:
        return ignored
    at = event.issue.updated_at
    key = f"review_requested:{_unique_id(event)}:{at.isoformat()}"
    review = Instruction(command=Command.REVIEW)
    return trigger_of(event, TriggerKind.REVIEW_REQUESTED, key, at, review)


def _reason_to_ignore_assignee(
    account: User | None, policy: ListeningPolicy, action: str
) -> IgnoredEvent | None:
    """Return the reason to ignore the event when `account` is not Resolver's own, else None."""
    if not policy.bot_login:
        return IgnoredEvent(f"it is not known if it was Resolver who {action}: set bot_login")
    if account is None or not policy.is_own_login(account.login):
        return IgnoredEvent(f"somebody else {action}")
    return None


def _unique_id(event: IssueEvent) -> str:
    """Return an id that is unique among issues and pull requests, whose GitHub ids can be equal."""
    return f"{'pull:' if event.is_pull_request else ''}{event.issue.id}"
