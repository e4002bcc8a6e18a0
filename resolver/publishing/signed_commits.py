"""Commits made by GitHub's API instead of git, where they are to be signed."""

from collections.abc import Iterator

from resolver.config.templates import render
from resolver.errors import ForgeError, PushRefused, ResolverError
from resolver.git.objects import contents, made_commits
from resolver.models.commits import MadeCommit
from resolver.models.known_failures import push_failure
from resolver.publishing.commit_builder import CommitBuilder


def push_signed_commits(
    making: CommitBuilder, commit: str, branch: str, previous: str
) -> str | None:
    """Make `branch` of the task's own repository hold what the commit is, signed; the id of that
    one. None where the settings don't ask for it, or nobody signs there.

    previous: what the branch holds now, "" for a new one. Raises as a push does, and ForgeError for
    what a push knows nothing of.
    """
    signer = making.forge.signer() if making.request.settings.signed_commits else None
    if signer is None:
        return None
    git = making.workspace.git
    commits = made_commits(git, commit)
    if not commits:
        return None  # all of it is there already: nothing is made

    def read(each: MadeCommit) -> Iterator[tuple[str, bytes]]:
        return contents(git, each)

    try:
        placed = signer.put(commits, read, branch, previous)
    except ForgeError as error:
        raise _as_of_a_push(error) from error
    if not placed.signed:
        told = render("run/not_signed.md.j2").strip()
        if told not in making.request.notices:
            making.request.notices.append(told)
    return placed.id


def _as_of_a_push(error: ForgeError) -> ResolverError:
    """What GitHub refuses by its rules, it refuses a push for as well."""
    known = push_failure(error.what)
    if known is None:
        return error
    of_branch = known.cause == "branch_protected"
    why = "the branch is protected" if of_branch else "a rule of the repository forbids it"
    refused = PushRefused(error.what, known.next_step, why, of_branch=of_branch)
    refused.cause = known.cause
    return refused
