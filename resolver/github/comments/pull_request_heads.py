"""Reads the head branches of pull requests, and finds what earlier runs pushed to them.

Source: https://docs.github.com/en/rest/pulls/pulls#get-a-pull-request
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

import github
from github.Commit import Commit
from github.PullRequest import PullRequest as GitHubPullRequest
from github.Repository import Repository

from resolver.github.client.access import GitHubAccess
from resolver.github.client.accounts import is_by
from resolver.github.client.resources import Listing
from resolver.github.comments.find_or_create import (
    branch_tips,
    comes_from,
    describe_pull_request,
    open_pull_request_of,
)
from resolver.github.context.own_comments import searched_since
from resolver.github.context.pinning import PinnedHead, pin_head, pushers
from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.markdown import shorten_text
from resolver.github.text.markers import parse_pull_request_marker
from resolver.models.pull_request import OpenPullRequest, PullRequestSource
from resolver.models.run import Command, Publication, PublicationMethod, Trigger

MAX_COMMITS = 250
"""Maximum number of commits of a pull request that are searched, besides its newest one.

GitHub lists no more.
"""

MAX_BRANCHES = 50
"""Maximum number of branches for one issue that are searched for an open pull request."""

MAX_PULLS = 200
"""Maximum number of pull requests in any state that are searched for Resolver's own: two pages."""

MAX_SEARCHED_PULLS = 20
"""Maximum number of Resolver's pull requests for one issue whose commits are searched."""

_PUSHING_COMMANDS = frozenset({Command.FIX, Command.UPDATE, Command.CONTINUE, Command.RESUME})


