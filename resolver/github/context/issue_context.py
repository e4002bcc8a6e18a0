"""Reads the context of an issue or pull request: related ones, pictures and failed checks.

A run can work without all of these. What can't be read is reported, and the run continues.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from github.Repository import Repository

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess
from resolver.github.context.failed_checks import Checks
from resolver.github.context.pictures import MOST, PictureHosts, PictureReader
from resolver.github.context.related import Related
from resolver.github.text.picture_links import PictureLinks
from resolver.models.issue_context import FailedCheck, Picture, Reference
from resolver.models.pull_request import PullRequestContext
from resolver.models.run import Comment, Snapshot, Trigger, TriggerKind


@dataclass(frozen=True)
class WantedContext:
    """How much of the context is read.

    pictures: maximum number of pictures that are fetched.
    picture_hosts: hosts in addition to GitHub's own, with their port if it is not the default.
    """

    pictures: int = MOST
    picture_hosts: tuple[str, ...] = ()


DEFAULT = WantedContext()


@dataclass(frozen=True)
class IssueContext:
    """The context of an issue or pull request."""

    references: tuple[Reference, ...]
    pictures: tuple[Picture, ...]
    checks: tuple[FailedCheck, ...]


@dataclass(frozen=True)
class IssueContextReader:
    """Reads the context of the issue or pull request with this number. own: Resolver's login."""

    access: GitHubAccess
    repository: Repository
    trigger: Trigger
    number: int
    own: str
    wanted: WantedContext

    def read(
        self,
        snapshot: Snapshot,
        comments: Sequence[Comment],
        links: PictureLinks,
        pull: PullRequestContext | None,
        left_out: list[str],
    ) -> IssueContext:
        """Return the whole context. What is left out is added to `left_out`."""
        commit = pull.head if pull else self.trigger.head
        wants_checks = pull is not None or self.trigger.kind is TriggerKind.CHECK_FAILED
        return IssueContext(
            references=self._references(snapshot, comments, pull, left_out),
            pictures=self._pictures(_used(snapshot, comments, pull), links, left_out),
            checks=self.checks(commit, left_out) if wants_checks and commit else (),
        )

    def checks(self, commit: str, left_out: list[str]) -> tuple[FailedCheck, ...]:
        """Return the checks that had failed on the commit."""
        try:
            with self.access.asking("read the failed checks", "checks: read, actions: read"):
                return Checks(self.access, self.repository, self.trigger).failed(commit, left_out)
        except ForgeError as error:
            left_out.append(error.what)
            return ()

    def _references(
        self,
        snapshot: Snapshot,
        comments: Sequence[Comment],
        pull: PullRequestContext | None,
        left_out: list[str],
    ) -> tuple[Reference, ...]:
        texts = [self.trigger.instruction, snapshot.title, snapshot.body]
        texts += [comment.body for comment in reversed(comments) if not comment.is_ours]
        texts += _said_on_code(pull)
        known = [issue.number for issue in pull.closes] if pull else []
        name = self.repository.full_name
        try:
            with self.access.asking("read what it refers to", "issues: read"):
                related = Related(self.access, name, self.number, self.trigger, self.own)
                return related.read(texts, known, left_out)
        except ForgeError as error:
            left_out.append(error.what)
            return ()

    def _pictures(
        self, texts: Sequence[str], links: PictureLinks, left_out: list[str]
    ) -> tuple[Picture, ...]:
        """Return the pictures in those texts that are used."""
        if links.uncounted:
            left_out.append(f"{links.uncounted} more pictures")
        shown = [
            link
            for link in links.links
            if any(f"[picture {link.number}]" in text for text in texts)
        ]
        hosts = PictureHosts(self.access.server_url, self.wanted.picture_hosts)
        reader = PictureReader(self.access, self.repository.requester, hosts, self.wanted.pictures)
        return reader.read(shown, left_out)


def _said_on_code(pull: PullRequestContext | None) -> list[str]:
    """Return the texts of reviews and review threads, newest first."""
    if pull is None:
        return []
    words = [review.words for review in pull.reviews]
    words += [each for thread in pull.threads for each in thread.comments]
    return [each.body for each in sorted(words, key=lambda each: each.at, reverse=True)]


def _used(
    snapshot: Snapshot, comments: Sequence[Comment], pull: PullRequestContext | None
) -> list[str]:
    """Return the texts that the task contains."""
    texts = [snapshot.body, *(comment.body for comment in comments)]
    if pull is not None:
        texts += [review.words.body for review in pull.reviews]
        texts += [words.body for thread in pull.threads for words in thread.comments]
    return texts
