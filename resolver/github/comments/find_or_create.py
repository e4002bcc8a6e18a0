"""Writing to GitHub: pull requests and comments, each found before it is made.

What is found again is trusted only when our own account wrote it.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import islice
from typing import TypeVar
from urllib.parse import quote

import github
from github.Issue import Issue
from github.IssueComment import IssueComment
from github.PullRequest import PullRequest as GitHubPullRequest
from github.Repository import Repository

from resolver.github.client.access import GitHubAccess
from resolver.github.client.listing import Listing, RowsReadOnce
from resolver.github.comments.markers import ending_of, is_of_run, is_refusal_of
from resolver.github.context.read_task import author_login, newest_comments
from resolver.models.run import PullRequest, Trigger, TriggerKind

_SEARCHED_COMMENTS = 500
_SEARCHED_PULLS = 200

Thing = TypeVar("Thing")


def searched_since(trigger: Trigger) -> datetime | None:
    """What we wrote for an event is newer than the event. The moment of a command line and of a
    dispatch comes from this machine's clock, which GitHub's need not agree with, and is another
    one when a dispatch is done again: everything is searched."""
    own = {TriggerKind.COMMAND_LINE, TriggerKind.DISPATCHED}
    return None if trigger.kind in own else trigger.at


def own_comments(issue: Issue, own: str, since: datetime | None) -> list[IssueComment]:
    """Our own comments among the newest, newest first."""
    comments = newest_comments(issue, _SEARCHED_COMMENTS, since)
    return [c for c in reversed(comments) if author_login(c).casefold() == own.casefold()]


def comment_of_run(issue: Issue, own: str, trigger: Trigger) -> IssueComment | None:
    """The comment that tells of the run of this key: how far it is, or how it ended."""
    for comment in own_comments(issue, own, searched_since(trigger)):
        if is_of_run(comment.body or "", trigger.key):
            return comment
    return None


def refusal_of(issue: Issue, own: str, login: str) -> IssueComment | None:
    """Our refusal of this person in this thread."""
    for comment in own_comments(issue, own, None):
        if is_refusal_of(comment.body or "", login):
            return comment
    return None


def newest_pulls(repository: Repository) -> RowsReadOnce[GitHubPullRequest]:
    """Pull requests of any state, those first that something happened to last."""
    return RowsReadOnce(pulls_of(repository, state="all", sort="updated", direction="desc"))


def pull_request_of_run(
    newest: Iterable[GitHubPullRequest], own: str, trigger: Trigger
) -> GitHubPullRequest | None:
    """The pull request that a run of this key has opened or added to, whatever its state. newest:
    as `newest_pulls` has them."""
    # what adds to a pull request that is older than the request has brought its text up to date
    since = searched_since(trigger)
    for pull in islice(newest, _SEARCHED_PULLS):
        if since is not None and pull.updated_at is not None and pull.updated_at < since:
            return None
        if is_own_account(pull, own) and ending_of(pull.body or "", trigger.key):
            return pull
    return None


def pulls_of(repository: Repository, **query: str) -> Listing[GitHubPullRequest]:
    """Its pull requests. query: as the API has it."""
    return Listing(repository.requester, GitHubPullRequest, f"{repository.url}/pulls", **query)


def open_pull_request_of(repository: Repository, branch: str) -> GitHubPullRequest | None:
    """The open pull request of a branch of this repository (not of a fork)."""
    owner = repository.full_name.split("/", 1)[0]
    for pull in pulls_of(repository, state="open", head=f"{owner}:{branch}"):
        if pull.head.ref == branch and comes_from(pull, repository):
            return pull
    return None


def comes_from(pull: GitHubPullRequest, repository: Repository) -> bool:
    """Whether its branch is in this repository: an owner's fork may have one of the same name."""
    source = pull.head.repo
    return source is not None and source.full_name.casefold() == repository.full_name.casefold()


def create_pull_request(
    repository: Repository, *, base: str, head: str, title: str, body: str, draft: bool
) -> GitHubPullRequest:
    """A new pull request; not as a draft where the repository's plan has no drafts."""
    try:
        return repository.create_pull(base, head, title=title, body=body, draft=draft)
    except github.GithubException as error:
        if not (draft and error.status == 422 and "draft" in str(error.data).lower()):
            raise
    return repository.create_pull(base, head, title=title, body=body, draft=False)


def write_once(
    access: GitHubAccess,
    what: str,
    permission: str,
    find: Callable[[], Thing | None],
    create: Callable[[], Thing],
    seconds: float | None = None,
) -> Thing:
    """The thing that `find` finds, else a new one.

    After a failure that may hide a success (5xx, lost connection) it is looked for again before
    it is made again, so that there are never two. seconds: for which it is tried, where the
    access is not to decide that.
    """

    def attempt() -> Thing:
        found = find()
        return found if found is not None else create()

    return access.persistently(what, permission, attempt, seconds)


def describe_pull_request(pull: GitHubPullRequest) -> PullRequest:
    """The pull request as the rest of the program knows it."""
    return PullRequest(
        title=pull.title,
        body=pull.body or "",
        number=pull.number,
        url=pull.html_url,
        draft=bool(pull.draft),
    )


def is_own_account(pull: GitHubPullRequest, own: str) -> bool:
    """Whether our own account has opened it."""
    return pull.user is not None and pull.user.login.casefold() == own.casefold()


def abandoned_branches(repository: Repository, prefix: str, run: str) -> list[str]:
    """Branches that start with `prefix`, end in a commit of this run, and never had a pull
    request: an attempt of the run was cut off between the one and the other."""
    found = []
    for name, tip in branch_tips(repository, prefix).items():
        message = repository.get_commit(tip).commit.message
        if f"Resolver-Run: {run}" in message.splitlines() and not _had_pull(repository, name):
            found.append(name)
    return found


def _had_pull(repository: Repository, branch: str) -> bool:
    owner = repository.full_name.split("/", 1)[0]
    pulls = pulls_of(repository, state="all", head=f"{owner}:{branch}")
    return any(pull.head.ref == branch and comes_from(pull, repository) for pull in pulls)


def delete_branch(repository: Repository, branch: str) -> None:
    """Remove it. Asked for directly: PyGithub's lazy GitRef asks at the wrong address."""
    path = f"{repository.url}/git/refs/heads/{quote(branch)}"
    repository.requester.requestJsonAndCheck("DELETE", path)


def branch_tips(repository: Repository, prefix: str) -> dict[str, str]:
    """The branches that start with `prefix`, each with the id of its newest commit.

    Asked for directly: this list has no pages, and PyGithub would ask for some.
    """
    path = f"{repository.url}/git/matching-refs/heads/{quote(prefix)}"
    _, refs = repository.requester.requestJsonAndCheck("GET", path)
    return {str(r["ref"]).removeprefix("refs/heads/"): str(r["object"]["sha"]) for r in refs}


def say_once(
    access: GitHubAccess,
    issue: Issue,
    own: str,
    trigger: Trigger,
    marker: str,
    text: str,
    what: str,
) -> None:
    """One comment that begins with the marker, unless it is there. what: as `asking` has it."""

    def find() -> IssueComment | None:
        comments = own_comments(issue, own, trigger.at)
        return next((c for c in comments if (c.body or "").startswith(marker)), None)

    body = f"{marker}\n\n{text}\n"
    write_once(access, what, "issues: write", find, lambda: issue.create_comment(body))
