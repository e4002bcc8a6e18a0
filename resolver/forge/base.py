"""Forge: where issues and pull requests live. The protocol, nothing else.

`github/` is GitHub and GitHub Enterprise Server, `local.py` a checkout on this machine.
"""

from datetime import datetime
from typing import Protocol

from resolver.forge.report import Report
from resolver.model import Publication, PullRequest, Task, Trigger
from resolver.pull import PublishedReview, Review


class Forge(Protocol):
    """One repository. Every write is bound to it and to the trigger's own issue.

    All methods raise ForgeError, with the missing permission named where that is the cause.
    """

    def whoami(self) -> str:
        """Login that this forge writes as."""
        ...

    def permission(self, login: str) -> str:
        """What `login` may do here: "admin", "maintain", "write", "triage", "read" or "none"."""
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

    def open_pull_request(self, report: Report, branch: str) -> PullRequest:
        """The pull request of `branch`: the open one if there is one, with its words brought up
        to date when it is ours, else a new one."""
        ...

    def publish_review(self, report: Report, review: Review) -> PublishedReview:
        """The review of the trigger's pull request, in one piece: the one of this key if there is
        one already, else a new one. A comment whose lines are refused goes into its text."""
        ...

    def ask(self, report: Report) -> datetime | None:
        """Tell what the run waits for, in the comment that will tell how it ended; since when it
        can be seen there, by the forge's clock. None when nobody can be told."""
        ...

    def comment(self, report: Report) -> str:
        """Tell how the run ended, in one comment per key. Returns its URL, "" when local."""
        ...
