"""Reads GitHub's webhook payloads: the JSON, and models of the fields that Resolver uses.

Source: https://docs.github.com/en/webhooks/webhook-events-and-payloads (`issue_comment`, `issues`,
`pull_request`, `pull_request_review`, `pull_request_review_comment`). The models of check events
are in `checks.py`, those of dispatches in `parse.py`.
"""

import json
import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AliasPath, BaseModel, ConfigDict, Field

from resolver.github.events.commands import Instruction
from resolver.models.run import Actor, Snapshot, Trigger, TriggerKind

# JSON may hold half of a surrogate pair, which UTF-8 can't, and NUL, which PostgreSQL can't.
# https://www.rfc-editor.org/rfc/rfc8259#section-8.2
_UNSTORABLE = re.compile(rb"\\u(?:[dD][89a-fA-F]|0000)")
_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")  # an even number of backslashes before it
_SURROGATE = re.compile("[\ud800-\udfff]")


def parse_payload(body: bytes) -> dict[str, Any] | None:
    """Return the payload; None if the body is not a JSON object or is nested too deeply.

    Characters that can't be stored are replaced by U+FFFD.
    """
    try:
        payload = json.loads(body)
        if _UNSTORABLE.search(body):
            text = _NUL.sub("\\1\ufffd", json.dumps(payload, ensure_ascii=False))
            payload = json.loads(_SURROGATE.sub("\ufffd", text))
    except (ValueError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None


def _utc(moment: datetime) -> datetime:
    """Convert a moment to UTC; one without a time zone is taken as UTC."""
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("it is not a valid time") from None


UtcDatetime = Annotated[datetime, AfterValidator(_utc)]
"""A point in time, converted to UTC."""


class Payload(BaseModel):
    """Base class of the payload models.

    Other fields are ignored, since GitHub adds new ones at any time.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")


class User(Payload):
    """An account. `type` is "User", "Bot" or "Organization"."""

    login: str
    id: int
    type: str = "User"

    @property
    def actor(self) -> Actor:
        """The account as the author of a request."""
        return Actor(login=self.login, id=self.id, is_bot=self.type == "Bot")


class Label(Payload):
    """A label of an issue or pull request."""

    name: str


class RepositoryPayload(Payload):
    """A repository, named OWNER/NAME."""

    full_name: str = Field(pattern=r"^[A-Za-z0-9_-]+/[A-Za-z0-9_.-]+$")


class Issue(Payload):
    """An issue, or a pull request if `pull_request` is present.

    `user` is None when the account was deleted.
    """

    id: int
    number: int = Field(gt=0)
    title: str
    body: str | None = None
    user: User | None = None
    state: str = "open"
    labels: tuple[Label, ...] | None = None
    milestone: str | None = Field(default=None, validation_alias=AliasPath("milestone", "title"))
    assignees: tuple[User | None, ...] | None = None
    created_at: UtcDatetime
    updated_at: UtcDatetime
    pull_request: dict[str, Any] | None = None


CommitId = Annotated[str, Field(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")]


class PullRequestPayload(Issue):
    """A pull request with its newest commit and the branch it is to be merged into."""

    head: CommitId = Field(validation_alias=AliasPath("head", "sha"))
    base: str | None = Field(default=None, validation_alias=AliasPath("base", "ref"))


class Text(Payload):
    """A comment or a review."""

    id: int
    body: str | None = None
    user: User | None = None


class IssueComment(Text):
    """A comment in the conversation of an issue or pull request."""

    created_at: UtcDatetime


class ReviewCommentPayload(IssueComment):
    """A comment on the code of a pull request, or any other new comment.

    Attributes:
        updated_at: From when on a comment is public that was drafted in a review.
        commit_id: The commit that its author looked at; in a reply, that of the comment replied to.
        in_reply_to_id: The comment that it replies to.
        pull_request_review_id: The review that it belongs to. GitHub treats a single comment as a
            review of its own.
    """

    updated_at: UtcDatetime
    commit_id: str | None = None
    in_reply_to_id: int | None = None
    pull_request_review_id: int | None = None


class ReviewPayload(Text):
    """A review of a pull request. `commit_id` is the commit that was reviewed."""

    commit_id: str | None = None
    submitted_at: UtcDatetime | None = None


class IssueEvent(Payload):
    """An event of an issue or its conversation.

    Attributes:
        sender: The account that caused the event.
        comment: The comment, in an `issue_comment` event.
        label: The label that was added.
        assignee: The account that was assigned.
        requested_reviewer: The account that was asked for a review; None for a team.
    """

    action: str
    repository: RepositoryPayload
    sender: User
    issue: Issue
    comment: ReviewCommentPayload | None = None
    label: Label | None = None
    assignee: User | None = None
    requested_reviewer: User | None = None

    @property
    def is_pull_request(self) -> bool:
        """True if the event is about a pull request."""
        return self.issue.pull_request is not None or isinstance(self.issue, PullRequestPayload)


class PullRequestEvent(IssueEvent):
    """An event of a pull request, which is the `issue`, or of a comment on its code or a review."""

    issue: PullRequestPayload = Field(alias="pull_request")
    review: ReviewPayload | None = None


MAX_LABELS = 100
"""Maximum number of labels, and of assignees, that are kept."""


def snapshot_of(subject: Issue) -> Snapshot:
    """Return the text, labels, milestone and assignees of an issue or pull request in the event."""
    labels = subject.labels
    return Snapshot(
        title=subject.title,
        body=subject.body or "",
        author=subject.user.login if subject.user else "",
        labels=None if labels is None else tuple(label.name for label in labels[:MAX_LABELS]),
        milestone=subject.milestone or "",
        assignees=tuple(
            assignee.login for assignee in (subject.assignees or ())[:MAX_LABELS] if assignee
        ),
    )


def trigger_of(
    event: IssueEvent,
    kind: TriggerKind,
    key: str,
    at: datetime,
    instruction: Instruction,
    **changes: Any,
) -> Trigger:
    """Return the trigger for a request on an issue or pull request.

    `changes` are the fields that only some kinds of triggers have, or have otherwise.
    """
    subject = event.issue
    pull = subject if isinstance(subject, PullRequestPayload) else None
    trigger = Trigger(
        key=key,
        kind=kind,
        repository=event.repository.full_name,
        number=subject.number,
        is_pull_request=event.is_pull_request,
        actor=event.sender.actor,
        instruction=instruction.text,
        command=instruction.command,
        named=instruction.named,
        extension=instruction.extension,
        at=at,
        snapshot=snapshot_of(subject),
        head=pull.head if pull else "",
        base=pull.base if pull else None,
    )
    return trigger.model_copy(update=changes)
