"""Parses events of issues and pull requests themselves into triggers.

The events are: opened with a mention, labeled, assigned, or a review requested. GitHub sends
several of them when an issue is opened with, for example, a mention and a label. Together they are
one request: the label's if there is one, else the mention's, else the assignment's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from resolver.github.events.commands import (
    FIX,
    Instruction,
    asks_for_nothing,
    find_instruction,
    read_instruction,
)
from resolver.github.events.payloads import (
    Issue,
    IssuesEvent,
    PullRequestPayload,
    PullRequestsEvent,
    SubjectPayload,
    User,
    snapshot_of,
)
from resolver.github.events.permission import IgnoredEvent, is_own_text
from resolver.github.events.reviews import REVIEW_COMMANDS
from resolver.github.events.starting_events import ListeningPolicy, starting_actions
from resolver.models.run import Command, Trigger, TriggerKind

OPENING_WINDOW = timedelta(seconds=10)
"""Time within which the author's actions count as part of opening the issue.

GitHub sends a separate event for each label and assignee that an issue is opened with.
"""


@dataclass(frozen=True)
class _IssueAction:
    """An action on an issue or a pull request.

    Attributes:
        event: The event as received.
        subject: The issue or pull request.
        noun: What messages call it: "issue" or "pull request".
        is_pull: True when the subject is a pull request.
        head: Newest commit of the pull request; "" for an issue event.
        base: Branch that the pull request is to be merged into; "" for an issue event.
        reviewer: The account whose review was requested, if any.
    """

    event: IssuesEvent | PullRequestsEvent
    subject: SubjectPayload
    noun: str
    is_pull: bool
    head: str
    base: str
    reviewer: User | None

    @property
    def is_part_of_opening(self) -> bool:
        """Return True if the author did this as part of opening the issue."""
        author, subject = self.subject.user, self.subject
        is_by_author = author is not None and author.id == self.event.sender.id
        return is_by_author and subject.updated_at - subject.created_at <= OPENING_WINDOW


def trigger_from_issue(
    name: str, payload: Mapping[str, Any], policy: ListeningPolicy
) -> Trigger | IgnoredEvent:
    """Return the trigger for the event, or the reason why there is none.

    Raises pydantic's ValidationError if the payload does not have the documented form.
    """
    issue_action = _read(name, payload)
    action = issue_action.event.action
    if action not in starting_actions()[name]:
        return IgnoredEvent(f"the {issue_action.noun} was {action}, which starts no work")
    if issue_action.subject.state != "open":
        return IgnoredEvent(f"the {issue_action.noun} is closed")
    ignored = policy.ignores(issue_action.event.sender)
    if ignored:
        return ignored
    match action:
        case "opened":
            return _opened(issue_action, policy)
        case "labeled":
            return _labeled(issue_action, policy)
        case "assigned":
            return _assigned(issue_action, policy)
        case "review_requested":
            return _review_requested(issue_action, policy)
        case _:
            raise NotImplementedError(f"no case for {action!r}, which is in STARTING_EVENTS")


def label_key(issue: int, label: str, at: datetime) -> str:
    """Return the trigger key of a labeling.

    `issue` is the issue's id, not its number; `at` is in UTC.
    """
    return f"labeled:{issue}:{label}:{at.isoformat()}"


def _read(name: str, payload: Mapping[str, Any]) -> _IssueAction:
    """Parse the payload of an `issues` or `pull_request` event."""
    if name == "issues":
        event = IssuesEvent.model_validate(payload)
        issue: Issue = event.issue
        return _IssueAction(event, issue, "issue", issue.pull_request is not None, "", "", None)
    pull_event = PullRequestsEvent.model_validate(payload)
    pull: PullRequestPayload = pull_event.pull_request
    reviewer = pull_event.requested_reviewer
    return _IssueAction(
        pull_event, pull, "pull request", True, pull.head.sha, pull.base.ref, reviewer
    )


def _find_request(issue_action: _IssueAction, policy: ListeningPolicy) -> str | None:
    """Return the text after the mention in the issue's own text.

    Return None without a mention, or when the text asks for nothing.
    """
    body = issue_action.subject.body or ""
    request = None if is_own_text(body) else find_instruction(body, policy.mention)
    return None if request is None or asks_for_nothing(request) else request


def _parse_request(request: str | None, issue_action: _IssueAction) -> Instruction:
    """Parse the text after the mention.

    A command for an existing run is taken as work, since no run exists yet.
    """
    if request is None:
        return FIX
    instruction = read_instruction(request, pull_request=issue_action.is_pull)
    return instruction if instruction.command in REVIEW_COMMANDS else Instruction(text=request)


def _has_label(issue_action: _IssueAction, policy: ListeningPolicy) -> bool:
    """Return True if the issue has the label that asks for work."""
    return any(policy.is_label(label.name) for label in issue_action.subject.labels or ())


def _opened(issue_action: _IssueAction, policy: ListeningPolicy) -> Trigger | IgnoredEvent:
    """Return the trigger of an issue that was opened with a mention."""
    author = issue_action.subject.user
    if author is None or author.id != issue_action.event.sender.id:
        return IgnoredEvent(f"the event was not sent by the {issue_action.noun}'s author")
    request = _find_request(issue_action, policy)
    if request is None:
        return IgnoredEvent(f"the {issue_action.noun} doesn't ask {policy.mention} for anything")
    if _has_label(issue_action, policy):
        return IgnoredEvent("it was opened with the label, which has an event of its own")
    kind, at = TriggerKind.ISSUE_OPENED, issue_action.subject.created_at
    return _trigger(
        issue_action,
        kind,
        f"opened:{_unique_id(issue_action)}",
        at,
        _parse_request(request, issue_action),
    )


def _labeled(issue_action: _IssueAction, policy: ListeningPolicy) -> Trigger | IgnoredEvent:
    """Return the trigger of a labeling."""
    label = issue_action.event.label
    if label is None or not policy.is_label(label.name):
        return IgnoredEvent(f"the label isn't {policy.label}")
    request = _find_request(issue_action, policy) if issue_action.is_part_of_opening else None
    at = issue_action.subject.updated_at
    key = label_key(issue_action.subject.id, label.name, at)
    if issue_action.is_pull:
        key = f"pull:{key}"
    return _trigger(
        issue_action, TriggerKind.ISSUE_LABELED, key, at, _parse_request(request, issue_action)
    )


def _assigned(issue_action: _IssueAction, policy: ListeningPolicy) -> Trigger | IgnoredEvent:
    """Return the trigger of an assignment to Resolver's account."""
    ignored = _reason_to_ignore_assignee(issue_action.event.assignee, policy, "was assigned")
    if ignored:
        return ignored
    if issue_action.is_part_of_opening:
        if _has_label(issue_action, policy):
            return IgnoredEvent("it was opened with the label, which has an event of its own")
        if _find_request(issue_action, policy) is not None:
            return IgnoredEvent("its text already asks for the work")
    at = issue_action.subject.updated_at
    key = f"assigned:{_unique_id(issue_action)}:{policy.bot_login.casefold()}:{at.isoformat()}"
    return _trigger(issue_action, TriggerKind.ISSUE_ASSIGNED, key, at, FIX)


