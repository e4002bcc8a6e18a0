"""The branches that pull requests come from: where they are by now, and what a run of ours has
pushed there already.

Source: https://docs.github.com/en/rest/pulls/pulls#get-a-pull-request
"""

from itertools import chain, islice
from typing import Any

import github
from github.PullRequest import PullRequest as GitHubPullRequest
from github.Repository import Repository

from resolver.forge.github.access import GitHubAccess
from resolver.forge.github.pinning import pushers
from resolver.forge.github.publishing import described
from resolver.model import Command, Publication, Trigger
from resolver.pull import PullSource

MOST_COMMITS = 250
"""Commits of a pull request that are looked at beside its newest; GitHub lists no more."""

_PUSHING = frozenset({Command.FIX, Command.UPDATE, Command.CONTINUE, Command.RESUME})


class PullHeads:
    """Of one repository. own: our login."""

    def __init__(self, access: GitHubAccess, repository: Repository, own: str) -> None:
        self._access = access
        self._repository = repository
        self._own = own.casefold()

    def source(self, number: int) -> PullSource:
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
            return PullSource(
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

    def pushed(self, trigger: Trigger, run: str) -> Publication | None:
        """What the run has pushed to the trigger's pull request and not told of: it was cut off in
        between. A commit that somebody else has pushed is none of the run's, whatever it says."""
        number = trigger.number
        if not trigger.is_pull_request or number is None or trigger.subject != number:
            return None  # the work is on an issue, and its pull request is found otherwise
        if trigger.command not in _PUSHING:
            return None
        what = f"look for an earlier run's commit on {self._repository.full_name}#{number}"
        with self._access.asking(what, "pull-requests: read"):
            pull = self._repository.get_pull(number)
            mark = f"Resolver-Run: {run}"
            newest = self._repository.get_commit(pull.complete().head.sha)
            for commit in chain([newest], islice(pull.get_commits(), MOST_COMMITS)):
                if mark in commit.commit.message.splitlines() and self._is_own(pull, commit.sha):
                    merged = len(commit.parents) > 1
                    return _published(pull.complete(), commit.sha, merged=merged)
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


def _published(pull: GitHubPullRequest, commit: str, *, merged: bool) -> Publication:
    source = pull.raw_data["head"]["repo"]
    base = pull.raw_data["base"]["repo"]
    own = str(source["full_name"]) == str(base["full_name"])
    return Publication(
        branch=pull.head.ref,
        commit=commit,
        pull_request=described(pull).model_copy(update={"body": ""}),
        how="updated" if merged else "pushed",
        repository="" if own else str(source["full_name"]),
        commit_url=f"{source['html_url']}/commit/{commit}",
        repeated=True,
    )
