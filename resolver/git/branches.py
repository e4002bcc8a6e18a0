"""Moves the host's clone to another branch; the default branch remains the trusted one."""

from dataclasses import replace

from resolver.errors import WorkspaceError
from resolver.git.clone import STARTS_AT_REF, check_branch, check_commit
from resolver.git.git import Credential
from resolver.git.history import Remote, Tip, fetch_tips
from resolver.git.pull_request import TRUSTED_REF
from resolver.git.remote import list_refs
from resolver.git.workspace import Workspace
from resolver.models.pull_request import OpenPullRequest


def at_branch(
    workspace: Workspace, branch: str, depth: int, credential: Credential | None
) -> Workspace:
    """Return the same clone with the tip of `branch` as its base.

    depth: number of first-parent commits of history, 0 for all. Raises WorkspaceError if there is
    no such branch.
    """
    git = workspace.git
    ref = check_branch(git, branch)
    listing = list_refs(workspace.source, [ref], credential)
    if ref not in listing.refs:
        raise WorkspaceError(
            f"there is no branch {branch} to start from, as the setting base_branch has it",
            "correct base_branch, or create the branch",
        )
    remote = Remote(workspace.source, credential, listing.filters)
    fetch_tips(git, remote, [Tip(STARTS_AT_REF, listing.refs[ref], ref, depth)])
    base = git.text("rev-parse", f"{STARTS_AT_REF}^{{commit}}")
    return replace(workspace, base=base, branch=branch, default=workspace.base)


def at_pull(
    workspace: Workspace, pull: OpenPullRequest, depth: int, credential: Credential | None
) -> Workspace:
    """Return the same clone with the head of a pull request of this repository as its base.

    depth: number of first-parent commits of history, 0 for all. Raises WorkspaceError if the commit
    doesn't exist any more.
    """
    git = workspace.git
    asked = f"refs/pull/{pull.number}/head"
    listing = list_refs(workspace.source, [asked], credential)
    # Use the ref if it still points to the commit: not every server serves commits by id.
    name = asked if listing.refs.get(asked) == pull.head else check_commit(pull.head)
    remote = Remote(workspace.source, credential, listing.filters)
    fetch_tips(git, remote, [Tip(STARTS_AT_REF, pull.head, name, depth)])
    base = git.text("rev-parse", f"{STARTS_AT_REF}^{{commit}}")
    if base != pull.head:
        raise WorkspaceError(
            f"pull request #{pull.number} was pushed to in this very moment", "run it again"
        )
    return replace(workspace, base=base, branch=pull.branch, default=workspace.base)


def with_default_branch(
    workspace: Workspace, depth: int, credential: Credential | None
) -> Workspace:
    """Return a clone at some branch with the tip of the default branch as its trusted commit.

    Does nothing if the clone is at the default branch. depth: number of first-parent commits of
    history, 0 for all. Raises WorkspaceError if the fetch fails.
    """
    git = workspace.git
    listing = list_refs(workspace.source, [], credential)
    default = listing.default
    if default is None or default == f"refs/heads/{workspace.branch}":
        return workspace
    remote = Remote(workspace.source, credential, listing.filters)
    fetch_tips(git, remote, [Tip(TRUSTED_REF, listing.refs[default], default, depth)])
    return replace(workspace, default=git.text("rev-parse", f"{TRUSTED_REF}^{{commit}}"))
