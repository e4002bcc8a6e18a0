"""Opens Resolver's pull requests once, requests reviews, and keeps their text up to date.

What other people have edited in a pull request is never overwritten.
"""

from functools import partial

from github.PullRequest import PullRequest as GitHubPullRequest
from github.Repository import Repository

from resolver.config.templates import render
from resolver.errors import ForgeError, UsageError
from resolver.github.client.access import GitHubAccess
from resolver.github.client.graphql import query_graphql
from resolver.github.comments.check_history import check_result_text
from resolver.github.comments.edited import (
    Drafting,
    body_is_ours,
    drafting_in,
    room_below,
    run_marker_of,
    tells_of,
    title_is_ours,
    with_drafting,
    with_newest,
    with_title,
)
from resolver.github.comments.find_or_create import (
    create_pull_request,
    describe_pull_request,
    is_own_account,
    open_pull_request_of,
    write_once,
)
from resolver.github.comments.markers import run_marker, run_of_marker
from resolver.github.comments.pull_request_text import (
    latest_changes_text,
    new_title,
    pull_request_body,
    pull_request_title,
)
from resolver.github.comments.report import Ending, Report
from resolver.github.comments.reviewers import ask_for_reviews, mark
from resolver.github.context.default_template import with_default_template
from resolver.models.run import PullRequest

_READY = """
mutation($input: MarkPullRequestReadyForReviewInput!) {
  markPullRequestReadyForReview(input: $input) { pullRequest { isDraft } }
}
"""

_ON_PULL = frozenset({"pushed", "updated"})
"""Values of `How` for a change that is in the pull request that was worked on."""

_DRAFT = """
mutation($input: ConvertPullRequestToDraftInput!) {
  convertPullRequestToDraft(input: $input) { pullRequest { isDraft } }
}
"""


def open_pull_request(
    access: GitHubAccess, repository: Repository, own: str, report: Report, branch: str
) -> PullRequest:
    """Return the pull request from `branch`, the open one or a new one.

    Its `notes` say which reviewers, labels, assignees or draft status GitHub refused. `own` is
    Resolver's login. Raises ForgeError.
    """
    if report.task is None:
        raise UsageError("a pull request needs the task it answers", "read the issue first")
    base = report.task.base_branch
    report = with_default_template(access, report)
    title, body = pull_request_title(report), pull_request_body(report)
    what = f"open a pull request from {branch} to {base}"
    pull = write_once(
        access,
        what,
        "pull-requests: write",
        lambda: open_pull_request_of(repository, branch),
        lambda: create_pull_request(
            repository, base=base, head=branch, title=title, body=body, draft=report.draft
        ),
    )
    if not is_own_account(pull, own):
        with access.asking(what, "pull-requests: write"):
            return describe_pull_request(pull)
    notes = _brought_up(access, pull, report, own, what)
    with access.asking(what, "pull-requests: write"):
        return describe_pull_request(pull).model_copy(update={"notes": notes})


def update_pull_request(
    access: GitHubAccess, repository: Repository, own: str, report: Report, number: int
) -> PullRequest | None:
    """Update the pull request that was worked on with what is new, and return it.

    Returns None, and changes nothing, if it is not Resolver's own or not open. Raises ForgeError.
    """
    if report.how not in _ON_PULL:
        raise UsageError(
            f"#{number} does not hold what was {report.how}", "bring up the one that it is in"
        )
    what = f"bring the text of #{number} up to date"
    with access.asking(what, "pull-requests: write"):
        pull = repository.get_pull(number).complete()
    if not is_own_account(pull, own) or pull.state != "open":
        return None
    notes = _brought_up(access, pull, report, own, what)
    with access.asking(what, "pull-requests: write"):
        return describe_pull_request(pull).model_copy(update={"notes": notes})


def _brought_up(
    access: GitHubAccess, pull: GitHubPullRequest, report: Report, own: str, what: str
) -> tuple[str, ...]:
    """Update title, body, draft status and reviewers, and return notes on what GitHub refused."""
    old, was_draft = pull.body or "", bool(pull.draft)
    before = drafting_in(old, is_draft=was_draft)
    now: Drafting = before if before == "theirs" else "draft" if report.draft else ""
    with access.asking(what, "pull-requests: write"):
        title, body = brought_up(pull.title, old, report)
        body = with_drafting(body, now)
    if (pull.title, old) != (title, body):
        edit = partial(pull.edit, title=title, body=body)
        access.persistently(what, "pull-requests: write", edit)
    notes = _drafted(access, pull, draft=report.draft) if now != before else ()
    if notes:
        with access.asking(what, "pull-requests: write"):
            pull.edit(body=with_drafting(body, before))
    if not adds_to(report):
        return notes + mark(access, pull, report, own)
    became_ready = was_draft and not pull.draft
    return notes + (ask_for_reviews(access, pull, report, own) if became_ready else ())


def adds_to(report: Report) -> bool:
    """Return True if the change is an addition to a pull request that existed before."""
    return report.how in _ON_PULL | {"added"}


def brought_up(title: str, body: str, report: Report) -> tuple[str, str]:
    """Return the title and body that the pull request should have now.

    A text that a person edited is kept, and what is new is added in a folded section below it. The
    same holds for a separately requested addition, which is not the whole change; then the title
    changes only if the agent says that it covers too little.
    """
    if report.how in {"unchanged", "patch"}:
        raise UsageError("nothing was added to a pull request", "leave its text as it is")
    on_pull = report.how in _ON_PULL
    follows = report.task is not None and report.task.follows is not None and report.how == "added"
    adds = on_pull or follows
    if title_is_ours(title, body):
        title = new_title(report) or title if adds else pull_request_title(report)
        body = with_title(body, title)
    if not adds and body_is_ours(body):
        return title, pull_request_body(report)
    if (run_of_marker(body) or (0, ""))[1] == report.run or tells_of(body, report.run):
        return title, body  # the body already includes this run's text
    trigger = report.trigger
    marker = run_marker(trigger.key, Ending.PULL_REQUEST, trigger.subject, report.run)
    if on_pull:
        # On the pull request itself, keep the marker of the issue that it was opened for.
        marker = run_marker_of(body)
    new = latest_changes_text(report, room_below(body, beside=adds))
    deciding = check_result_text(report.course.newest)
    standing = render(
        "comments/_unverified.md.j2", unverified=report.unverified, deciding=deciding
    ).strip()
    changed = with_newest(body, marker, new, beside=adds, run=report.run, standing=standing)
    return title, changed


def _drafted(access: GitHubAccess, pull: GitHubPullRequest, *, draft: bool) -> tuple[str, ...]:
    """Convert the pull request to a draft or mark it as ready, and return notes on a failure."""
    what = "make the pull request a draft" if draft else "mark the pull request as ready for review"
    try:
        with access.asking(what, "pull-requests: write"):
            query_graphql(
                access, _DRAFT if draft else _READY, {"input": {"pullRequestId": pull.node_id}}
            )
            pull.update()
    except ForgeError as error:
        return (f"{error.what}. {error.next_step[:1].upper()}{error.next_step[1:]}.",)
    return ()
