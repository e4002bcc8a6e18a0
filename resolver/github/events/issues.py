"""Parse events of issues and pull requests themselves into triggers.

The events are: opened with a mention, labelled, assigned, or a review requested. GitHub sends
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
    Team,
    User,
    snapshot_of,
)
from resolver.github.events.permission import IgnoredEvent, ListeningPolicy, is_our_text
from resolver.github.events.reviews import ASKED_HERE
from resolver.models.run import Actor, Command, Trigger, TriggerKind

OPENING = timedelta(seconds=10)
"""Time within which the author's actions count as part of opening the issue.

GitHub sends a separate event for each label and assignee that an issue is opened with.
"""

_STARTS = {
    "issues": ("opened", "labeled", "assigned"),
    "pull_request": ("opened", "labeled", "assigned", "review_requested"),
}


@dataclass(frozen=True)
class _Done:
    """An action on an issue or a pull request.

    Attributes:
        event: The event as received.
        subject: The issue or pull request.
        it: What messages call it: "issue" or "pull request".
        is_pull: True when the subject is a pull request.
        head: Newest commit of the pull request; "" for an issue event.
        base: Branch that the pull request is to be merged into; "" for an issue event.
        reviewer: The account whose review was requested, if any.
        team: The team whose review was requested, if any.
    """

    event: IssuesEvent | PullRequestsEvent
    subject: SubjectPayload
    it: str
    is_pull: bool
    head: str
    base: str
    reviewer: User | None
    team: Team | None = None

    @property
    def by_its_author_when_opening(self) -> bool:
        """Return True if the author did this as part of opening the issue."""
        author, subject = self.subject.user, self.subject
        own = author is not None and author.id == self.event.sender.id
        return own and subject.updated_at - subject.created_at <= OPENING


def from_issue(
    name: str, payload: Mapping[str, Any], listening: ListeningPolicy
) -> Trigger | IgnoredEvent:
    """Return the trigger for the event, or the reason why there is none.

    Raises pydantic's ValidationError if the payload does not have the documented form.
    """
    done = _read(name, payload)
    action = done.event.action
    if action not in _STARTS[name]:
        return IgnoredEvent(f"the {done.it} was {action}, which starts no work")
    if done.subject.state != "open":
        return IgnoredEvent(f"the {done.it} is closed")
    ignored = listening.ignores(done.event.sender)
    if ignored:
        return ignored
    match action:
        case "opened":
            return _opened(done, listening)
        case "labeled":
            return _labeled(done, listening)
        case "assigned":
            return _assigned(done, listening)
        case _:
            return _review_requested(done, listening)


def label_key(issue: int, label: str, at: datetime) -> str:
    """Return the trigger key of a labelling.

    `issue` is the issue's id, not its number; `at` is in UTC.
    """
    return f"labeled:{issue}:{label}:{at.isoformat()}"


def _read(name: str, payload: Mapping[str, Any]) -> _Done:
    """Parse the payload of an `issues` or `pull_request` event."""
    if name == "issues":
        event = IssuesEvent.model_validate(payload)
        issue: Issue = event.issue
        return _Done(event, issue, "issue", issue.pull_request is not None, "", "", None)
    pulled = PullRequestsEvent.model_validate(payload)
    pull: PullRequestPayload = pulled.pull_request
    asked, team = pulled.requested_reviewer, pulled.requested_team
    return _Done(pulled, pull, "pull request", True, pull.head.sha, pull.base.ref, asked, team)


def _said(done: _Done, listening: ListeningPolicy) -> str | None:
    """Return the text after the mention in the issue's own text.

    Return None without a mention, or when the text asks for nothing.
    """
    body = done.subject.body or ""
    words = None if is_our_text(body) else find_instruction(body, listening.mention)
    return None if words is None or asks_for_nothing(words) else words


def _asked(words: str | None, done: _Done) -> Instruction:
    """Parse the text after the mention.

    A command for an existing run is taken as work, since no run exists yet.
    """
    if words is None:
        return FIX
    asked = read_instruction(words, pull_request=done.is_pull)
    return asked if asked.command in ASKED_HERE else Instruction(words=words)


def _wears_label(done: _Done, listening: ListeningPolicy) -> bool:
    """Return True if the issue has the label that asks for work."""
    return any(listening.is_label(label.name) for label in done.subject.labels or ())


def _opened(done: _Done, listening: ListeningPolicy) -> Trigger | IgnoredEvent:
    """Return the trigger of an issue that was opened with a mention."""
    author = done.subject.user
    if author is None or author.id != done.event.sender.id:
        return IgnoredEvent(f"the {done.it}'s author didn't send it")
    words = _said(done, listening)
    if words is None:
        return IgnoredEvent(f"the {done.it} doesn't ask {listening.mention} for anything")
    if _wears_label(done, listening):
        return IgnoredEvent("it was opened with the label, whose own event asks for the work")
    kind, at = TriggerKind.ISSUE_OPENED, done.subject.created_at
    return _trigger(done, kind, f"opened:{_id(done)}", at, _asked(words, done))


def _labeled(done: _Done, listening: ListeningPolicy) -> Trigger | IgnoredEvent:
    """Return the trigger of a labelling."""
    label = done.event.label
    if label is None or not listening.is_label(label.name):
        return IgnoredEvent(f"the label isn't {listening.label}")
    words = _said(done, listening) if done.by_its_author_when_opening else None
    at = done.subject.updated_at
    key = label_key(done.subject.id, label.name, at)
    if done.is_pull:
        key = f"pull:{key}"
    return _trigger(done, TriggerKind.ISSUE_LABELED, key, at, _asked(words, done))


def _assigned(done: _Done, listening: ListeningPolicy) -> Trigger | IgnoredEvent:
    """Return the trigger of an assignment to Resolver's account."""
    ignored = _is_somebody_else(done.event.assignee, listening, "was assigned")
    if ignored:
        return ignored
    if done.by_its_author_when_opening:
        if _wears_label(done, listening):
            return IgnoredEvent("it was opened with the label, whose own event asks for the work")
        if _said(done, listening) is not None:
            return IgnoredEvent("its own words ask for the work")
    at = done.subject.updated_at
    key = f"assigned:{_id(done)}:{listening.bot_login.casefold()}:{at.isoformat()}"
    return _trigger(done, TriggerKind.ISSUE_ASSIGNED, key, at, FIX)


