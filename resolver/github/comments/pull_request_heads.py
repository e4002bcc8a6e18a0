"""Reads the head branches of pull requests, and finds what earlier runs pushed to them.

Source: https://docs.github.com/en/rest/pulls/pulls#get-a-pull-request
"""

from dataclasses import dataclass, field
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

_PUSHING_COMMANDS = frozenset({Command.FIX, Command.UPDATE, Command.CONTINUE, Command.RESUME})


@dataclass
class GitHubPullRequestHeads:
    """Reads the pull request heads of one repository. `own_login` is Resolver's login."""

    access: GitHubAccess
    repository: Repository
    own_login: str
    _found: dict[tuple[int, str], list[GitHubPullRequest]] = field(default_factory=dict)

    def source(self, number: int) -> PullRequestSource:
        """Return where the pull request's branch is now, and if Resolver can push to it."""
        operation = f"read pull request {number} of {self.repository.full_name}"
        with self.access.wrap_errors(operation, "pull-requests: read"):
            data = self.repository.get_pull(number).complete().raw_data
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
            return self.repository.get_branch(branch).protected
        except github.GithubException as error:
            if error.status != 404:
                raise
        return False  # the branch was deleted; fetching it reports that

    def open_from(self, branch: str) -> int | None:
        """Return the number of Resolver's open pull request from `branch`, or None."""
        operation = f"look at {branch} of {self.repository.full_name}"
        with self.access.wrap_errors(operation, "pull-requests: read"):
            pull = open_pull_request_of(self.repository, branch)
            return pull.number if pull and is_by(pull, self.own_login) else None

    def find_origin(self, number: int) -> tuple[int, str] | None:
        """Return the issue and the run of pull request `number`, None if it is not Resolver's."""
        operation = f"read {self.repository.full_name}#{number}"
        with self.access.wrap_errors(operation, "pull-requests: read"):
            pull = self.repository.get_pull(number).complete()
            is_own = is_by(pull, self.own_login)
            return parse_pull_request_marker(pull.body or "") if is_own else None

    def of_issue(self, trigger: Trigger, prefix: str) -> OpenPullRequest | None:
        """Return the newest open pull request that Resolver opened for the issue, or None.

        Its head is pinned to the time of the request. Only branches of this repository that start
        with `prefix` count: a pull request by somebody else may claim to be for the issue.
        """
        operation = (
            f"look for an open pull request for {self.repository.full_name}#{trigger.subject}"
        )
        with self.access.wrap_errors(operation, "pull-requests: read"):
            pulls = self._open_pulls(trigger.subject or 0, prefix)
            if not pulls:
                return None
            pull = max(pulls, key=lambda pull: pull.number)
            pinned = self._pin(pull, trigger)
            title = " ".join(strip_hidden(pull.title).text.split())
            return OpenPullRequest(
                number=pull.number,
                title=shorten_text(title, 256),
                url=pull.html_url,
                branch=pull.head.ref,
                head=pinned.head,
                base_branch=pull.base.ref,
                moved=pinned.moved or "",
            )

    def open_for(self, issue: int, prefix: str) -> int | None:
        """Return the number of the newest open pull request of `of_issue`, or None."""
        operation = f"look for an open pull request for {self.repository.full_name}#{issue}"
        with self.access.wrap_errors(operation, "pull-requests: read"):
            pulls = self._open_pulls(issue, prefix)
            return max((pull.number for pull in pulls), default=None)

    def _open_pulls(self, issue: int, prefix: str) -> list[GitHubPullRequest]:
        """Return Resolver's open pull requests for the issue, as they were when first asked for.

        They are found by branch name, so that the number of other open pull requests does not
        matter.
        """
        if (issue, prefix) not in self._found:
            branches = islice(branch_tips(self.repository, prefix), MAX_BRANCHES)
            pulls = (open_pull_request_of(self.repository, branch) for branch in branches)
            own = [pull for pull in pulls if pull and self._is_for(pull, issue)]
            self._found[issue, prefix] = own
        return self._found[issue, prefix]

    def _is_for(self, pull: GitHubPullRequest, issue: int) -> bool:
        """Return True if Resolver opened the pull request and its marker names no other issue.

        People may rewrite the body and so delete the marker; then the branch name, which the caller
        has checked, decides.
        """
        run = parse_pull_request_marker(pull.body or "")
        return is_by(pull, self.own_login) and (run is None or run[0] == issue)

    def _pin(self, pull: GitHubPullRequest, trigger: Trigger) -> PinnedHead:
        since = searched_since(trigger)
        if since is not None and pull.created_at >= since:
            return PinnedHead(
                pull.head.sha, "it was opened after the request; its newest commit is used"
            )
        return pin_head(self.repository, pull.raw_data, trigger)

    def pushed(self, trigger: Trigger, run: str, prefix: str) -> Publication | None:
        """Return what an interrupted attempt of the run pushed to an existing pull request.

        Returns None if there is nothing. The attempt pushed its commit but ended before it wrote
        its comment. A commit that names the run but was pushed by another account does not count.
        """
        number = trigger.subject
        if trigger.command not in _PUSHING_COMMANDS or number is None:
            return None
        operation = f"look for an earlier run's commit on {self.repository.full_name}#{number}"
        is_on_pull = trigger.is_pull_request and number == trigger.number
        with self.access.wrap_errors(operation, "pull-requests: read"):
            pulls = (
                [self.repository.get_pull(number)]
                if is_on_pull
                else self._open_pulls(number, prefix)
            )
            for pull in pulls:
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
        newest = self.repository.get_commit(pull.complete().head.sha)
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
        logins_by_commit = pushers(self.repository, str(source["full_name"]), full_pull.head.ref)
        login = logins_by_commit.get(commit, "")
        return not logins_by_commit or login.casefold() == self.own_login.casefold()


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
