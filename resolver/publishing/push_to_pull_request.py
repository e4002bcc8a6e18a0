"""Publishes a change to a pull request as a commit on its branch.

If that is impossible, it opens a separate pull request or returns the change as a patch.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from resolver.config.templates import render
from resolver.errors import ForgeError, LogError
from resolver.git.merge import format_patch, is_ancestor
from resolver.github.client.accounts import ACTIONS_LOGIN
from resolver.github.github_forge import GitHubForge
from resolver.models.pull_request import PullRequestContext, PullRequestSource
from resolver.models.run import Publication, PublicationMethod, PullRequest
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
from resolver.security.invisible_text import with_invisible_shown

MAX_PATCH_BYTES = 30_000
"""Maximum size in bytes of a patch that a comment shows. Longer ones are only kept with the run."""


def refresh_pull_request(builder: CommitBuilder) -> CommitBuilder:
    """Return the builder with the current branch of the pull request.

    Raises BranchUnavailable if nothing can be pushed to it, and LogError if the pull request is not
    the one that the request is about.
    """
    pull = get_pull_request(builder)
    if pull.number != builder.request.trigger.subject:
        raise LogError(
            f"the log is about #{pull.number}, not about the conversation that asked to continue "
            "it",
            "make a new request",
        )
    source = builder.forge.heads().source(pull.number)
    current = pull.model_copy(
        update={
            "head_repository": source.repository,
            "head_branch": source.branch,
            "is_fork": source.is_fork,
        }
    )
    if not source.is_open:
        raise BranchUnavailable("closed", source.branch)
    work_branches = {builder.request.settings.base_branch, pull.default_branch}
    if not source.is_fork and source.branch in work_branches:
        # Changes to these branches go through a review first.
        raise BranchUnavailable("base", source.branch)
    if source.is_protected:
        raise BranchUnavailable("protected", source.branch)
    if source.is_fork:
        _require_fork(source, builder.forge)
    return replace(builder, workspace=replace(builder.workspace, pull=current))


def _require_fork(source: PullRequestSource, forge: GitHubForge) -> None:
    """Raise BranchUnavailable if nothing can be pushed to the fork."""
    if not source.repository:
        raise BranchUnavailable("fork_gone", source.branch)
    if not source.can_modify:
        next_step = 'ask its author to tick "Allow edits by maintainers" on the pull request'
        raise BranchUnavailable("fork_locked", source.branch, next_step=next_step)
    if forge.whoami() == ACTIONS_LOGIN:
        # https://docs.github.com/en/actions/concepts/security/github_token
        raise BranchUnavailable("job_token", source.branch)


def push_url(builder: CommitBuilder) -> str:
    """Return the URL that the branch of the pull request is fetched from and pushed to."""
    pull = get_pull_request(builder)
    if not pull.is_fork:
        return builder.request.task.source
    return builder.request.settings.clone_url(pull.head_repository)


def publish_to_pull_request(builder: CommitBuilder) -> PushedChange:
    """Publish the change as one commit on top of the current tip of the pull request's branch."""
    parent = get_pull_request(builder).head
    try:
        builder = refresh_pull_request(builder)
        parent = find_parent(builder)
        return advance_pull_request(builder, parent, partial(builder.apply, parent), "pushed")
    except BranchUnavailable as unavailable:
        commit = builder.commit(builder.request.patch.tree, parent)
        return separate_branch(builder, commit, unavailable)


def advance_pull_request(
    builder: CommitBuilder,
    start: str,
    build: Callable[[str], str | None],
    method: PublicationMethod,
) -> PushedChange:
    """Build a commit on the tip of the pull request's branch and push it.

    start, build: see `advance_branch`. method: how it is published if there is something to push.
    Raises BranchUnavailable if nothing can be built or pushed.
    """
    branch = get_pull_request(builder).head_branch
    applied = advance_branch(builder, start, branch, push_url(builder), build)
    how = "unchanged" if applied.is_unchanged else method
    return PushedChange(published_change(builder, applied.id, how), notices=applied.notices)


