"""The events that start work, and the settings that decide which of them do.

`STARTING_EVENTS` is the one list of the events of a conversation that start work. The parsers, the
`on:` and `if:` of the workflows, and the table in docs/reference/triggers.md are made from it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pydantic import Field

from resolver.config.github_settings import contains_login
from resolver.github.events.commands import read_instruction
from resolver.github.events.mentions import find_instruction
from resolver.github.events.payloads import User
from resolver.github.events.permission import IgnoredEvent
from resolver.models.base import FrozenModel
from resolver.models.trigger import Command, TriggerKind

if TYPE_CHECKING:
    from resolver.models.request_status import RequestStatus


class ListeningPolicy(FrozenModel):
    """Whose events start work, and how they address Resolver: the settings of the same names."""

    mention: str
    label: str
    bot_login: str | None = Field(
        default=None, description="Login of Resolver's own account; None when it is not known."
    )
    allowed_users: tuple[str, ...] = ()
    fix_failing_checks: str = "none"

    def ignores(self, account: User) -> IgnoredEvent | None:
        """Return the reason why an account's events are ignored, or None when they are accepted.

        Those of bots are accepted only from `allowed_users`.
        """
        if self.is_own_login(account.login):
            return IgnoredEvent("it was made by Resolver itself")
        if contains_login(self.allowed_users, account.login):
            return None
        if account.type != "User" or account.login.casefold().endswith("[bot]"):
            return IgnoredEvent(f"{account.login} isn't a person")
        return None

    def is_own_login(self, login: str) -> bool:
        """Return True if `login` is known to be the login of Resolver's own account."""
        return bool(self.bot_login) and login.casefold() == (self.bot_login or "").casefold()

    def is_label(self, name: str) -> bool:
        """Return True if `name` is the label that asks for work."""
        return name.casefold() == self.label.casefold()


_WITHDRAWALS = {
    "comment": "the comment that asked for it was edited and no longer asks",
    "text": "the text of #{number} was edited and no longer asks",
    "label": "the label {label} was removed from #{number}",
    "assignment": "the assignment of #{number} was removed",
    "review": "the request for a review of #{number} was removed",
}
"""How a request that is no longer there was withdrawn, by what made it.

In braces are `number` (of the issue) and fields of `ListeningPolicy`.
"""


@dataclass(frozen=True)
class StartingEvent:
    """An action on an issue, a pull request or a review that starts work.

    Attributes:
        events: GitHub's names of the events that have the action.
        action: The action.
        kind: The kind of the trigger.
        condition: An expression of GitHub Actions that is true for an event that may start work.
            It filters jobs cheaply and may be too generous. It names fields of `ListeningPolicy` in
            braces; there, a list is its values separated by commas.
        requirement: What the event must have to start work, for docs/reference/triggers.md.
        result: What is done then, for docs/reference/triggers.md.
        method: Completes "requested ..." in a comment, for an event that carries no text.
        source: What makes the request, one of `_WITHDRAWALS`; None for a review, which can't be
            taken back.

    Source: https://docs.github.com/en/actions/reference/workflows-and-actions/expressions
    """

    events: tuple[str, ...]
    action: str
    kind: TriggerKind
    condition: str
    requirement: str
    result: str
    method: str | None = None
    source: str | None = None

    @property
    def needs_own_login(self) -> bool:
        """True if the event can't be parsed without the login of Resolver's own account."""
        return "{bot_login}" in self.condition

    @property
    def withdrawal(self) -> str | None:
        """How the request was withdrawn, if it does not stand."""
        return _WITHDRAWALS[self.source] if self.source else None

    def stands(self, status: "RequestStatus", policy: ListeningPolicy) -> bool:
        """Return True if the request still stands, before its result is published.

        An issue that was closed or locked, and a comment that was deleted, withdraw every request.
        """
        match self.source:
            case "comment":
                return status.comment is None or _is_request(status.comment.body, policy)
            case "text":
                return _is_request(status.issue.body, policy)
            case "label":
                return any(policy.is_label(name) for name in status.labels)
            case "assignment" | "review":
                return any(policy.is_own_login(name) for name in status.requested_accounts)
        return True


