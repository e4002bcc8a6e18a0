"""Opens Resolver's pull requests once, requests a review, and keeps their text up to date.

Reviewers, labels and an assignee don't affect the outcome of the run: what GitHub refuses is
reported as a note.
"""

from collections.abc import Callable, Sequence
from functools import partial

import github
from github.PullRequest import PullRequest as GitHubPullRequest
from github.Repository import Repository

from resolver.config.templates import render
from resolver.errors import ForgeError, UsageError
from resolver.github.client.access import GitHubAccess
from resolver.github.client.accounts import is_by
from resolver.github.client.resources import query_graphql
from resolver.github.comments.comment_text import LEVELS
from resolver.github.comments.find_or_create import (
    create_pull_request,
    describe_pull_request,
    open_pull_request_of,
    write_once,
)
from resolver.github.comments.markers import parse_pull_request_marker, run_marker
from resolver.github.comments.pull_request_text import (
    DraftControl,
    add_newest_section,
    drafting_in,
    has_section_of_run,
    is_generated_body,
    is_generated_title,
    latest_changes_text,
    pull_request_body,
    pull_request_title,
    remaining_length,
    run_marker_of,
    with_drafting,
    with_title,
)
from resolver.github.comments.report import Ending, Report
from resolver.github.comments.verification_text import tabulate_verification
from resolver.github.text.markdown import code_span
from resolver.models.run import Actor, PullRequest

MAX_LABELS = 100


def add_pull_request_metadata(
    access: GitHubAccess, pull: GitHubPullRequest, report: Report, own_login: str
) -> tuple[str, ...]:
    """Add labels, assignee and reviewers as the settings say, and return notes on refusals.

    `own_login` is the login that opened the pull request and so cannot review it. What is already
    there is not requested again, and no reviews are requested for a draft.
    """
    notes: list[str] = []
    labels = [label for label in report.preferences.labels if label.strip()][:MAX_LABELS]
    present_labels = {label.name.casefold() for label in pull.labels}
    missing = [label for label in labels if label.casefold() not in present_labels]
    _write_or_note(access, "labels", missing, lambda names: pull.add_to_labels(*names), notes)
    requester = (
        _requester_login(report.trigger.actor, own_login)
        if report.preferences.assign_requester
        else ""
    )
    if requester.casefold() not in {
        "",
        *(assignee.login.casefold() for assignee in pull.assignees),
    }:
        _write_or_note(
            access, "assign", [requester], lambda names: pull.add_to_assignees(*names), notes
        )
    return (*notes, *request_review(access, pull, report, own_login))


def request_review(
    access: GitHubAccess, pull: GitHubPullRequest, report: Report, own_login: str
) -> tuple[str, ...]:
    """Ask the requester to review the pull request, if that is wished and it is not a draft.

    GitHub itself asks the owners of the changed files (CODEOWNERS).
    """
    requester = _requester_login(report.trigger.actor, own_login)
    requested = {reviewer.login.casefold() for reviewer in pull.requested_reviewers}
    if pull.draft or not report.preferences.request_review or requester.casefold() in requested:
        return ()
    notes: list[str] = []
    names = [requester] if requester else []
    _write_or_note(access, "review", names, lambda asked: _send_review_request(pull, asked), notes)
    return tuple(notes)


def _requester_login(actor: Actor, own_login: str) -> str:
    """Return the requester's login, "" if it is a bot or Resolver's own account."""
    is_known = actor.login and not actor.is_bot and not actor.login.endswith("[bot]")
    return actor.login if is_known and actor.login.casefold() != own_login.casefold() else ""


def _send_review_request(pull: GitHubPullRequest, names: Sequence[str]) -> None:
    body = {"reviewers": list(names)}
    pull.requester.requestJsonAndCheck("POST", f"{pull.url}/requested_reviewers", input=body)


def _write_or_note(
    access: GitHubAccess,
    action: str,
    names: Sequence[str],
    write: Callable[[Sequence[str]], object],
    notes: list[str],
) -> None:
    if not names:
        return
    try:
        with access.wrap_errors(f"mark the pull request ({action})", "pull-requests: write"):
            write(names)
    except ForgeError as error:
        quoted_names = ", ".join(code_span(name) for name in names)
        note = render("run/not_marked.md.j2", what=action, names=quoted_names, error=error)
        notes.append(" ".join(note.split()))


_MARK_READY_MUTATION = """
mutation($input: MarkPullRequestReadyForReviewInput!) {
  markPullRequestReadyForReview(input: $input) { pullRequest { isDraft } }
}
"""

_CHANGES_OF_WORKED_ON_PULL = frozenset({"pushed", "updated"})
"""Values of `PublicationMethod` for a change that is in the pull request that was worked on."""

_CONVERT_TO_DRAFT_MUTATION = """
mutation($input: ConvertPullRequestToDraftInput!) {
  convertPullRequestToDraft(input: $input) { pullRequest { isDraft } }
}
"""


