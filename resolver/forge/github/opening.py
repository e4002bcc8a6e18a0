"""A pull request of ours: opened once, marked as its repository wishes, and brought up to date in
what nobody else has edited.
"""

from github.PullRequest import PullRequest as GitHubPullRequest
from github.Repository import Repository

from resolver.errors import ForgeError, UsageError
from resolver.forge.edited import body_is_ours, is_our_draft, room_below, title_is_ours, with_newest
from resolver.forge.github.access import GitHubAccess
from resolver.forge.github.graphql import ask
from resolver.forge.github.publishing import (
    create_pull_request,
    described,
    is_ours,
    once,
    open_pull_request_of,
)
from resolver.forge.github.requests import mark
from resolver.forge.markers import run_marker, work_of
from resolver.forge.pull_words import newest_words, pull_request_body, pull_request_title
from resolver.forge.report import Ending, Report
from resolver.model import PullRequest

_READY = """
mutation($input: MarkPullRequestReadyForReviewInput!) {
  markPullRequestReadyForReview(input: $input) { pullRequest { isDraft } }
}
"""


def open_pull_request(
    access: GitHubAccess, repository: Repository, own: str, report: Report, branch: str
) -> PullRequest:
    """The pull request of `branch`, found or new; its notes say what of the wishes was refused.

    own: our login. Raises ForgeError.
    """
    if report.task is None:
        raise UsageError("a pull request needs the task it answers", "read the issue first")
    base = report.task.base_branch
    title, body = pull_request_title(report), pull_request_body(report)
    what = f"open a pull request from {branch} to {base}"
    pull = once(
        access,
        what,
        "pull-requests: write",
        lambda: open_pull_request_of(repository, branch),
        lambda: create_pull_request(
            repository, base=base, head=branch, title=title, body=body, draft=report.draft
        ),
    )
    if not is_ours(pull, own):
        with access.asking(what, "pull-requests: write"):
            return described(pull)
    was_our_draft = is_our_draft(pull.body or "")
    with access.asking(what, "pull-requests: write"):
        title, body = brought_up(pull.title, pull.body or "", report)
        if (pull.title, pull.body or "") != (title, body):
            pull.edit(title=title, body=body)
    notes = _made_ready(access, pull, report) if was_our_draft else ()
    if report.how != "added":
        notes += mark(access, pull, report, own)
    with access.asking(what, "pull-requests: write"):
        return described(pull).model_copy(update={"notes": notes})


def brought_up(title: str, body: str, report: Report) -> tuple[str, str]:
    """Title and body as they are to be now: what people have edited stays, and what is new then
    stands folded below it."""
    ours = pull_request_body(report)
    if title_is_ours(title, body):
        title = pull_request_title(report)
    if body_is_ours(body):
        return title, ours
    if (work_of(body) or (0, ""))[1] == report.run:
        return title, body  # there is nothing newer than what they have edited
    trigger = report.trigger
    marker = run_marker(trigger.key, Ending.PULL_REQUEST, trigger.subject, report.run)
    return title, with_newest(body, marker, newest_words(report, room_below(body)))


def _made_ready(access: GitHubAccess, pull: GitHubPullRequest, report: Report) -> tuple[str, ...]:
    """A draft of ours that is none any more is shown as ready."""
    if report.draft or not pull.draft:
        return ()
    try:
        with access.asking("mark the pull request as ready for review", "pull-requests: write"):
            ask(access, _READY, {"input": {"pullRequestId": pull.node_id}})
            pull.update()
    except ForgeError as error:
        return (f"{error.what}. {error.next_step[:1].upper()}{error.next_step[1:]}.",)
    return ()
