"""The host's clone moved to another branch than the default one, which stays what is trusted."""

from dataclasses import replace

from resolver.errors import WorkspaceError
from resolver.pull import OpenPull
from resolver.workspace.clone import check_branch, check_commit, fetch, list_refs
from resolver.workspace.git import Credential, HostGit
from resolver.workspace.pull import TRUSTED_REF
from resolver.workspace.workspace import Workspace

STARTS_AT_REF = "refs/resolver/starts-at"


def at_branch(
    workspace: Workspace, branch: str, depth: int, credential: Credential | None
) -> Workspace:
    """The same clone with the tip of `branch` as its base. depth: commits of history, 0 for all.

    Raises WorkspaceError where there is no such branch.
    """
    git = workspace.git
    ref = check_branch(git, branch)
    refs, _ = list_refs(HostGit(), workspace.source, [ref], credential)
    if ref not in refs:
        raise WorkspaceError(
            f"there is no branch {branch} to start from, as the setting base_branch has it",
            "correct base_branch, or create the branch",
        )
    options = [f"--depth={depth}"] if depth else []
    fetch(git, workspace.source, [f"+{ref}:{STARTS_AT_REF}"], options, credential)
    base = git.text("rev-parse", f"{STARTS_AT_REF}^{{commit}}")
    return replace(workspace, base=base, branch=branch, default=workspace.base)


def at_pull(
    workspace: Workspace, pull: OpenPull, depth: int, credential: Credential | None
) -> Workspace:
    """The same clone with the head of a pull request of this repository as its base. depth: commits
    of history, 0 for all. Raises WorkspaceError where there is no such commit any more.
    """
    git = workspace.git
    asked = f"refs/pull/{pull.number}/head"
    refs, _ = list_refs(HostGit(), workspace.source, [asked], credential)
    # By its ref where that still holds the commit: not every server gives commits by their ids.
    head = asked if refs.get(asked) == pull.head else check_commit(pull.head)
    options = [f"--depth={depth}"] if depth else []
    fetch(git, workspace.source, [f"+{head}:{STARTS_AT_REF}"], options, credential)
    base = git.text("rev-parse", f"{STARTS_AT_REF}^{{commit}}")
    if base != pull.head:
        raise WorkspaceError(
            f"pull request #{pull.number} was pushed to in this very moment", "run it again"
        )
    return replace(workspace, base=base, branch=pull.branch, default=workspace.base)


def beside_default(workspace: Workspace, depth: int, credential: Credential | None) -> Workspace:
    """A clone at some branch, with the tip of the default branch as what is trusted, where that is
    another one. depth: commits of history, 0 for all. Raises WorkspaceError.
    """
    git = workspace.git
    _, default = list_refs(HostGit(), workspace.source, [], credential)
    if default is None or default == f"refs/heads/{workspace.branch}":
        return workspace
    options = [f"--depth={depth}"] if depth else []
    fetch(git, workspace.source, [f"+{default}:{TRUSTED_REF}"], options, credential)
    return replace(workspace, default=git.text("rev-parse", f"{TRUSTED_REF}^{{commit}}"))