class GitHubPullRequestHeads:
    """Reads the pull request heads of one repository.

    `own_login` is Resolver's login. `newest` returns what `newest_pulls`
    does, perhaps as it was when the work on this issue started.
    """

    def __init__(
        self,
        access: GitHubAccess,
        repository: Repository,
        own_login: str,
        newest: Callable[[int], Iterable[GitHubPullRequest]],
    ) -> None:
        self._newest = newest
        self._access = access
        self._repository = repository
        self._own_login = own_login.casefold()

    def source(self, number: int) -> PullRequestSource:
        """Return where the pull request's branch is now, and if Resolver can push to it."""
        operation = f"read pull request {number} of {self._repository.full_name}"
        with self._access.wrap_errors(operation, "pull-requests: read"):
            data = self._repository.get_pull(number).complete().raw_data
            head: dict[str, Any] = data["head"]
            source = head.get("repo")
            head_repository = str(source["full_name"]) if source else ""
            base_repository = str(data["base"]["repo"]["full_name"])
            is_fork = head_repository.casefold() != base_repository.casefold()
            is_open = data["state"] == "open"
            return PullRequestSource(
                is_open=is_open,
                repository=head_repository,
                branch=str(head["ref"]),
                is_fork=is_fork,
                can_modify=bool(data.get("maintainer_can_modify")),
                is_protected=is_open and not is_fork and self._is_protected(str(head["ref"])),
            )

    def _is_protected(self, branch: str) -> bool:
        try:
            return self._repository.get_branch(branch).protected
        except github.GithubException as error:
            if error.status != 404:
                raise
        return False  # the branch was deleted; fetching it reports that

    def of_issue(self, trigger: Trigger, prefix: str) -> OpenPullRequest | None:
        """Return the newest open pull request that Resolver opened for the issue, or None.

        Its head is pinned to the time of the request. Only branches of this repository that start
        with `prefix` count: a pull request by somebody else may claim to be for the issue.
        """
        operation = (
            f"look for an open pull request for {self._repository.full_name}#{trigger.subject}"
        )
        with self._access.wrap_errors(operation, "pull-requests: read"):
            pull = self._newest_open_pull(trigger.subject or 0, prefix)
            if pull is None:
                return None
            pinned = self._pin(pull, trigger)
            title = " ".join(strip_hidden(pull.title).text.split())
            return OpenPullRequest(
                number=pull.number,
                title=shorten_text(title, 256),
                url=pull.html_url,
                branch=pull.head.ref,
                head=pinned.head,
                base_branch=pull.base.ref,
                moved=pinned.moved,
            )

    def _newest_open_pull(self, issue: int, prefix: str) -> GitHubPullRequest | None:
        return max(self._open_pulls(issue, prefix), key=lambda pull: pull.number, default=None)

    def _open_pulls(self, issue: int, prefix: str) -> Iterator[GitHubPullRequest]:
        """Yield Resolver's open pull requests for the issue.

        They are found by branch name, so that the number of other open pull requests does not
        matter.
        """
        for branch in islice(branch_tips(self._repository, prefix), MAX_BRANCHES):
            pull = open_pull_request_of(self._repository, branch)
            if pull and self._is_for(pull, issue):
                yield pull

    def _all_pulls(self, issue: int, prefix: str) -> Iterator[GitHubPullRequest]:
        """Yield Resolver's pull requests for the issue in any state, most recently updated first.

        If the newest pull requests exceed the limit, the open ones are looked up by branch in
        addition.
        """
        count = 0
        for pull in islice(self._newest(issue), MAX_PULLS):
            count += 1
            is_own_branch = pull.head.ref.startswith(prefix) and comes_from(pull, self._repository)
            if is_own_branch and self._is_for(pull, issue):
                yield pull
        if count == MAX_PULLS:
            yield from self._open_pulls(issue, prefix)

    def _is_for(self, pull: GitHubPullRequest, issue: int) -> bool:
        """Return True if Resolver opened the pull request and its marker names no other issue.

        People may rewrite the body and so delete the marker; then the branch name, which the caller
        has checked, decides.
        """
        run = parse_pull_request_marker(pull.body or "")
        return is_by(pull, self._own_login) and (run is None or run[0] == issue)

    def _pin(self, pull: GitHubPullRequest, trigger: Trigger) -> PinnedHead:
        since = searched_since(trigger)
        if since is not None and pull.created_at >= since:
            return PinnedHead(
                pull.head.sha, "it was opened after the request; its newest commit is used"
            )
        return pin_head(self._repository, pull.raw_data, trigger)

    def pushed(self, trigger: Trigger, run: str, prefix: str) -> Publication | None:
        """Return what an interrupted attempt of the run pushed to an existing pull request.

        Returns None if there is nothing. The attempt pushed its commit but ended before it wrote
        its comment; the pull request may have been merged since. A commit that names the run but
        was pushed by another account does not count.
        """
        number = trigger.subject
        if trigger.command not in _PUSHING_COMMANDS or number is None:
            return None
        operation = f"look for an earlier run's commit on {self._repository.full_name}#{number}"
        is_on_pull = trigger.is_pull_request and number == trigger.number
        with self._access.wrap_errors(operation, "pull-requests: read"):
            pulls: Iterable[GitHubPullRequest] = self._all_pulls(number, prefix)
            if is_on_pull:
                pulls = [self._repository.get_pull(number)]
            for pull in islice(pulls, MAX_SEARCHED_PULLS):
                if (commit := self._find_commit(run, pull)) is not None:
                    how: PublicationMethod = "updated" if len(commit.parents) > 1 else "pushed"
                    return _make_publication(
                        pull.complete(), commit.sha, how if is_on_pull else "added"
                    )
        return None

    def _find_commit(self, run: str, pull: GitHubPullRequest) -> Commit | None:
        """Return the commit that the run pushed to the pull request, or None."""
        trailer = f"Resolver-Run: {run}"
        commits = Listing(pull.requester, Commit, f"{pull.url}/commits")
        newest = self._repository.get_commit(pull.complete().head.sha)
        for commit in chain([newest], islice(commits, MAX_COMMITS)):
            if trailer in commit.commit.message.splitlines() and self._is_own(pull, commit.sha):
                return commit
        return None

    def _is_own(self, pull: GitHubPullRequest, commit: str) -> bool:
        """Return True if Resolver's account pushed the commit.

        If the pushes cannot be read, the commit counts as Resolver's own, so that nothing is done
        twice.
        """
        full_pull = pull.complete()
        source = full_pull.raw_data["head"].get("repo")
        if not source:
            return False
        logins_by_commit = pushers(self._repository, str(source["full_name"]), full_pull.head.ref)
        return (
            not logins_by_commit or logins_by_commit.get(commit, "").casefold() == self._own_login
        )


def _make_publication(pull: GitHubPullRequest, commit: str, how: PublicationMethod) -> Publication:
    source = pull.raw_data["head"]["repo"]
    base = pull.raw_data["base"]["repo"]
    is_same_repository = str(source["full_name"]) == str(base["full_name"])
    return Publication(
        branch=pull.head.ref,
        commit=commit,
        pull_request=describe_pull_request(pull).model_copy(update={"body": ""}),
        how=how,
        repository="" if is_same_repository else str(source["full_name"]),
        commit_url=f"{source['html_url']}/commit/{commit}",
        repeated=True,
    )
