"""The fields of GitHub's webhook payloads that are read, and no others.

Source: https://docs.github.com/en/webhooks/webhook-events-and-payloads (`issue_comment`, `issues`,
`pull_request_review`, `pull_request_review_comment`).
"""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _utc(moment: datetime) -> datetime:
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("it is no moment of the calendar") from None


Moment = Annotated[datetime, AfterValidator(_utc)]
"""A time, in UTC whatever zone it was given in."""


class Payload(BaseModel):
    """Fields that aren't named here are let through unread: GitHub adds some all the time."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class User(Payload):
    """An account. `type` is "User", "Bot" or "Organization"."""

    login: str
    id: int
    type: str = "User"


class Label(Payload):
    name: str


class Repository(Payload):
    full_name: str = Field(pattern=r"^[A-Za-z0-9_-]+/[A-Za-z0-9_.-]+$")


class Issue(Payload):
    """An issue, or a pull request when `pull_request` is there. A deleted account is None."""

    id: int
    number: int = Field(gt=0)
    title: str
    body: str | None = None
    user: User | None = None
    state: str = "open"
    updated_at: Moment
    pull_request: dict[str, Any] | None = None


class IssueComment(Payload):
    id: int
    body: str | None = None
    user: User | None = None
    created_at: Moment


class Head(Payload):
    """The newest commit of a pull request."""

    sha: str = Field(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")


class PullRequest(Payload):
    """A pull request. A deleted account is None."""

    number: int = Field(gt=0)
    title: str
    body: str | None = None
    user: User | None = None
    state: str = "open"
    head: Head


class ReviewComment(Payload):
    """A comment on the code. One that was drafted in a review is public from `updated_at` on."""

    id: int
    body: str | None = None
    user: User | None = None
    created_at: Moment
    updated_at: Moment


class Review(Payload):
    id: int
    body: str | None = None
    user: User | None = None
    submitted_at: Moment | None = None


class Event(Payload):
    """What both events of issues have. `sender` is the account that caused the event."""

    action: str
    issue: Issue
    repository: Repository
    sender: User


class IssueCommentEvent(Event):
    comment: IssueComment


class IssuesEvent(Event):
    label: Label | None = None


class PullRequestEvent(Payload):
    """What both events of reviews have."""

    action: str
    pull_request: PullRequest
    repository: Repository
    sender: User


class ReviewCommentEvent(PullRequestEvent):
    comment: ReviewComment


class ReviewEvent(PullRequestEvent):
    review: Review
