"""Reads accounts: their ids, their permissions on a repository and their teams.

Source: https://docs.github.com/en/rest/collaborators/collaborators,
https://docs.github.com/en/rest/teams/members
"""

from dataclasses import dataclass
from urllib.parse import quote

import github
from github.GithubObject import GithubObject
from github.Repository import Repository
from pydantic import Field

from resolver.github.client.access import GitHubAccess
from resolver.github.client.answers import ApiAnswer
from resolver.github.client.resources import query_graphql
from resolver.models.run import Actor

NO_PERSON = "not accessible by integration"
"""GitHub's message for a request that only a person's token may make, not an installation token."""

ACTIONS_LOGIN = "github-actions[bot]"
"""The login of the token that GitHub gives to an Action; it may not read its own account."""

VIEWER_FIELDS = "login databaseId"
"""The fields of `Viewer` in a GraphQL query."""


class Viewer(ApiAnswer):
    """The account that a token writes as. The login of an App's account ends in `[bot]`."""

    login: str
    id: int | None = Field(alias="databaseId", default=None)

    @property
    def actor(self) -> Actor:
        """The account as the author of what Resolver writes."""
        return Actor(login=self.login, id=self.id, is_bot=self.login.endswith("[bot]"))


def own_account(access: GitHubAccess) -> Actor | None:
    """Return the account that the token writes as, or None when GitHub says that there is none.

    Raises ForgeError for any other failure: with a wrong login, nothing that Resolver wrote before
    would be found, and all of it would be done again.
    """
    with access.wrap_errors("determine the owner of the token"):
        try:
            answer = query_graphql(access, f"query {{ viewer {{ {VIEWER_FIELDS} }} }}", {})
            return Viewer.model_validate(answer["viewer"]).actor
        except github.GithubException as error:
            if NO_PERSON not in str(error.data).casefold():
                raise
    return None


@dataclass
class OwnAccount:
    """The account that Resolver writes as.

    `viewer` is the account of the token, once an answer of GitHub has named it. The methods raise
    ForgeError.
    """

    access: GitHubAccess
    viewer: Actor | None = None

    def login(self) -> str:
        """Return the configured login, or else that of the token's account."""
        if self.access.bot_login:
            return self.access.bot_login
        if self.viewer is None:
            self.viewer = own_account(self.access) or Actor(login=ACTIONS_LOGIN)
        return self.viewer.login

    def read(self) -> Actor:
        """Return the account, with its id if that of the token is known to be the same."""
        login = self.login()
        if self.viewer is None:
            self.viewer = own_account(self.access)
        return self.viewer if self.viewer and self.viewer.login == login else Actor(login=login)


def is_by(element: GithubObject, login: str) -> bool:
    """Return True if the account with this login is the author of an issue, a comment, a review."""
    # PyGithub assumes that there always is a user, but it is null for a deleted account.
    user = element.raw_data.get("user") or {}
    return str(user.get("login") or "").casefold() == login.casefold()


def read_permission(access: GitHubAccess, repository: Repository, login: str) -> str:
    """Return the account's permission as GitHub names it, such as "write". Raises ForgeError."""
    with access.wrap_errors(f"read the permission of {login}", "metadata: read"):
        return repository.get_collaborator_permission(login)


def operator_may_push(access: GitHubAccess, repository: Repository) -> bool:
    """Return True if the owner of the token may push. Raises ForgeError."""
    with access.wrap_errors(f"read {repository.full_name}", "metadata: read"):
        permissions = repository.complete().raw_data.get("permissions") or {}
    return bool(permissions.get("push"))


def is_member(access: GitHubAccess, repository: Repository, team: str, login: str) -> bool:
    """Return True if the account is an active member of the team ORG/TEAM.

    A person who is only invited is not a member. The answer for a team that the token can't see is
    False. Raises ForgeError.
    """
    organization, _, slug = team.partition("/")
    path = f"/orgs/{quote(organization)}/teams/{quote(slug)}/memberships/{quote(login, safe='')}"
    with access.wrap_errors(f"read who is in {team}", "members: read"):
        try:
            _, answer = repository.requester.requestJsonAndCheck("GET", path)
        except github.GithubException as error:
            if error.status == 404:
                return False
            raise
        return bool(answer.get("state") == "active")
