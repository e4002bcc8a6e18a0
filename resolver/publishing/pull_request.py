"""Publishes a change: makes the commit, pushes the branch, opens or updates the pull request."""

import logging
import time
from collections.abc import Iterator

from resolver.config.templates import render
from resolver.errors import ForgeError, PushRefused
from resolver.git.merge import is_ancestor
from resolver.git.push import PREFIX, fetch_tip
from resolver.github.comments.pull_request_text import pull_request_body, pull_request_title
from resolver.github.comments.report import Report
from resolver.github.forge import Forge
from resolver.github.github_forge import ACTIONS_LOGIN
from resolver.models.run import Publication, PullRequest, TriggerKind
from resolver.publishing.branches import (
    advance_branch,
    apply_to_branch,
    change_since,
    create_branch,
)
from resolver.publishing.commit_builder import (
    CommitBuilder,
    PlannedChange,
    PublishRequest,
    PushedChange,
)
from resolver.publishing.push_to_pull_request import BranchUnavailable, publish_to_pull_request
from resolver.publishing.update_branch import publish_merge

logger = logging.getLogger("resolver.publishing")


def report_pending_checks(publication: Publication, forge: Forge) -> tuple[str, ...]:
    """Return a warning if GitHub starts no workflow for the published change.

    GitHub starts none for a push with the token of a job, so that workflows don't trigger
    themselves.

    Source: https://docs.github.com/en/actions/concepts/security/github_token
    """
    if publication.branch and not publication.repeated and forge.whoami() == ACTIONS_LOGIN:
        return (render("run/no_checks.md.j2").strip(),)
    return ()


def publish_verification(publication: Publication, report: Report, forge: Forge) -> None:
    """Create a check run on the published commit.

    Without the permission for it there is none. The pull request shows the same.
    """
    if publication.commit is None or publication.repeated or publication.repository:
        return
    if publication.how in {"patch", "unchanged"} or report.verification is None:
        return
    try:
        forge.publish_check_run(report, publication.commit)
    except ForgeError as error:
        logger.info("%s", error.what)


def describe_unpublished(request: PublishRequest) -> Publication:
    """Return the title and text of a pull request, for a run that publishes nothing."""
    title, body = pull_request_title(request.report), pull_request_body(request.report)
    return Publication(pull_request=PullRequest(title=title, body=body))


def publish(builder: CommitBuilder) -> Iterator[Publication]:
    """Commit, push and open the pull request; yield the publication after each step.

    If a step fails, the caller knows what the steps before it have published. Each step
    recognizes what an earlier attempt of the run has already done.
    """
    started = time.monotonic()
    if builder.workspace.pull is None:
        pushed = _publish_on_earlier_branch(builder) or _publish_new_branch(builder)
    elif builder.workspace.pull.conflicts:
        pushed = publish_merge(builder)
    else:
        pushed = publish_to_pull_request(builder)
    yield from propose(builder, pushed, started)


def propose(
    builder: CommitBuilder, pushed: PushedChange, started: float, *, update_text: bool = True
) -> Iterator[Publication]:
    """Open the pull request of a pushed change, or update the text of the one it was pushed to.

    started: when publishing started, on the monotonic clock in seconds.
    update_text: update the text of the pull request that the change was pushed to.
    """
    publication = pushed.publication
    yield publication
    if publication.how == "unchanged":
        return
    if pushed.proposed_base:
        publication = _open_pull_request(builder, pushed)
        yield publication
    elif update_text and publication.how in {"pushed", "updated"}:
        publication = _update_text(builder, publication)
        yield publication
    if builder.request.log:
        pull = publication.pull_request
        where = (pull.url if pull else "") or publication.branch or ""
        builder.request.log.stage("published", where, time.monotonic() - started)


def _open_pull_request(builder: CommitBuilder, pushed: PushedChange) -> Publication:
    """Open the pull request and return the publication with it."""
    request, publication = builder.request, pushed.publication
    report = request.report_with(publication)
    task = request.task.model_copy(update={"base_branch": pushed.proposed_base})
    with_base = report.model_copy(update={"task": task})
    pull = builder.forge.open_pull_request(with_base, publication.branch or "")
    return publication.model_copy(update={"pull_request": pull})


def _update_text(builder: CommitBuilder, publication: Publication) -> Publication:
    """Update the text of the pull request that the change was pushed to, if Resolver has opened it.

    A failure only adds a notice; the change remains published.
    """
    try:
        pull = builder.forge.update_existing_pull_request(builder.request.report_with(publication))
    except ForgeError as error:
        builder.request.notices.append(f"{error.what}; {error.next_step}")
        return publication
    return publication.model_copy(update={"pull_request": pull}) if pull else publication


def _publish_new_branch(builder: CommitBuilder) -> PushedChange:
    """Publish the change on a new branch."""
    request, base = builder.request, builder.workspace.base
    commit = builder.commit(request.patch.tree, base)
    is_local = request.trigger.kind is TriggerKind.LOCAL
    if request.settings.base_moved != "leave" and not is_local and request.task.follows is None:
        commit = _commit_on_newest_base(builder, base) or commit
    branch, published_commit = create_branch(builder, commit)
    return _with_proposal(builder, Publication(branch=branch, commit=published_commit))


