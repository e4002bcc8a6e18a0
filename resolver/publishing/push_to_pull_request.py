"""Publishes a change to a pull request as a commit on its branch.

If that is impossible, it opens a separate pull request or returns the change as a patch.
"""

from dataclasses import replace

from resolver.config.settings import Settings
from resolver.config.templates import render
from resolver.errors import ForgeError, LogError, PushRefused, WorkspaceError
from resolver.git.merge import format_patch, is_ancestor, merge_base
from resolver.git.policy import describe_protected_changes
from resolver.git.push import fetch_tip, require_push_access
from resolver.github.text.markdown import with_invisible_shown
from resolver.models.pull_request import PullRequestContext, PullRequestSource
from resolver.models.run import Publication, PublicationMethod, PullRequest
from resolver.publishing.branches import (
    advance_branch,
    apply_to_branch,
    change_since,
    create_branch,
)
from resolver.publishing.commit_builder import CommitBuilder, PlannedChange, PushedChange

_APART = "that can't be combined with the change automatically"

MOST_PATCH = 30_000
"""Maximum size in bytes of a patch that a comment shows. Longer ones are only kept with the run."""


class BranchUnavailable(Exception):
    """Raised if the change can't be pushed to the pull request's branch.

    why: the reason, as the end of a sentence that starts with "because".
    is_there: True if the branch still exists, so that a pull request can be opened against it.
    """

    def __init__(self, why: str, *, is_there: bool = True) -> None:
        super().__init__(why)
        self.why = why
        self.is_there = is_there


def _require_branch(settings: Settings, pull: PullRequestContext) -> None:
    """Raise BranchUnavailable for the default branch, and for the one of the setting `base_branch`.

    Changes to these branches go through a review first. Branches of forks are not concerned.
    """
    if pull.is_fork:
        return
    kept = {
        settings.base_branch: "the branch that base_branch names",
        pull.default_branch: "the default branch",
    }
    if pull.head_branch and pull.head_branch in kept:
        raise BranchUnavailable(
            f"{pull.head_branch} is {kept[pull.head_branch]}, and Resolver never pushes there"
        )


def refresh_pull_request(making: CommitBuilder) -> CommitBuilder:
    """Return the builder with the current branch of the pull request.

    Raises BranchUnavailable if nothing can be pushed to it, and LogError if the pull request is not
    the one that the request is about.
    """
    pull = pull_of(making)
    if pull.number != making.request.trigger.subject:
        raise LogError(
            f"the log is about #{pull.number}, not about the conversation that asked to continue "
            "it",
            "make a new request",
        )
    source = making.forge.heads().source(pull.number)
    now = pull.model_copy(
        update={
            "head_repository": source.repository,
            "head_branch": source.branch,
            "is_fork": source.is_fork,
        }
    )
    if not source.is_open:
        raise BranchUnavailable("it has been merged or closed", is_there=False)
    _require_branch(making.request.settings, now)
    if source.is_protected:
        raise BranchUnavailable(f"its branch {source.branch} is protected")
    if source.is_fork:
        _require_fork(making.request.settings, source)
    return replace(making, workspace=replace(making.workspace, pull=now))


def require_way(making: CommitBuilder) -> None:
    """Raise BranchUnavailable if it is known before trying that the branch can't be pushed to."""
    making = refresh_pull_request(making)
    pull = pull_of(making)
    if not pull.is_fork:
        return
    git, credential = making.workspace.git, making.request.credential()
    try:
        require_push_access(git, pull.head, pull.head_branch, url_of(making), credential)
    except PushRefused as refused:
        raise _not_taken(pull, refused) from refused


def _not_taken(pull: PullRequestContext, refused: PushRefused) -> BranchUnavailable:
    where = f"{pull.head_branch} of {pull.head_repository}"
    return BranchUnavailable(f"GitHub rejected the push to {where}: {refused.why}")


def _require_fork(settings: Settings, source: PullRequestSource) -> None:
    """Raise BranchUnavailable if nothing can be pushed to the fork."""
    if not source.repository:
        raise BranchUnavailable("its repository no longer exists", is_there=False)
    if settings.fork_changes != "push":
        raise BranchUnavailable("pushing to forks is disabled here")
    if not source.can_modify:
        raise BranchUnavailable("its author does not let maintainers edit the fork's branch")


def url_of(making: CommitBuilder) -> str:
    """Return the URL that the branch of the pull request is fetched from and pushed to."""
    pull = pull_of(making)
    server = making.request.settings.github_server_url.rstrip("/")
    return f"{server}/{pull.head_repository}.git" if pull.is_fork else making.request.task.source


def publish_on_pull(making: CommitBuilder) -> PushedChange:
    """Publish the change as one commit on top of the current tip of the pull request's branch."""
    change = PlannedChange(pull_of(making).head, making.request.patch.tree)
    try:
        making = refresh_pull_request(making)
        change = change_of(making)
        return PushedChange(_land(making, change))
    except BranchUnavailable as missed:
        return separate_branch(making, making.commit(change.tree, change.parent), missed)


def _land(making: CommitBuilder, change: PlannedChange) -> Publication:
    branch = pull_of(making).head_branch
    landed = apply_to_branch(
        making,
        change,
        branch,
        lambda: tip_of(making),
        lambda commit, tip: push_change(making, commit, tip),
    )
    if landed is None:
        raise BranchUnavailable(f"somebody pushed to {branch} during the run, and {_APART}")
    return published_change(making, landed.commit, landed.how)