def open_pull_request(
    access: GitHubAccess,
    repository: Repository,
    own_login: str,
    report: Report,
    branch: str,
    is_new: bool,
) -> PullRequest:
    """Return the pull request from `branch`, the open one or a new one.

    Its `notes` say which reviewers, labels, assignees or draft status GitHub refused. `own_login`
    is Resolver's login. `is_new` is True for a branch that was created just now: then a pull
    request is looked for only after a failed attempt. Raises ForgeError.
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

    pull = write_once(access, operation, "pull-requests: write", find, create, is_new=is_new)
    if not is_by(pull, own_login):
        with access.wrap_errors(operation, "pull-requests: write"):
            return describe_pull_request(pull)
    notes = _apply_update(access, pull, report, own_login, operation)
    with access.wrap_errors(operation, "pull-requests: write"):
        return describe_pull_request(pull).model_copy(update={"notes": notes})


def update_pull_request(
    access: GitHubAccess, repository: Repository, own_login: str, report: Report, number: int
) -> PullRequest | None:
    """Update the pull request that was worked on with what is new, and return it.

    Returns None, and changes nothing, if it is not Resolver's own or not open. Raises ForgeError.
    """
    if report.publication.how not in _CHANGES_OF_WORKED_ON_PULL:
        raise UsageError(
            f"#{number} does not contain the change, which was {report.publication.how}",
            "update the pull request that contains it",
        )
    operation = f"update the text of #{number}"
    with access.wrap_errors(operation, "pull-requests: write"):
        pull = repository.get_pull(number).complete()
    if not is_by(pull, own_login) or pull.state != "open":
        return None
    notes = _apply_update(access, pull, report, own_login, operation)
    with access.wrap_errors(operation, "pull-requests: write"):
        return describe_pull_request(pull).model_copy(update={"notes": notes})


def _apply_update(
    access: GitHubAccess, pull: GitHubPullRequest, report: Report, own_login: str, operation: str
) -> tuple[str, ...]:
    """Update title, body, draft status and reviewers, and return notes on what GitHub refused."""
    old_body, was_draft = pull.body or "", bool(pull.draft)
    drafting_before = drafting_in(old_body, is_draft=was_draft)
    drafting: DraftControl = (
        drafting_before if drafting_before == "by_people" else "draft" if report.draft else ""
    )
    with access.wrap_errors(operation, "pull-requests: write"):
        title, body = update_title_and_body(pull.title, old_body, report)
        body = with_drafting(body, drafting)
    if (pull.title, old_body) != (title, body):
        edit = partial(pull.edit, title=title, body=body)
        access.retry_until_success(operation, "pull-requests: write", edit)
    notes = _set_draft(access, pull, draft=report.draft) if drafting != drafting_before else ()
    if notes:
        with access.wrap_errors(operation, "pull-requests: write"):
            pull.edit(body=with_drafting(body, drafting_before))
    if not adds_to_existing(report):
        return notes + add_pull_request_metadata(access, pull, report, own_login)
    became_ready = was_draft and not pull.draft
    return notes + (request_review(access, pull, report, own_login) if became_ready else ())


def adds_to_existing(report: Report) -> bool:
    """Return True if the change is an addition to a pull request that existed before."""
    return report.publication.how in _CHANGES_OF_WORKED_ON_PULL | {"added"}


def update_title_and_body(title: str, body: str, report: Report) -> tuple[str, str]:
    """Return the title and body that the pull request should have now.

    A text that a person edited is kept, and what is new is added in a folded section below it. The
    same holds for a separately requested addition, which is not the whole change; then the title
    stays too.
    """
    if report.publication.how in {"unchanged", "patch"}:
        raise UsageError("nothing was added to a pull request", "leave its text as it is")
    is_on_worked_pull = report.publication.how in _CHANGES_OF_WORKED_ON_PULL
    is_follow_up = (
        report.task is not None
        and report.task.follows is not None
        and report.publication.how == "added"
    )
    is_addition = is_on_worked_pull or is_follow_up
    if is_generated_title(title, body) and not is_addition:
        title = pull_request_title(report)
        body = with_title(body, title)
    if not is_addition and is_generated_body(body):
        return title, pull_request_body(report)
    if (parse_pull_request_marker(body) or (0, ""))[1] == report.run or has_section_of_run(
        body, report.run
    ):
        return title, body  # the body already includes this run's text
    trigger = report.trigger
    marker = run_marker(trigger.key, Ending.PULL_REQUEST, trigger.subject, report.run)
    if is_on_worked_pull:
        # On the pull request itself, keep the marker of the issue that it was opened for.
        marker = run_marker_of(body)
    new_text = latest_changes_text(report, remaining_length(body, keep_earlier=is_addition))
    warning = render(
        "comments/_unverified.md.j2",
        unverified=report.unverified,
        verification=tabulate_verification(report, LEVELS[-1].output),
    ).strip()
    new_body = add_newest_section(
        body, marker, new_text, keep_earlier=is_addition, run=report.run, warning=warning
    )
    return title, new_body


def _set_draft(access: GitHubAccess, pull: GitHubPullRequest, *, draft: bool) -> tuple[str, ...]:
    """Convert the pull request to a draft or mark it as ready, and return notes on a failure."""
    operation = (
        "make the pull request a draft" if draft else "mark the pull request as ready for review"
    )
    try:
        with access.wrap_errors(operation, "pull-requests: write"):
            query_graphql(
                access,
                _CONVERT_TO_DRAFT_MUTATION if draft else _MARK_READY_MUTATION,
                {"input": {"pullRequestId": pull.node_id}},
            )
            pull.update()
    except ForgeError as error:
        return (f"{error.what}. {error.next_step[:1].upper()}{error.next_step[1:]}.",)
    return ()
