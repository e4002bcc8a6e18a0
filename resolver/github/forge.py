"""Forge: where issues and pull requests live. The protocol, nothing else.

`github/` is GitHub and GitHub Enterprise Server, `local.py` a checkout on this machine.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Protocol

from resolver.github.comments.progress_reporter import ProgressWriter
from resolver.github.comments.report import Report
from resolver.github.dashboard_forge import DashboardForge
from resolver.models.commits import MadeCommit, PublishedCommit
from resolver.models.pull_request import (
    AnsweredThreads,
    OpenPullRequest,
    PublishedReview,
    PullRequestSource,
    Review,
    ThreadReply,
)
from resolver.models.run import Actor, Publication, PullRequest, Task, Trigger


class Heads(Protocol):
    """The branches that pull requests come from."""

    def source(self, number: int) -> PullRequestSource:
        """Where a pull request comes from at this moment."""
        ...

    def of_issue(self, trigger: Trigger, prefix: str) -> OpenPullRequest | None:
        """The newest pull request of ours that is open for the trigger's issue, None when there is
        none. prefix: how the branches of work on the issue begin."""
        ...

    def pushed(self, trigger: Trigger, run: str, prefix: str) -> Publication | None:
        """What an earlier attempt of the run has pushed to a pull request that was there before:
        the trigger's own, or ours for its issue. None when there is nothing. prefix: as above."""
        ...


class Signer(Protocol):
    """Makes commits anew, so that the forge vouches for who made them."""

    def put(
        self,
        commits: Sequence[MadeCommit],
        contents: Callable[[MadeCommit], Iterable[tuple[str, bytes]]],
        branch: str,
        previous: str,
    ) -> PublishedCommit:
        """Make `branch` hold the last of the commits; the one that it then holds. Again is a no-op.

        commits: oldest first, each with parents that are among them or on the forge. contents: the
        new blobs of one. previous: what the branch holds now, "" for a new one. Raises BranchTaken
        when the branch holds something else.
        """
        ...


class Forge(Protocol):
    """One repository. Every write is bound to it and to the trigger's own issue.

    All methods raise ForgeError, with the missing permission named where that is the cause.
    """

    def whoami(self) -> str:
        """Login that this forge writes as."""
        ...

    def account(self) -> Actor:
        """As `whoami`, with the account's number where it is known. Asks once more."""
        ...

    def permission(self, login: str) -> str:
        """What `login` may do here: "admin", "maintain", "write", "triage", "read" or "none"."""
        ...

    def is_member(self, team: str, login: str) -> bool:
        """Whether `login` is an active member of the team ORG/TEAM."""
        ...

    def is_public(self) -> bool | None:
        """Whether anybody can read the repository; None where the forge does not say."""
        ...

    def operator_may_push(self) -> bool:
        """True when the owner of the token may push."""
        ...

    def acknowledge(self, trigger: Trigger) -> None:
        """Show at once that the request was seen. Never raises: a run doesn't hang on it."""
        ...

    def read(self, trigger: Trigger) -> Task:
        """The issue as the requester saw it, with hidden text taken out."""
        ...

    def find_publication(self, trigger: Trigger) -> Publication | None:
        """What an earlier run of the same key has published, None when it may run (again).

        `comment_url` is None when that run died between its pull request and its comment.
        """
        ...

    def branches(self, prefix: str) -> set[str]:
        """Names of the branches that start with `prefix`."""
        ...

    def discard_abandoned(self, prefix: str, run: str) -> None:
        """Remove the branches that start with `prefix` which a cut-off attempt of this run has
        pushed, and of which there never was a pull request. Never raises, as `acknowledge`."""
        ...

    def open_head(self, branch: str) -> str | None:
        """Newest commit of `branch` while a pull request of ours is open from it, else None."""
        ...

    def heads(self) -> Heads:
        """The branches that pull requests come from, of this repository and of forks."""
        ...

    def open_pull_request(self, report: Report, branch: str) -> PullRequest:
        """The pull request of `branch`: the open one if there is one, with its words brought up
        to date when it is ours, else a new one."""
        ...

    def bring_up(self, report: Report) -> PullRequest | None:
        """The pull request that the trigger is about, with what the run has added to it in its
        text, and a draft unless that is ready; None, and nothing done, when it is not ours."""
        ...

    def signer(self) -> Signer | None:
        """What makes signed commits; None where nobody signs."""
        ...

    def publish_review(self, report: Report, review: Review) -> PublishedReview:
        """The review of the trigger's pull request, in one piece: the one of this key if there is
        one already, else a new one. A comment whose lines are refused goes into its text."""
        ...

    def answer_threads(
        self, report: Report, replies: Sequence[ThreadReply], commit: str, *, resolve: bool
    ) -> AnsweredThreads:
        """One reply in each of these conversations on lines, unless it is there already.

        commit: the one that has become part of the pull request, "" for none. resolve: whether
        those are marked as resolved in which something was done; failing to is no error.
        """
        ...

    def has_begun(self, trigger: Trigger) -> bool:
        """Whether a comment says that the run of this key waits or is at work."""
        ...

    def apart(self) -> ProgressWriter:
        """What tells of the run while it is at work: for one other thread, with a client of its
        own whose waits are short. Raises ForgeError."""
        ...

    def board(self) -> DashboardForge | None:
        """What the guard asks beside a run's thread; None where there are no threads."""
        ...

    def ask(self, report: Report) -> datetime | None:
        """Tell what the run waits for, in the comment that will tell how it ended; since when it
        can be seen there, by the forge's clock. None when nobody can be told."""
        ...

    def comment(self, report: Report, seconds: float | None = None) -> str:
        """Tell how the run ended, in one comment per key. Returns its URL, "" when local.

        seconds: for which it is tried again while the forge is in trouble; as long as any other
        write unless given."""
        ...