def pull_of(making: CommitBuilder) -> PullRequestContext:
    """Return the pull request that the work is on."""
    pull = making.workspace.pull
    assert pull is not None
    return pull


def change_of(making: CommitBuilder) -> PlannedChange:
    """Return the change to add to the branch.

    If the branch contains the commit of an earlier run of the same work, it is what has changed
    since that commit, else what has changed since the head that was checked out. Raises
    BranchUnavailable if the earlier run's part can't be separated.
    """
    request, pull = making.request, pull_of(making)
    continuation, patch = request.continuation, request.patch
    git, whole = making.workspace.git, PlannedChange(pull.head, patch.tree)
    public = continuation.publication if continuation else Publication()
    if not public.commit or not is_ancestor(git, public.commit, tip_of(making)):
        return whole
    if not is_ancestor(git, pull.head, public.commit) or public.commit == pull.head:
        return whole
    change = change_since(making, public)
    if change is None:
        raise BranchUnavailable(
            f"others pushed to {pull.head_branch} in the meantime, and {_APART}"
        )
    return change


def tip_of(making: CommitBuilder) -> str:
    """Return the commit that the branch holds now.

    Raises BranchUnavailable if the branch is gone, or a fork can't be read.
    """
    pull = pull_of(making)
    try:
        credential = making.request.credential()
        tip = fetch_tip(making.workspace.git, url_of(making), pull.head_branch, credential)
    except WorkspaceError as error:
        if not pull.is_fork:
            raise
        raise BranchUnavailable(f"the fork can't be read ({error.what})") from error
    if tip is None:
        raise BranchUnavailable(f"its branch {pull.head_branch} no longer exists", is_there=False)
    return tip


def push_change(making: CommitBuilder, commit: str, tip: str) -> str:
    """Move the pull request's branch from `tip` to the commit.

    Returns the commit that the branch then holds, "" if it was moved in between. Raises
    BranchUnavailable if the server rejects the push for a reason that doesn't apply to other
    branches, else PushRefused.
    """
    pull = pull_of(making)
    try:
        return advance_branch(making, commit, pull.head_branch, url_of(making), tip)
    except PushRefused as refused:
        if not (pull.is_fork or refused.of_branch):
            raise
        raise _not_taken(pull, refused) from refused


def separate_branch(
    making: CommitBuilder, commit: str, missed: BranchUnavailable, *, merges: bool = False
) -> PushedChange:
    """Publish the commit on a branch of its own; return a patch if a fork's change can't be one.

    missed: why it can't be pushed to the pull request's branch.
    merges: True for a merge. ForgeError is raised instead of returning a patch, which can't
        represent a merge.
    """
    request, pull = making.request, pull_of(making)
    if pull.is_fork and (why := why_no_branch(making, commit, missed)):
        if merges:
            raise ForgeError(
                f"#{pull.number} can't be updated from here, because {why}",
                f"let its author merge {pull.base_branch} into it, or let maintainers edit it",
            )
        patch = format_patch(making.workspace.git, commit, MOST_PATCH)
        return PushedChange(
            Publication(
                pull_request=describe_published_change(making),
                how="patch",
                patch=_shown(patch),
                why=why,
            )
        )
    onto = not pull.is_fork and missed.is_there
    base = pull.head_branch if onto else pull.base_branch
    told = render("run/beside.md.j2", pull=pull, why=missed.why, base=base, onto=onto)
    request.notices.append(told.strip())
    branch, placed = create_branch(making, commit)
    publication = Publication(branch=branch, commit=placed, how="beside", why=missed.why)
    return PushedChange(publication, propose_onto=base)


def why_no_branch(making: CommitBuilder, commit: str, missed: BranchUnavailable) -> str:
    """Return why work on a fork's pull request can't be a branch of this repository, "" if it can.

    On such a branch, workflows run with the rights of this repository. So everything that the
    branch adds to its base is checked for protected files, including the fork's own commits:
    https://docs.github.com/en/actions/reference/security/secure-use
    """
    pull, settings, workspace = pull_of(making), making.request.settings, making.workspace
    if settings.fork_changes != "branch":
        return missed.why
    base = merge_base(workspace.git, pull.base, commit) or pull.merge_base
    found = describe_protected_changes(
        workspace, base, workspace.tree(commit), settings.protected_paths
    )
    if not found:
        return ""
    return (
        f"a branch of this repository would contain the fork's changes to protected files: {found}"
    )


def _shown(patch: bytes | None) -> str:
    """Return the patch as text, "" if a comment can't show it unaltered."""
    try:
        text = (patch or b"").decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return "" if with_invisible_shown(text) != text or "\r" in text else text


def published_change(making: CommitBuilder, commit: str, how: PublicationMethod) -> Publication:
    """Return the publication of a commit on the pull request's branch."""
    request, pull = making.request, pull_of(making)
    where = pull.head_repository or request.task.trigger.repository
    server = request.settings.github_server_url.rstrip("/")
    return Publication(
        branch=pull.head_branch,
        commit=commit,
        pull_request=describe_published_change(making),
        how=how,
        repository=where if pull.is_fork else "",
        commit_url=f"{server}/{where}/commit/{commit}",
    )


def describe_published_change(making: CommitBuilder) -> PullRequest:
    """Return the pull request that the work is on, without its text, which is its author's."""
    task, pull = making.request.task, pull_of(making)
    return PullRequest(
        title=task.title, body="", number=pull.number, url=task.url or None, draft=pull.is_draft
    )
