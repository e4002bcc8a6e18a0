"""The branches that pull requests come from: where they are by now, and what a run of ours has
pushed there already.

Source: https://docs.github.com/en/rest/pulls/pulls#get-a-pull-request
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

import github
from github.Commit import Commit
from github.PullRequest import PullRequest as GitHubPullRequest
from github.Repository import Repository

from resolver.github.client.access import GitHubAccess
from resolver.github.client.listing import Listing
from resolver.github.comments.find_or_create import (
    branch_tips,
    comes_from,
    describe_pull_request,
    is_own_account,
    open_pull_request_of,
    searched_since,
)
from resolver.github.comments.markers import run_of_marker
from resolver.github.context.pinning import PinnedHead, pin_head, pushers
from resolver.github.text.escape import shorten_text
from resolver.github.text.hidden_text import strip_hidden
from resolver.models.pull_request import OpenPullRequest, PullRequestSource
from resolver.models.run import Command, How, Publication, Trigger

MOST_COMMITS = 250
"""Commits of a pull request that are looked at beside its newest; GitHub lists no more."""

MOST_BRANCHES = 50
"""Branches for work on one issue that are looked at for an open pull request."""

MOST_PULLS = 200
"""Pull requests of any state that are looked through for ours: two pages."""

MOST_SEARCHED = 20
"""Pull requests of ours for one issue whose commits are looked at."""

_PUSHING = frozenset({Command.FIX, Command.UPDATE, Command.CONTINUE, Command.RESUME})


class PullHeads:
    """Of one repository. own: our login. newest: as `newest_pulls` has them."""

    def __init__(
        self,
        access: GitHubAccess,
        repository: Repository,
        own: str,
        newest: Iterable[GitHubPullRequest],
    ) -> None:
        self._newest = newest
        self._access = access
        self._repository = repository
        self._own = own.casefold()

    def source(self, number: int) -> PullRequestSource:
        """Where the pull request comes from at this moment."""
        what = f"read pull request {number} of {self._repository.full_name}"
        with self._access.asking(what, "pull-requests: read"):
            now = self._repository.get_pull(number).complete().raw_data
            head: dict[str, Any] = now["head"]
            source = head.get("repo")
            came_from = str(source["full_name"]) if source else ""
            own = str(now["base"]["repo"]["full_name"])
            is_fork = came_from.casefold() != own.casefold()
            is_open = now["state"] == "open"
            return PullRequestSource(
                is_open=is_open,
                repository=came_from,
                branch=str(head["ref"]),
                is_fork=is_fork,
                can_modify=bool(now.get("maintainer_can_modify")),
                is_protected=is_open and not is_fork and self._is_protected(str(head["ref"])),
            )

    def _is_protected(self, branch: str) -> bool:
        try:
            return self._repository.get_branch(branch).protected
        except github.GithubException as error:
            if error.status != 404:
                raise
        return False  # it is gone, which is found out when it is fetched

    def of_issue(self, trigger: Trigger, prefix: str) -> OpenPullRequest | None:
        """The newest pull request that we have opened for the issue, with its head as of the
        request. Its branch begins with `prefix`, in this repository; what others write of an issue
        in theirs counts for nothing."""
        what = f"look for an open pull request for {self._repository.full_name}#{trigger.subject}"
        with self._access.asking(what, "pull-requests: read"):
            pull = self._of_issue(trigger.subject or 0, prefix)
            if pull is None:
                return None
            pinned = self._pinned(pull, trigger)
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

    def _of_issue(self, issue: int, prefix: str) -> GitHubPullRequest | None:
        return max(self._open(issue, prefix), key=lambda pull: pull.number, default=None)

    def _open(self, issue: int, prefix: str) -> Iterator[GitHubPullRequest]:
        """Ours for the issue that are open, however many others are."""
        for branch in islice(branch_tips(self._repository, prefix), MOST_BRANCHES):
            pull = open_pull_request_of(self._repository, branch)
            if pull and self._is_for(pull, issue):
                yield pull

    def _any(self, issue: int, prefix: str) -> Iterator[GitHubPullRequest]:
        """Ours for the issue in any state, those that something happened to last first."""
        seen = 0
        for pull in islice(self._newest, MOST_PULLS):
            seen += 1
            named = pull.head.ref.startswith(prefix) and comes_from(pull, self._repository)
            if named and self._is_for(pull, issue):
                yield pull
        if seen == MOST_PULLS:
            yield from self._open(issue, prefix)

    def _is_for(self, pull: GitHubPullRequest, issue: int) -> bool:
        """Whether it is ours, and says of no other issue that it is for that. People may have
        written its text anew, marker and all: then the branch's name counts."""
        work = run_of_marker(pull.body or "")
        return is_own_account(pull, self._own) and (work is None or work[0] == issue)

    def _pinned(self, pull: GitHubPullRequest, trigger: Trigger) -> PinnedHead:
        since = searched_since(trigger)
        if since is not None and pull.created_at >= since:
            return PinnedHead(
                pull.head.sha, "it was opened after the request; its newest commit is used"
            )
        return pin_head(self._repository, pull.raw_data, trigger)

    def pushed(self, trigger: Trigger, run: str, prefix: str) -> Publication | None:
        """What the run has pushed to a pull request that was there before it and not told of: it
        was cut off in between, and the pull request may have been merged since. A commit that
        somebody else has pushed is none of the run's, whatever it says."""
        number = trigger.subject
        if trigger.command not in _PUSHING or number is None:
            return None
        what = f"look for an earlier run's commit on {self._repository.full_name}#{number}"
        on_pull = trigger.is_pull_request and number == trigger.number
        with self._access.asking(what, "pull-requests: read"):
            pulls: Iterable[GitHubPullRequest] = self._any(number, prefix)
            if on_pull:
                pulls = [self._repository.get_pull(number)]
            for pull in islice(pulls, MOST_SEARCHED):
                if (commit := self._commit_of(run, pull)) is not None:
                    how: How = "updated" if len(commit.parents) > 1 else "pushed"
                    return _published(pull.complete(), commit.sha, how if on_pull else "added")
        return None

    def _commit_of(self, run: str, pull: GitHubPullRequest) -> Commit | None:
        """The commit that the run has pushed to the pull request."""
        mark = f"Resolver-Run: {run}"
        commits = Listing(pull.requester, Commit, f"{pull.url}/commits")
        newest = self._repository.get_commit(pull.complete().head.sha)
        for commit in chain([newest], islice(commits, MOST_COMMITS)):
            if mark in commit.commit.message.splitlines() and self._is_own(pull, commit.sha):
                return commit
        return None

    def _is_own(self, pull: GitHubPullRequest, commit: str) -> bool:
        """Whether we have pushed it. Where nobody can say, it is believed: then nothing is done
        twice."""
        known = pull.complete()
        source = known.raw_data["head"].get("repo")
        if not source:
            return False
        by = pushers(self._repository, str(source["full_name"]), known.head.ref)
        return not by or by.get(commit, "").casefold() == self._own


def _published(pull: GitHubPullRequest, commit: str, how: How) -> Publication:
    source = pull.raw_data["head"]["repo"]
    base = pull.raw_data["base"]["repo"]
    own = str(source["full_name"]) == str(base["full_name"])
    return Publication(
        branch=pull.head.ref,
        commit=commit,
        pull_request=describe_pull_request(pull).model_copy(update={"body": ""}),
        how=how,
        repository="" if own else str(source["full_name"]),
        commit_url=f"{source['html_url']}/commit/{commit}",
        repeated=True,
    )
