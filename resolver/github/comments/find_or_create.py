"""Finds and creates Resolver's pull requests and comments on GitHub.

Everything is looked up before it is created, so that a retry does not create it twice. Callers
trust a result only if Resolver's own account wrote it.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar
from urllib.parse import quote

import github
from github.Issue import Issue
from github.IssueComment import IssueComment
from github.PullRequest import PullRequest as GitHubPullRequest
from github.Repository import Repository

from resolver.github.client.access import GitHubAccess
from resolver.github.client.accounts import is_by
from resolver.github.client.resources import Listing
from resolver.github.context.own_comments import own_comments, searched_since
from resolver.github.text.markers import answer_marker, ending_of
from resolver.models.run import PullRequest, Trigger

_MAX_SEARCHED_PULLS = 200

Resource = TypeVar("Resource")


def newest_pulls(repository: Repository) -> Listing[GitHubPullRequest]:
    """Return pull requests in any state, the most recently updated first."""
    return pulls_of(repository, state="all", sort="updated", direction="desc")


def pull_request_of_run(
    newest: Iterable[GitHubPullRequest], own_login: str, trigger: Trigger
) -> GitHubPullRequest | None:
    """Return the pull request that a run with the trigger's key opened or added to, in any state.

    `newest` is the result of `newest_pulls`.
    """
    # A run that adds a commit to an older pull request also edits its body, which updates it. So a
    # pull request that was last updated before the request cannot be the run's, nor can those after
    # it.
    since = searched_since(trigger)
    for pull in islice(newest, _MAX_SEARCHED_PULLS):
        if since is not None and pull.updated_at is not None and pull.updated_at < since:
            return None
        if is_by(pull, own_login) and ending_of(pull.body or "", trigger.key):
            return pull
    return None


def pulls_of(repository: Repository, **query: str) -> Listing[GitHubPullRequest]:
    """Return the repository's pull requests. `query` holds parameters of the REST API."""
    return Listing(repository.requester, GitHubPullRequest, f"{repository.url}/pulls", **query)


def open_pull_request_of(repository: Repository, branch: str) -> GitHubPullRequest | None:
    """Return the open pull request from a branch of this repository (not of a fork), or None."""
    owner = repository.full_name.split("/", 1)[0]
    for pull in pulls_of(repository, state="open", head=f"{owner}:{branch}"):
        if pull.head.ref == branch and comes_from(pull, repository):
            return pull
    return None


def comes_from(pull: GitHubPullRequest, repository: Repository) -> bool:
    """Return True if the pull request's branch is in this repository.

    A fork may have a branch of the same name, and so may match the same search.
    """
    source = pull.head.repo
    return source is not None and source.full_name.casefold() == repository.full_name.casefold()


def create_pull_request(
    repository: Repository, *, base: str, head: str, title: str, body: str, draft: bool
) -> GitHubPullRequest:
    """Create a pull request, without draft status if the repository's plan has no drafts."""
    try:
        return repository.create_pull(base, head, title=title, body=body, draft=draft)
    except github.GithubException as error:
        if not (draft and error.status == 422 and "draft" in str(error.data).lower()):
            raise
    return repository.create_pull(base, head, title=title, body=body, draft=False)


def write_once(
    access: GitHubAccess,
    operation: str,
    permission: str,
    find: Callable[[], Resource | None],
    create: Callable[[], Resource],
    *,
    is_new: bool = False,
) -> Resource:
    """Return what `find` finds, or else what `create` creates.

    After a failure that may hide a success (a 5xx status, a lost connection), `find` is called
    again before `create` is, so that nothing is created twice. `is_new` is True if there can't be
    anything to find before the first attempt. `operation` and `permission` are as in
    `GitHubAccess.wrap_errors`.
    """
    is_findable = not is_new

    def attempt() -> Resource:
        nonlocal is_findable
        existing = find() if is_findable else None
        is_findable = True
        return existing if existing is not None else create()

    return access.retry_until_success(operation, permission, attempt)


def describe_pull_request(pull: GitHubPullRequest) -> PullRequest:
    """Convert PyGithub's pull request to Resolver's model."""
    return PullRequest(
        title=pull.title,
        body=pull.body or "",
        number=pull.number,
        url=pull.html_url,
        draft=bool(pull.draft),
        base_commit=pull.base.sha,
    )


def branch_tips(repository: Repository, prefix: str) -> dict[str, str]:
    """Return the branches that start with `prefix`, mapped to the ids of their newest commits.

    The request is made directly because this list is not paginated, and PyGithub would request
    pages.
    """
    path = f"{repository.url}/git/matching-refs/heads/{quote(prefix)}"
    _, refs = repository.requester.requestJsonAndCheck("GET", path)
    return {str(ref["ref"]).removeprefix("refs/heads/"): str(ref["object"]["sha"]) for ref in refs}


def branch_tip(access: GitHubAccess, repository: Repository, branch: str) -> str | None:
    """Return the newest commit of the branch, None if there is none. Raises ForgeError."""
    with access.wrap_errors(f"look at {branch} of {repository.full_name}", "contents: read"):
        return branch_tips(repository, branch).get(branch)


def create_comment_once(
    access: GitHubAccess,
    issue: Issue,
    own_login: str,
    trigger: Trigger,
    text: str,
    operation: str,
) -> None:
    """Create the comment that answers the trigger's request unless there is one.

    `operation` describes the request in errors, as in `GitHubAccess.wrap_errors`.
    """
    marker = answer_marker(trigger.key)

    def find() -> IssueComment | None:
        comments = own_comments(issue, own_login, trigger.at)
        return next(
            (comment for comment in comments if (comment.body or "").startswith(marker)), None
        )

    body = f"{marker}\n\n{text}\n"
    write_once(access, operation, "issues: write", find, lambda: issue.create_comment(body))
