"""The current state of what a request was made with."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class RequestText:
    """The current text of what made a request. edited_at: None if it was never edited."""

    body: str
    edited_at: datetime | None = None


@dataclass(frozen=True)
class RequestStatus:
    """The current state of what a request was made with.

    exists: False if the issue was deleted or transferred.
    locked: True if the conversation was locked after the request.
    issue: the text of the issue or pull request.
    comment: the comment or review that made the request; None if it was deleted.
    has_comment: True if a comment or review made the request and could be looked up.
    requested_accounts: logins that are assigned, if an assignment made the request; logins whose
        review is requested, if a review request did.
    """

    exists: bool = True
    closed: bool = False
    locked: bool = False
    labels: Sequence[str] = ()
    issue: RequestText = RequestText("")
    comment: RequestText | None = None
    has_comment: bool = False
    requested_accounts: Sequence[str] = ()