def _review_requested(done: _Done, listening: ListeningPolicy) -> Trigger | IgnoredEvent:
    """Return the trigger of a review request to Resolver's account or to one of `review_teams`."""
    if done.reviewer is None and done.team is not None:
        owner = done.event.repository.full_name.partition("/")[0]
        if not listening.is_review_team(owner, done.team.slug):
            return IgnoredEvent("a team was asked for the review that is none of review_teams")
    else:
        ignored = _is_somebody_else(done.reviewer, listening, "was asked for the review")
        if ignored:
            return ignored
    at = done.subject.updated_at
    key = f"review_requested:{_id(done)}:{at.isoformat()}"
    asked = Instruction(command=Command.REVIEW)
    return _trigger(done, TriggerKind.REVIEW_REQUESTED, key, at, asked)


def _is_somebody_else(
    account: User | None, listening: ListeningPolicy, what: str
) -> IgnoredEvent | None:
    """Return the reason to ignore the event when `account` is not Resolver's own, else None."""
    if not listening.bot_login:
        return IgnoredEvent(f"it is not known whether it was us who {what}: set bot_login")
    if account is None or account.login.casefold() != listening.bot_login.casefold():
        return IgnoredEvent(f"somebody else {what}")
    return None


def _id(done: _Done) -> str:
    """Return an id that is unique among issues and pull requests, whose GitHub ids can be equal."""
    return f"pull:{done.subject.id}" if done.is_pull else str(done.subject.id)


def _trigger(done: _Done, kind: TriggerKind, key: str, at: datetime, asked: Instruction) -> Trigger:
    """Return the trigger with the fields that all actions share."""
    sender = done.event.sender
    return Trigger(
        key=key,
        kind=kind,
        repository=done.event.repository.full_name,
        number=done.subject.number,
        is_pull_request=done.is_pull,
        actor=Actor(login=sender.login, id=sender.id, is_bot=sender.type == "Bot"),
        instruction=asked.words,
        command=asked.command,
        named=asked.named,
        at=at,
        snapshot=snapshot_of(done.subject),
        head=done.head,
        base=done.base,
    )