def _review_requested(
    issue_action: _IssueAction, policy: ListeningPolicy
) -> Trigger | IgnoredEvent:
    """Return the trigger of a review request to Resolver's account."""
    ignored = _reason_to_ignore_assignee(issue_action.reviewer, policy, "was asked for the review")
    if ignored:
        return ignored
    at = issue_action.subject.updated_at
    key = f"review_requested:{_unique_id(issue_action)}:{at.isoformat()}"
    instruction = Instruction(command=Command.REVIEW)
    return _trigger(issue_action, TriggerKind.REVIEW_REQUESTED, key, at, instruction)


def _reason_to_ignore_assignee(
    account: User | None, policy: ListeningPolicy, action: str
) -> IgnoredEvent | None:
    """Return the reason to ignore the event when `account` is not Resolver's own, else None."""
    if not policy.bot_login:
        return IgnoredEvent(f"it is not known if it was Resolver who {action}: set bot_login")
    if account is None or account.login.casefold() != policy.bot_login.casefold():
        return IgnoredEvent(f"somebody else {action}")
    return None


def _unique_id(issue_action: _IssueAction) -> str:
    """Return an id that is unique among issues and pull requests, whose GitHub ids can be equal."""
    return (
        f"pull:{issue_action.subject.id}" if issue_action.is_pull else str(issue_action.subject.id)
    )


def _trigger(
    issue_action: _IssueAction, kind: TriggerKind, key: str, at: datetime, instruction: Instruction
) -> Trigger:
    """Return the trigger with the fields that all actions share."""
    return Trigger(
        key=key,
        kind=kind,
        repository=issue_action.event.repository.full_name,
        number=issue_action.subject.number,
        is_pull_request=issue_action.is_pull,
        actor=issue_action.event.sender.actor,
        instruction=instruction.text,
        command=instruction.command,
        named=instruction.named,
        at=at,
        snapshot=snapshot_of(issue_action.subject),
        head=issue_action.head,
        base=issue_action.base,
    )
