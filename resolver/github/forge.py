"""The protocol of a forge, the place that holds issues and pull requests.

`resolver.github.github_forge` implements it for GitHub and GitHub Enterprise Server. A run on a
checkout of this machine has no forge.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from resolver.github.client.snapshot import RepositorySnapshot, SnapshotQuery
from resolver.github.comments.progress import ProgressWriter
from resolver.github.comments.report import Report
from resolver.github.events.payloads import IssueComment
from resolver.models.pull_request import (
    AnsweredThreads,
    OpenPullRequest,
    PublishedReview,
    PullRequestSource,
    Review,
    ThreadReply,
)
from resolver.models.repository import LocalCommit, PublishedCommit
from resolver.models.request_status import RequestStatus
from resolver.models.run import Actor, Publication, PullRequest, Task, Trigger

ACTIONS_LOGIN = "github-actions[bot]"
"""The login of the token that GitHub gives to an Action; it may not read its own account."""


class PullRequestHeads(Protocol):
    """Reads the head branches of pull requests."""

    def source(self, number: int) -> PullRequestSource:
        """Return the current head branch of a pull request."""
        ...

    def of_issue(self, trigger: Trigger, prefix: str) -> OpenPullRequest | None:
        """Return Resolver's newest open pull request for the trigger's issue, or None.

        Only branches that start with `prefix` count.
        """
        ...

    def pushed(self, trigger: Trigger, run: str, prefix: str) -> Publication | None:
        """Return what an earlier attempt of the run pushed to an existing pull request, or None.

        That is the trigger's own pull request, or one that Resolver opened for its issue from a
        branch that starts with `prefix`.
        """
        ...


class Signer(Protocol):
    """Creates commits again through the forge, so that the forge signs them."""

    def put(
        self,
        commit: LocalCommit,
        blobs: Iterable[tuple[str, bytes]],
        branch: str,
        previous: str | None,
    ) -> PublishedCommit:
        """Create the commit on the forge, move `branch` to it and return it.

        The parents of `commit` are on the forge. `blobs` are its new ones, by id. `previous` is the
        current tip of the branch, None for a new one. Calling this again has no further effect.
        Raises BranchTaken if the branch points to anything else.
        """
        ...


class Forge(Protocol):
    """One repository on a forge. Every write goes to it, and to the trigger's own issue.

    All methods raise ForgeError, which names the missing permission if that is the cause.
    """

    def whoami(self) -> str:
        """Return the login that Resolver writes as."""
        ...

    def account(self) -> Actor:
        """Return the account that Resolver writes as, with its id if known.

        This may make another request.
        """
        ...

    def permission(self, login: str) -> str:
        """Return the permission of `login`.

        It is "admin", "write", "read" or "none".
        """
        ...

    def is_member(self, team: str, login: str) -> bool:
        """Return True if `login` is an active member of the team ORG/TEAM."""
        ...

    def is_public(self) -> bool | None:
        """Return True if anybody can read the repository, None if the forge does not say."""
        ...

    def snapshot(self, query: SnapshotQuery) -> RepositorySnapshot | None:
        """Return the state of the repository's refs, None if it has to be read with git.

        Never raises: the run does not depend on it.
        """
        ...

    def operator_may_push(self) -> bool:
        """Return True if the owner of the token may push."""
        ...

    def acknowledge(self, trigger: Trigger) -> None:
        """Show at once that the request was seen. Never raises: the run does not depend on it."""
        ...

    def read(self, trigger: Trigger) -> Task:
        """Return the issue as the requester saw it, without hidden text."""
        ...

    def request_status_at_start(self, trigger: Trigger) -> RequestStatus:
        """Return the state of the request as it was when its conversation was read just now.

        It does not say that the conversation was locked.
        """
        ...

    def request_status(self, trigger: Trigger) -> RequestStatus:
        """Return the current state of the request's comment and of its issue."""
        ...

    def find_publication(self, trigger: Trigger) -> Publication | None:
        """Return what an earlier run with the same key published, or None if the run may start.

        `comment_url` is None if that run was killed after it opened its pull request and before it
        wrote its final comment.
        """
        ...

    def branches(self, prefix: str) -> set[str]:
        """Return the names of the branches that start with `prefix`."""
        ...

    def open_head(self, branch: str) -> str | None:
        """Return the tip of `branch` if Resolver has an open pull request from it, else None."""
        ...

    def heads(self) -> PullRequestHeads:
        """Return the reader of pull request heads, of this repository and its forks."""
        ...

    def open_pull_request(self, report: Report, branch: str, is_new: bool = False) -> PullRequest:
        """Return the pull request from `branch`, which is opened if there is none.

        A comment says what the run has added to an existing one of Resolver's own. `is_new` is True
        if this run has created the branch just now, so that there is no pull request to look for.
        """
        ...

    def signer(self) -> Signer | None:
        """Return what creates signed commits, or None if the forge does not sign."""
        ...

    def publish_review(self, report: Report, review: Review) -> PublishedReview:
        """Return the review of the trigger's pull request, which is published unless it exists.

        If the forge refuses the lines of a comment, all comments go into the body of the review.
        """
        ...

    def answer_threads(
        self, report: Report, replies: Sequence[ThreadReply], commit: str | None
    ) -> AnsweredThreads:
        """Write one reply in each of these review threads, unless it exists.

        `commit` is the commit that was added to the pull request, None for none. With `resolve`,
        threads in which the request was carried out are marked as resolved; a failure of that is
        not an error.
        """
        ...

    def has_active_run(self, trigger: Trigger) -> bool:
        """Return True if a comment says that the run with this key waits or is active."""
        ...

    def progress_writer(self) -> ProgressWriter:
        """Return the writer of progress comments, for use by one other thread.

        It has a client of its own with short timeouts. Raises ForgeError.
        """
        ...

    def recent_comments(self, number: int) -> Sequence[IssueComment]:
        """Return the newest comments of an issue, newest first."""
        ...

    def ask(self, report: Report) -> datetime | None:
        """Write what the run waits for into its comment, and return when that was published.

        The time is by the forge's clock. Returns None if there is nobody to ask.
        """
        ...

    def comment(self, report: Report, seconds: float | None = None) -> str:
        """Write how the run ended into its comment and return the URL of that.

        There is one comment per key. `seconds` limits how long this
        is retried while the forge is unavailable; None applies the same limit as for other writes.
        """
        ...