def get_pull_request(builder: CommitBuilder) -> PullRequestContext:
    """Return the pull request that the run works on."""
    pull = builder.workspace.pull
    assert pull is not None
    return pull


def find_parent(builder: CommitBuilder) -> str:
    """Return the commit since which the run's tree is the change to add to the branch.

    It is the commit of an earlier run of the same work if the branch contains that, else the head
    that was checked out. Raises BranchUnavailable if the earlier run's part can't be separated.
    """
    request, pull = builder.request, get_pull_request(builder)
    git, branch = builder.workspace.git, pull.head_branch
    earlier = request.continuation.publication if request.continuation else Publication()
    is_on_branch = (
        earlier.commit not in (None, pull.head)
        and is_ancestor(git, earlier.commit, fetch_branch(builder, branch, push_url(builder)))
        and is_ancestor(git, pull.head, earlier.commit)
    )
    return require_own_tree(builder, earlier, branch) if is_on_branch else pull.head


def separate_branch(
    builder: CommitBuilder, commit: str, unavailable: BranchUnavailable, *, is_merge: bool = False
) -> PushedChange:
    """Publish the commit on a new branch; return a patch of a change to a fork's pull request.

    A fork's commits never get onto a branch of this repository, where workflows run with its
    rights: https://docs.github.com/en/actions/reference/security/secure-use

    unavailable: why it can't be pushed to the pull request's branch.
    is_merge: True for a merge. ForgeError is raised instead of returning a patch, which can't
        represent a merge.
    """
    pull = get_pull_request(builder)
    if pull.is_fork:
        if is_merge:
            raise ForgeError(*explain_not_updatable(pull, unavailable))
        patch = format_patch(builder.workspace.git, commit, MAX_PATCH_BYTES)
        return PushedChange(
            Publication(
                pull_request=describe_published_change(builder),
                how="patch",
                patch=_decode_unaltered(patch),
                why=unavailable.why,
                next_step=unavailable.next_step,
            )
        )
    targets_head = unavailable.branch_exists
    base = pull.head_branch if targets_head else pull.base_branch
    notice = render(
        "run/separate_pull_request.md.j2",
        pull=pull,
        why=unavailable.why,
        base=base,
        targets_head=targets_head,
    )
    branch, pushed = create_branch(builder, commit)
    publication = Publication(branch=branch, commit=pushed.id, how="separate", why=unavailable.why)
    notices = (notice.strip(), *pushed.notices)
    return PushedChange(publication, proposed_base=base, notices=notices)


def explain_not_updatable(
    pull: PullRequestContext, unavailable: BranchUnavailable
) -> tuple[str, str]:
    """Return why a fork's pull request can't be brought up to date, and what to do."""
    return (
        f"#{pull.number} can't be updated from here, because {unavailable.why}",
        f"let its author merge {pull.base_branch} into it, or let maintainers edit it",
    )


def _decode_unaltered(patch: bytes | None) -> str:
    """Return the patch as text, "" if a comment can't show it unaltered."""
    try:
        text = (patch or b"").decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return "" if with_invisible_shown(text) != text or "\r" in text else text


def published_change(builder: CommitBuilder, commit: str, method: PublicationMethod) -> Publication:
    """Return the publication of a commit on the pull request's branch."""
    request, pull = builder.request, get_pull_request(builder)
    repository = pull.head_repository or request.task.trigger.repository
    server = request.settings.github_server_url.rstrip("/")
    return Publication(
        branch=pull.head_branch,
        commit=commit,
        pull_request=describe_published_change(builder),
        how=method,
        repository=repository if pull.is_fork else "",
        commit_url=f"{server}/{repository}/commit/{commit}",
    )


def describe_published_change(builder: CommitBuilder) -> PullRequest:
    """Return the pull request that the run works on, without its text, which its author owns."""
    task, pull = builder.request.task, get_pull_request(builder)
    return PullRequest(
        title=task.title, body="", number=pull.number, url=task.url or None, draft=pull.is_draft
    )
