"""The fields of GitHub's webhook payloads that are read, and no others.

Source: https://docs.github.com/en/webhooks/webhook-events-and-payloads (`issue_comment`, `issues`,
`pull_request`, `pull_request_review`, `pull_request_review_comment`). Those of checks are in
`checks.py`, those of dispatches in `dispatch.py`.
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


class Milestone(Payload):
    title: str


class RepositoryPayload(Payload):
    full_name: str = Field(pattern=r"^[A-Za-z0-9_-]+/[A-Za-z0-9_.-]+$")


class SubjectPayload(Payload):
    """What an issue and a pull request have. A deleted account is None."""

    id: int
    number: int = Field(gt=0)
    title: str
    body: str | None = None
    user: User | None = None
    state: str = "open"
    labels: tuple[Label, ...] | None = None
    milestone: Milestone | None = None
    assignees: tuple[User | None, ...] | None = None
    created_at: Moment
    updated_at: Moment


class Issue(SubjectPayload):
    """An issue, or a pull request when `pull_request` is there."""

    pull_request: dict[str, Any] | None = None


class IssueComment(Payload):
    id: int
    body: str | None = None
    user: User | None = None
    created_at: Moment


class HeadPayload(Payload):
    """The newest commit of a pull request."""

    sha: str = Field(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")


class BasePayload(Payload):
    """The branch that a pull request is to be merged into."""

    ref: str = ""


class PullRequestPayload(SubjectPayload):
    """A pull request."""

    head: HeadPayload
    base: BasePayload = BasePayload()


class ReviewCommentPayload(Payload):
    """A comment on the code. One that was drafted in a review is public from `updated_at` on.

    pull_request_review_id: the review it belongs to; a single comment is a review of its own.
    commit_id: what its author looked at; in a reply what the one replied to was about.
    """

    id: int
    commit_id: str = ""
    in_reply_to_id: int | None = None
    pull_request_review_id: int | None = None
    body: str | None = None
    user: User | None = None
    created_at: Moment
    updated_at: Moment


class ReviewPayload(Payload):
    """commit_id: what was reviewed."""

    id: int
    commit_id: str | None = None
    body: str | None = None
    user: User | None = None
    submitted_at: Moment | None = None


class Event(Payload):
    """What all have. `sender` is the account that caused the event."""

    action: str
    repository: RepositoryPayload
    sender: User


class IssueCommentEvent(Event):
    issue: Issue
    comment: IssueComment


class IssuesEvent(Event):
    """label, assignee: what was put on it, who was assigned."""

    issue: Issue
    label: Label | None = None
    assignee: User | None = None


class PullRequestEvent(Event):
    """What the events of pull requests and of reviews have."""

    pull_request: PullRequestPayload


class Team(Payload):
    slug: str


class PullRequestsEvent(PullRequestEvent):
    """As with issues. requested_reviewer: None when a team was asked."""

    label: Label | None = None
    assignee: User | None = None
    requested_reviewer: User | None = None
    requested_team: Team | None = None


class ReviewCommentEvent(PullRequestEvent):
    comment: ReviewCommentPayload


class ReviewEvent(PullRequestEvent):
    review: ReviewPayload