def _is_request(body: str, policy: ListeningPolicy) -> bool:
    """Return True if the current text of a request still addresses Resolver, and not to stop it."""
    instruction = find_instruction(body, policy.mention)
    return instruction is not None and read_instruction(instruction).command is not Command.STOP


STARTING_EVENTS: Final = (
    StartingEvent(
        ("issue_comment",),
        "created",
        TriggerKind.ISSUE_COMMENT,
        "contains(github.event.comment.body, {mention})",
        "a mention, on an issue or in a pull request's conversation",
        "depends on the text: [commands.md](commands.md)",
        source="comment",
    ),
    StartingEvent(
        ("issues",),
        "opened",
        TriggerKind.ISSUE_OPENED,
        "contains(github.event.issue.body, {mention})",
        "a mention in the issue's text",
        "work on it, or an answer to a question",
        source="text",
    ),
    StartingEvent(
        ("pull_request",),
        "opened",
        TriggerKind.ISSUE_OPENED,
        "contains(github.event.pull_request.body, {mention})",
        "a mention in its text",
        "depends on the text: a review, an answer, work on its branch",
        source="text",
    ),
    StartingEvent(
        ("issues", "pull_request"),
        "labeled",
        TriggerKind.ISSUE_LABELED,
        "github.event.label.name == {label}",
        "the label (`agent`), on an open one",
        "work on it, for a pull request on its branch",
        method="by adding a label",
        source="label",
    ),
    StartingEvent(
        ("issues", "pull_request"),
        "assigned",
        TriggerKind.ISSUE_ASSIGNED,
        "{bot_login} && github.event.assignee.login == {bot_login}",
        "assigned to Resolver's account",
        "work on it, for a pull request on its branch",
        method="by assigning Resolver",
        source="assignment",
    ),
    StartingEvent(
        ("pull_request",),
        "review_requested",
        TriggerKind.REVIEW_REQUESTED,
        "{bot_login} && github.event.requested_reviewer.login == {bot_login}",
        "the review is requested from Resolver's account",
        "a review",
        method="by requesting a review",
        source="review",
    ),
    StartingEvent(
        ("pull_request_review",),
        "submitted",
        TriggerKind.REVIEW_SUBMITTED,
        "contains(github.event.review.body, {mention})",
        "a mention in the review's text",
        "one run for the whole review",
    ),
    StartingEvent(
        ("pull_request_review_comment",),
        "created",
        TriggerKind.REVIEW_COMMENT,
        "contains(github.event.comment.body, {mention})",
        "a mention in a comment on the code",
        "the same run, if the comment is part of a review",
        source="comment",
    ),
)

REQUEST_METHODS: Final = MappingProxyType(
    {event.kind: event.method for event in STARTING_EVENTS if event.method}
    | {TriggerKind.DISPATCHED: "by a dispatch"}
)
"""Description of how a run was requested, for triggers that carry no text."""


def starting_actions() -> dict[str, list[str]]:
    """Return the actions that start work, by the name of their event."""
    actions: dict[str, list[str]] = {}
    for name, event in starting_events_by_name():
        actions.setdefault(name, []).append(event.action)
    return actions


def find_starting_event(name: str, action: object) -> StartingEvent | None:
    """Return the row of an event, or None if its action starts no work."""
    rows = (
        event
        for row_name, event in starting_events_by_name()
        if (row_name, event.action) == (name, action)
    )
    return next(rows, None)


def find_event_of(kind: TriggerKind) -> StartingEvent | None:
    """Return the row of a trigger, or None if no event of a conversation starts that kind.

    Rows of the same kind differ in their events only.
    """
    return next((event for event in STARTING_EVENTS if event.kind is kind), None)


def starting_events_by_name() -> Iterator[tuple[str, StartingEvent]]:
    """Yield each row once for each event that has its action."""
    return ((name, event) for event in STARTING_EVENTS for name in event.events)