def _with_proposal(builder: CommitBuilder, publication: Publication) -> PushedChange:
    return PushedChange(publication, proposed_base=builder.request.task.base_branch)


def _commit_on_newest_base(builder: CommitBuilder, base: str) -> str | None:
    """Return a commit of the change on top of the newest commit of the base branch.

    Returns None if the base branch has not moved, or the change can't be applied to it or is
    already there. In the latter two cases, a notice says so.
    """
    request = builder.request
    task, patch, credential = request.task, request.patch, request.credential()
    tip = fetch_tip(builder.workspace.git, task.source, task.base_branch, credential)
    if tip is None or tip == base:
        return None
    commit = builder.apply(PlannedChange(base, patch.tree), tip)
    if commit is None or commit == tip:
        notice = render("run/base_moved.md.j2", branch=task.base_branch, base=base)
        request.notices.append(notice.strip())
        return None
    return commit


def _publish_on_earlier_branch(builder: CommitBuilder) -> PushedChange | None:
    """Add a commit to the branch that this run continues, or to the branch that it follows up.

    Returns None if there is no such branch, or it can't be used. In the second case, a notice says
    why: the pull request is merged or closed, the branch is protected, or others have pushed
    commits to it that conflict with the change. Their commits are left alone.
    """
    request, earlier = builder.request, _find_earlier_publication(builder)
    if not earlier.branch or not earlier.commit or not earlier.pull_request:
        return None
    if not earlier.branch.startswith(PREFIX):
        return None  # Resolver writes only branches with the prefix, so it did not create this one
    if builder.forge.open_head(earlier.branch) is None:
        return _publish_follow_up(builder, earlier)
    try:
        return _with_proposal(
            builder, _push_to_branch(builder, earlier, earlier.branch, earlier.commit)
        )
    except BranchUnavailable as unavailable:
        _explain_not_added(request, earlier, unavailable.why)
        return None
    except PushRefused as refused:
        if not refused.branch_only:
            raise
        _explain_not_added(request, earlier, "protected")
        return None


def _push_to_branch(
    builder: CommitBuilder, earlier: Publication, branch: str, published_commit: str
) -> Publication:
    """Apply the change to the branch of the earlier run.

    Raises BranchUnavailable with a reason that the template `run/not_added.md.j2` knows.
    """
    git, source = builder.workspace.git, builder.request.task.source

    def read_tip() -> str:
        tip = fetch_tip(git, source, branch, builder.request.credential())
        if tip is None or not is_ancestor(git, published_commit, tip):
            raise BranchUnavailable("rewritten")
        return tip

    def push(commit: str, tip: str) -> str:
        return advance_branch(builder, commit, branch, source, tip)

    read_tip()  # fetches the published commits into the clone, which `change_since` needs
    change = change_since(builder, earlier)
    applied = apply_to_branch(builder, change, branch, read_tip, push) if change else None
    if applied is None:
        raise BranchUnavailable("moved")
    if applied.status == "unchanged":
        unchanged = {"how": "unchanged", "commit": applied.commit, "comment_url": None}
        return earlier.model_copy(update=unchanged)
    return Publication(branch=branch, commit=applied.commit, how="added")


def _publish_follow_up(builder: CommitBuilder, earlier: Publication) -> PushedChange | None:
    """Publish a follow-up whose pull request is merged or closed, on top of the base branch.

    It contains only what the follow-up has changed. Returns None if all of the work is to be
    published.
    """
    request, task = builder.request, builder.request.task
    if task.follows is None or earlier.commit != task.follows.head:
        _explain_not_added(request, earlier, "closed")
        return None
    credential = request.credential()
    tip = fetch_tip(builder.workspace.git, task.source, task.base_branch, credential)
    commit = builder.replay_since(task.follows.head, tip) if tip else None
    if commit is None:
        _explain_not_added(request, earlier, "closed")
        return None
    if commit == tip:
        return PushedChange(earlier.model_copy(update={"how": "unchanged"}))
    _explain_not_added(request, earlier, "left")
    branch, published_commit = create_branch(builder, commit)
    return _with_proposal(builder, Publication(branch=branch, commit=published_commit))


def _find_earlier_publication(builder: CommitBuilder) -> Publication:
    """Return the publication that the change is added to; an empty one if there is none."""
    continuation, follows = builder.request.continuation, builder.request.task.follows
    if continuation and continuation.publication.pull_request:
        return continuation.publication
    if follows is None:
        return Publication()
    pull = PullRequest(title=follows.title, body="", number=follows.number, url=follows.url)
    tree = builder.workspace.tree(follows.head)
    return Publication(branch=follows.branch, commit=follows.head, tree=tree, pull_request=pull)


def _explain_not_added(request: PublishRequest, earlier: Publication, reason: str) -> None:
    """Add a notice that says why the change was not added to the earlier branch."""
    pull = earlier.pull_request
    notice = render(
        "run/not_added.md.j2",
        why=reason,
        number=pull.number if pull else None,
        branch=earlier.branch,
    )
    request.notices.append(notice.strip())
