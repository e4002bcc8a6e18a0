"""Creates commits through GitHub's API instead of git, if they are to be signed.

GitHub signs the commits of an app's token that are made through its API:
https://docs.github.com/en/authentication/managing-commit-signature-verification/about-commit-signature-verification#signature-verification-for-bots
"""

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
    """Set `branch` of the task's repository to a signed copy of the commit; return the copy's id.

    previous: the commit that the branch holds now, "" for a new branch. Returns None if signed
    commits are not enabled, or the account can't sign. Raises the errors of a push, and ForgeError
    for errors that a push can't have.
    """
    signer = making.forge.signer() if making.request.settings.signed_commits else None
    if signer is None:
        return None
    git = making.workspace.git
    commits = made_commits(git, commit)
    if not commits:
        return None  # the server has all commits already

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
    """Return a PushRefused if GitHub's rules would refuse a push for the same reason."""
    known = push_failure(error.what)
    if known is None:
        return error
    of_branch = known.cause == "branch_protected"
    why = "the branch is protected" if of_branch else "a rule of the repository forbids it"
    refused = PushRefused(error.what, known.next_step, why, of_branch=of_branch)
    refused.cause = known.cause
    return refused
