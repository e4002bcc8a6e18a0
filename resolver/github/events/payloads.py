"""Reads GitHub's webhook payloads: the JSON, and models of the fields that Resolver uses.

Source: https://docs.github.com/en/webhooks/webhook-events-and-payloads (`issue_comment`, `issues`,
`pull_request`, `pull_request_review`, `pull_request_review_comment`). The models of check events
are in `checks.py`, those of dispatches in `parse.py`.
"""

import json
import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from resolver.models.run import Actor, Snapshot

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


class Milestone(Payload):
    """A milestone of an issue or pull request."""

    title: str


class RepositoryPayload(Payload):
    """A repository, named OWNER/NAME."""

    full_name: str = Field(pattern=r"^[A-Za-z0-9_-]+/[A-Za-z0-9_.-]+$")


class SubjectPayload(Payload):
    """Fields that issues and pull requests share. `user` is None when the account was deleted."""

    id: int
    number: int = Field(gt=0)
    title: str
    body: str | None = None
    user: User | None = None
    state: str = "open"
    labels: tuple[Label, ...] | None = None
    milestone: Milestone | None = None
    assignees: tuple[User | None, ...] | None = None
    created_at: UtcDatetime
    updated_at: UtcDatetime


class Issue(SubjectPayload):
    """An issue. It is a pull request when `pull_request` is present."""

    pull_request: dict[str, Any] | None = None


class IssueComment(Payload):
    """A comment in the conversation of an issue or pull request."""

    id: int
    node_id: str = ""
    body: str | None = None
    user: User | None = None
    created_at: UtcDatetime


class HeadPayload(Payload):
    """The newest commit of a pull request."""

    sha: str = Field(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")


class BasePayload(Payload):
    """The branch that a pull request is to be merged into."""

    ref: str = ""


class PullRequestPayload(SubjectPayload):
    """A pull request with its newest commit and the branch it is to be merged into."""

    head: HeadPayload
    base: BasePayload = BasePayload()


class ReviewCommentPayload(Payload):
    """A comment on the code of a pull request.

    A comment that was drafted in a review is public from `updated_at` on.

    Attributes:
        commit_id: The commit that its author looked at; in a reply, that of the comment replied to.
        in_reply_to_id: The comment that it replies to.
        pull_request_review_id: The review that it belongs to. GitHub treats a single comment as a
            review of its own.
    """

    id: int
    node_id: str = ""
    commit_id: str = ""
    in_reply_to_id: int | None = None
    pull_request_review_id: int | None = None
    body: str | None = None
    user: User | None = None
    created_at: UtcDatetime
    updated_at: UtcDatetime


class ReviewPayload(Payload):
    """A review of a pull request. `commit_id` is the commit that was reviewed."""

    id: int
    node_id: str = ""
    commit_id: str | None = None
    body: str | None = None
    user: User | None = None
    submitted_at: UtcDatetime | None = None


class Event(Payload):
    """Fields that all events share. `sender` is the account that caused the event."""

    action: str
    repository: RepositoryPayload
    sender: User


class IssueCommentEvent(Event):
    """An `issue_comment` event."""

    issue: Issue
    comment: IssueComment


class IssuesEvent(Event):
    """An `issues` event.

    `label` is the label that was added, `assignee` the account that was assigned.
    """

    issue: Issue
    label: Label | None = None
    assignee: User | None = None


class PullRequestEvent(Event):
    """Fields that the events of pull requests and of reviews share."""

    pull_request: PullRequestPayload


class PullRequestsEvent(PullRequestEvent):
    """A `pull_request` event.

    `label` and `assignee` are as in `IssuesEvent`. `requested_reviewer` is None when a team was
    asked for the review.
    """

    label: Label | None = None
    assignee: User | None = None
    requested_reviewer: User | None = None


class ReviewCommentEvent(PullRequestEvent):
    """A `pull_request_review_comment` event."""

    comment: ReviewCommentPayload


class ReviewEvent(PullRequestEvent):
    """A `pull_request_review` event."""

    review: ReviewPayload


MAX_LABELS = 100
"""Maximum number of labels, and of assignees, that are kept."""


def snapshot_of(subject: SubjectPayload) -> Snapshot:
    """Return the text, labels, milestone and assignees of an issue or pull request in the event."""
    labels = subject.labels
    return Snapshot(
        title=subject.title,
        body=subject.body or "",
        author=subject.user.login if subject.user else "",
        labels=None if labels is None else tuple(label.name for label in labels[:MAX_LABELS]),
        milestone=subject.milestone.title if subject.milestone else "",
        assignees=tuple(
            assignee.login for assignee in (subject.assignees or ())[:MAX_LABELS] if assignee
        ),
    )
