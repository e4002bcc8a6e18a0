"""Forks whose authors let maintainers edit a branch ("Allow edits by maintainers"), and who has
pushed what.

Source: https://docs.github.com/en/pull-requests/collaborating-with-pull-requests/working-with-forks
"""

from tests.parts.github_server.state import ROLES, Issue, Repository, Token, World


def editable_branches(world: World, token: Token, fork: Repository) -> tuple[str, ...]:
    """Branches of a fork that the token's holder may push to as a maintainer of where the open pull
    requests from them go. A token that is bound to repositories, or is an App's, may not."""
    if token.is_installation or token.repositories is not None:
        return ()
    pulls = (
        issue
        for repository in world.repositories.values()
        for issue in repository.issues.values()
        if _lets_edit(issue, fork) and _maintains(token, repository)
    )
    return tuple(issue.pull.head for issue in pulls if issue.pull)


def _lets_edit(issue: Issue, fork: Repository) -> bool:
    pull = issue.pull
    open_from_it = pull is not None and issue.state == "open" and pull.head_repository is fork
    return open_from_it and pull is not None and pull.maintainer_can_modify


def _maintains(token: Token, repository: Repository) -> bool:
    return ROLES.index(repository.role_of(token.account)) >= ROLES.index("write")
