"""Publishes a change: makes the commit, pushes the branch, opens or updates the pull request."""

import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from resolver.config.templates import render
from resolver.errors import WorkspaceError
from resolver.git.merge import is_ancestor, merge
from resolver.git.push import PREFIX, fetch_tip
from resolver.git.tree import quote
from resolver.github.client.accounts import ACTIONS_LOGIN
from resolver.github.comments.pull_request_text import pull_request_body, pull_request_title
from resolver.github.comments.report import Report
from resolver.github.github_forge import GitHubForge
from resolver.models.run import Publication, PullRequest
from resolver.publishing.branches import (
    BranchUnavailable,
    advance_branch,
    create_branch,
    fetch_branch,
    require_own_tree,
)
from resolver.publishing.commit_builder import (
    CommitBuilder,
    PushedChange,
)
from resolver.publishing.push_to_pull_request import publish_to_pull_request
from resolver.publishing.update_branch import publish_merge
from resolver.security.invisible_text import with_invisible_shown

logger = logging.getLogger("resolver.publishing")


def report_pending_checks(publication: Publication, forge: GitHubForge) -> tuple[str, ...]:
    """Return a warning if GitHub starts no workflow for the published change.

    GitHub starts none for a push with the token of a job, so that workflows don't trigger
    themselves.

    Source: https://docs.github.com/en/actions/concepts/security/github_token
    """
    if publication.branch and not publication.repeated and forge.whoami() == ACTIONS_LOGIN:
        return (render("run/no_checks.md.j2").strip(),)
    return ()


def render_pull_request(report: Report) -> PullRequest:
    """Return the pull request that would be opened, for a run that opens none."""
    title, body = pull_request_title(report), pull_request_body(report)
    return PullRequest(title=title, body=body, draft=report.draft)


def publish(builder: CommitBuilder) -> Iterator[PushedChange]:
    """Commit, push and open the pull request; yield what is public after each step.

    If a step fails, the caller knows what the steps before it have published. Each step
    recognizes what an earlier attempt of the run has already done.
    """
    started = time.monotonic()
    if builder.workspace.pull is None:
        added, notices = _publish_on_earlier_branch(builder)
        pushed = added or _publish_new_branch(builder)
        pushed = replace(pushed, notices=(*notices, *pushed.notices))
    elif builder.workspace.pull.conflicts:
        pushed = publish_merge(builder)
    else:
        pushed = publish_to_pull_request(builder)
    yield from propose(builder, pushed, started)


def propose(builder: CommitBuilder, pushed: PushedChange, started: float) -> Iterator[PushedChange]:
    """Open the pull request of a change that was pushed to a branch without one.

    started: when publishing started, on the monotonic clock in seconds.
    """
    yield pushed
    if pushed.publication.how == "unchanged":
        return
    if pushed.proposed_base is not None:
        pushed = _open_pull_request(builder, pushed, pushed.proposed_base)
        yield pushed
    if builder.request.log:
        pull = pushed.publication.pull_request
        where = (pull.url if pull else "") or pushed.publication.branch or ""
        builder.request.log.stage("published", where, time.monotonic() - started)


def _open_pull_request(builder: CommitBuilder, pushed: PushedChange, base: str) -> PushedChange:
    """Open the pull request against the branch `base` and return the change with it."""
    request, publication = builder.request, pushed.publication
    report = request.report_with(pushed)
    task = request.task.model_copy(update={"base_branch": base})
    with_base = report.model_copy(update={"task": task})
    forge = builder.optional_forge
    pull = (
        forge.open_pull_request(with_base, publication.branch or "", is_new=pushed.is_new_branch)
        if forge
        else render_pull_request(with_base)
    )
    notices = (*pushed.notices, *_describe_conflicts(builder, pushed, pull, base))
    publication = publication.model_copy(update={"pull_request": pull})
    return replace(pushed, publication=publication, notices=notices)


def _describe_conflicts(
    builder: CommitBuilder, pushed: PushedChange, pull: PullRequest, base: str
) -> tuple[str, ...]:
    """Return a notice if the base branch got commits during the run that conflict with the change.

    GitHub names the base branch's commit when the pull request is opened, so nothing is fetched if
    it is the commit that the work started from.
    """
    git, commit = builder.workspace.git, pushed.publication.commit
    if not pull.base_commit or commit is None or is_ancestor(git, pull.base_commit, commit):
        return ()
    try:
        tip = fetch_tip(git, builder.request.task.source, base, builder.request.credential())
        conflicts = merge(git, commit, tip).conflicts if tip else ()
    except WorkspaceError as error:
        logger.info("it is not known if the change can be merged: %s", error.what)
        return ()
    if not conflicts:
        return ()
    paths = [with_invisible_shown(quote(path)) for path in conflicts]
    mention = builder.request.settings.mention
    return (render("run/base_moved.md.j2", base=base, paths=paths, mention=mention).strip(),)


def _publish_new_branch(builder: CommitBuilder) -> PushedChange:
    """Publish the change on a new branch."""
    request, base = builder.request, builder.workspace.base
    branch, pushed = create_branch(builder, builder.commit(request.patch.tree, base))
    return PushedChange(
        Publication(branch=branch, commit=pushed.id),
        request.task.base_branch,
        pushed.notices,
        pushed.is_new_branch,
    )


def _publish_on_earlier_branch(
    builder: CommitBuilder,
) -> tuple[PushedChange | None, tuple[str, ...]]:
    """Add a commit to the branch that this run continues, or to the branch that it follows up.

    Returns the pushed change and notices. The change is None if there is no such branch, or it
    can't be used. In the second case, a notice says why: the pull request is merged or closed, the
    branch is protected, or others have pushed commits to it that conflict with the change. Their
    commits are left alone.
    """
    earlier = _find_earlier_publication(builder)
    branch, commit, pull = earlier.branch, earlier.commit, earlier.pull_request
    # Resolver writes only branches with the prefix, so it did not create any other one.
    if not (branch and commit and pull and branch.startswith(PREFIX)):
        return None, ()
    try:
        if builder.forge.heads().open_from(branch) is None:
            raise BranchUnavailable("closed", branch)
        return _push_to_branch(builder, earlier, branch, commit), ()
    except BranchUnavailable as unavailable:
        values = {"why": unavailable.reason, "number": pull.number, "branch": branch}
        return None, (render("run/not_added.md.j2", **values).strip(),)


def _push_to_branch(
    builder: CommitBuilder, earlier: Publication, branch: str, published_commit: str
) -> PushedChange:
    """Apply the change to the branch of the earlier run. Raises BranchUnavailable."""
    source = builder.request.task.source
    # The published commits have to be in the clone before `require_own_tree` compares with them.
    tip = fetch_branch(builder, branch, source)
    if not is_ancestor(builder.workspace.git, published_commit, tip):
        raise BranchUnavailable("rewritten", branch)
    require_own_tree(builder, earlier, branch)
    build = partial(builder.apply, published_commit)
    applied = advance_branch(builder, published_commit, branch, source, build)
    if applied.is_unchanged:
        unchanged = {"how": "unchanged", "commit": applied.id, "comment_url": None}
        publication = earlier.model_copy(update=unchanged)
    else:
        publication = Publication(branch=branch, commit=applied.id, how="added")
    return PushedChange(publication, builder.request.task.base_branch, applied.notices)


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
