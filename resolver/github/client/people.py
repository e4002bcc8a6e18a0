"""Accounts: their numbers, what people may do with a repository, and which teams they are in.

Source: https://docs.github.com/en/rest/collaborators/collaborators,
https://docs.github.com/en/rest/teams/members
"""

from typing import Any
from urllib.parse import quote

import github
from github.Repository import Repository

from resolver.config.access_policy import LEVELS
from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess
from resolver.github.client.graphql import query_graphql
from resolver.models.run import Actor

NO_PERSON = "not accessible by integration"
"""GitHub's words for what a token that is no person's may not ask."""

_VIEWER = "query { viewer { login } }"


def level_of(repository: Repository, login: str) -> str:
    """One of LEVELS. A role of the organization's own counts as the level it is built on, as far
    as GitHub tells it: triage as read, maintain as write."""
    path = f"{repository.url}/collaborators/{quote(login, safe='')}/permission"
    _, answer = repository.requester.requestJsonAndCheck("GET", path)
    role = str(answer.get("role_name") or "")
    return role if role in LEVELS else str(answer["permission"])


def own_account(access: GitHubAccess, client: github.Github) -> Actor | None:
    """The account that the token writes as, with its number where GitHub tells it with the login;
    None where GitHub says that it has none to tell.

    Any trouble is a ForgeError: under a wrong name nothing of ours would be found again, and all
    of it would be done once more.
    """
    with access.asking("ask whose token this is"):
        try:
            _, user = client.requester.requestJsonAndCheck("GET", "/user")
            return _actor(user)
        except github.GithubException as error:
            # an installation's token has no user; a wrong token is 401
            if error.status not in {403, 404}:
                raise
        try:
            return Actor(login=str(query_graphql(access, _VIEWER, {})["viewer"]["login"]))
        except github.GithubException as error:
            if NO_PERSON not in str(error.data).casefold():
                raise
    return None


def _actor(answer: dict[str, Any]) -> Actor:
    return Actor(
        login=str(answer["login"]), id=int(answer["id"]), is_bot=answer.get("type") == "Bot"
    )


def is_member(repository: Repository, team: str, login: str) -> bool:
    """Whether the membership is active: who is only invited is no member, and neither is somebody
    of a team that the token can't see."""
    organization, _, slug = team.partition("/")
    path = f"/orgs/{quote(organization)}/teams/{quote(slug)}/memberships/{quote(login, safe='')}"
    try:
        _, answer = repository.requester.requestJsonAndCheck("GET", path)
    except github.GithubException as error:
        if error.status == 404:
            return False
        raise
    return bool(answer.get("state") == "active")


def account_of(access: GitHubAccess, client: github.Github, login: str) -> Actor:
    """The account of a login, with its number where GitHub tells it."""
    try:
        with access.asking(f"read the account {login}"):
            _, answer = client.requester.requestJsonAndCheck("GET", f"/users/{quote(login)}")
            return _actor(answer)
    except ForgeError:
        return Actor(login=login)


def is_public(access: GitHubAccess, repository: Repository) -> bool | None:
    """Whether anybody can read it; None where that is not known, as on a GitHub Enterprise Server,
    which may want a login for what it calls public."""
    try:
        with access.asking(f"read {repository.full_name}", "metadata: read"):
            known = repository.complete()
            if known.private:
                return False
            return None if "x-github-enterprise-version" in known.raw_headers else True
    except ForgeError:
        return None
