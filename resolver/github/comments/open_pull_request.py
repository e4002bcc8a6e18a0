"""Opens Resolver's pull requests, and asks the requester to review them.

Their text and their draft status are set once. Later work is described in a comment. If GitHub
refuses the request for a review, a note says so, and the outcome of the run is the same.
"""

from urllib.parse import quote

import github
from github.PullRequest import PullRequest as GitHubPullRequest
from github.Repository import Repository

from resolver.config.templates import render
from resolver.errors import ForgeError, UsageError
from resolver.github.client.access import GitHubAccess
from resolver.github.client.accounts import is_by
from resolver.github.comments.find_or_create import (
    create_comment_once,
    create_pull_request,
    describe_pull_request,
    open_pull_request_of,
    write_once,
)
from resolver.github.comments.pull_request_text import (
    addition_text,
    pull_request_body,
    pull_request_title,
)
from resolver.github.comments.report import Report
from resolver.github.text.markdown import code_span
from resolver.models.run import Actor, PullRequest


def request_review(
    access: GitHubAccess, pull: GitHubPullRequest, report: Report, own_login: str
) -> tuple[str, ...]:
    """Ask the requester to review the pull request, if it is not a draft, and return notes on a
    refusal. `own_login` is the login that opened the pull request and so cannot review it.

    GitHub itself asks the owners of the changed files (CODEOWNERS). A request that is there already
    is not repeated.
    """
    requester = _requester_login(report.trigger.actor, own_login)
    requested = {reviewer.login.casefold() for reviewer in pull.requested_reviewers}
    if pull.draft or not requester or requester.casefold() in requested:
        return ()
    try:
        with access.wrap_errors("mark the pull request (review)", "pull-requests: write"):
            pull.create_review_request(reviewers=[requester])
    except ForgeError as error:
        note = render("run/not_marked.md.j2", login=code_span(requester), error=error)
        return (" ".join(note.split()),)
    return ()


def _requester_login(actor: Actor, own_login: str) -> str | None:
    """Return the requester's login, None if it is a bot or Resolver's own account."""
    is_known = actor.login and not actor.is_bot and not actor.login.endswith("[bot]")
    return actor.login if is_known and actor.login.casefold() != own_login.casefold() else None


def open_pull_request(
    access: GitHubAccess,
    repository: Repository,
    own_login: str,
    report: Report,
    branch: str,
    is_new: bool,
) -> PullRequest:
    """Return the pull request from `branch`, the open one or a new one.

    Its `notes` say which reviewer GitHub refused. `own_login` is Resolver's login. `is_new` is True
    for a branch that was created just now: then a pull request is looked for only after a failed
    attempt. Raises ForgeError.
    """
    if report.task is None:
        raise UsageError("a pull request needs the task it answers", "read the issue first")
    base = report.task.base_branch
    title, body = pull_request_title(report), pull_request_body(report)
    operation = f"open a pull request from {branch} to {base}"

    def find() -> GitHubPullRequest | None:
        return open_pull_request_of(repository, branch)

    def create() -> GitHubPullRequest:
        try:
            return create_pull_request(
                repository, base=base, head=branch, title=title, body=body, draft=report.draft
            )
        except github.GithubException as error:
            # Another program may open a pull request for each new branch.
            existing = find() if error.status == 422 else None
            if existing is None:
                raise
            return existing

    try:
        pull = write_once(access, operation, "pull-requests: write", find, create, is_new=is_new)
    except ForgeError as error:
        if not error.cause:  # GitHub names something that Resolver does not know
            page = _comparison_page(access, repository, base, branch)
            error.cause, error.next_step = "proposal", f"open it yourself: {page}"
        raise
    if not is_by(pull, own_login):
        with access.wrap_errors(operation, "pull-requests: write"):
            return describe_pull_request(pull)
    notes = (
        _describe_addition(access, repository, pull.number, report, own_login)
        if report.publication.how == "added"
        else request_review(access, pull, report, own_login)
    )
    with access.wrap_errors(operation, "pull-requests: write"):
        return describe_pull_request(pull).model_copy(update={"notes": notes})


def _comparison_page(access: GitHubAccess, repository: Repository, base: str, branch: str) -> str:
    """Return the address of the page on which a person can open the pull request."""
    page = f"{access.server_url.rstrip('/')}/{repository.full_name}/compare"
    return f"{page}/{quote(base)}...{quote(branch)}?expand=1"


def _describe_addition(
    access: GitHubAccess, repository: Repository, number: int, report: Report, own_login: str
) -> tuple[str, ...]:
    """Comment on the pull request what the run has added to it; return a note on a failure.

    The text of the pull request stays as it is: it may contain what people wrote. A request on the
    pull request itself is answered there by the run's final comment.
    """
    trigger = report.trigger
    if trigger.number == number:
        return ()
    try:
        create_comment_once(
            access,
            repository.get_issue(number),
            own_login,
            trigger,
            addition_text(report),
            f"comment on #{number}",
        )
    except ForgeError as error:
        return (f"{error.what}; {error.next_step}",)
    return ()
