"""Login with GitHub: exchanges codes for tokens of users, and asks what users can read.

Source: https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-user-access-token-for-a-github-app
"""

import base64
import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar
from urllib.parse import quote, urlencode

import requests
from pydantic import BaseModel, ConfigDict, Field

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess, check_repository

logger = logging.getLogger("resolver.entrypoints.webhook")

EXCHANGE_SECONDS = 10.0
"""Timeout in seconds of the exchange of a code for a token."""

MAX_REPOSITORY_PAGES = 20
"""Maximum number of pages, of 100 repositories each, that are read of an installation."""

Level = Literal["none", "read", "write"]
"""What a person may do in a repository, as far as the pages need it."""


class LoginRefused(ForgeError):
    """GitHub does not accept the code or the token of a person who logs in."""


class GitHubUsers(Protocol):
    """Answers questions about people who log in. Methods raise ForgeError."""

    def authorize_url(self, redirect: str, state: str, verifier: str) -> str:
        """Return the address at GitHub where a person logs in."""
        ...

    def exchange(self, code: str, redirect: str, verifier: str) -> str:
        """Return the token for a code. Raises LoginRefused if GitHub does not accept the code."""
        ...

    def login(self, token: str) -> str:
        """Return the login of the token's owner."""
        ...

    def repositories(self, token: str) -> Mapping[str, Level]:
        """Return the repositories, in lower case, that the App is installed on and that the token's
        owner can read explicitly."""
        ...

    def level(self, token: str, repository: str) -> Level:
        """Return what the token's owner may do in the repository."""
        ...


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)


class _Token(_Answer):
    access_token: str = Field(default="", repr=False)
    error: str = ""


class _User(_Answer):
    login: str


class _Permissions(_Answer):
    admin: bool = False
    maintain: bool = False
    push: bool = False
    pull: bool = False


class _ReadableRepository(_Answer):
    full_name: str
    permissions: _Permissions = _Permissions()

    @property
    def level(self) -> Level:
        permissions = self.permissions
        if permissions.push or permissions.maintain or permissions.admin:
            return "write"
        return "read" if permissions.pull else "none"


class _Installation(_Answer):
    id: int


class _Installations(_Answer):
    installations: tuple[_Installation, ...] = ()


class _Listing(_Answer):
    repositories: tuple[_ReadableRepository, ...] = ()


_Model = TypeVar("_Model", bound=_Answer)


def code_challenge(verifier: str) -> str:
    """Return the S256 challenge of RFC 7636 for a verifier."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


@dataclass(frozen=True)
class GitHubOAuth:
    """Implements `GitHubUsers` with the OAuth login of the App.

    server_url: GitHub's web pages. client_id: returns the App's client id; may raise ForgeError.
    access: returns the access to GitHub with a token.
    """

    server_url: str
    client_id: Callable[[], str]
    client_secret: str
    access: Callable[[str], GitHubAccess]

    def authorize_url(self, redirect: str, state: str, verifier: str) -> str:
        """Return the address at GitHub where a person logs in."""
        query = {
            "client_id": self.client_id(),
            "redirect_uri": redirect,
            "state": state,
            "code_challenge": code_challenge(verifier),
            "code_challenge_method": "S256",
            "allow_signup": "false",
        }
        return f"{self.server_url.rstrip('/')}/login/oauth/authorize?{urlencode(query)}"

    def exchange(self, code: str, redirect: str, verifier: str) -> str:
        """Return the token for a code. Raises ForgeError."""
        body = {
            "client_id": self.client_id(),
            "client_secret": self.client_secret,
            "code": code,
            "redirect_uri": redirect,
            "code_verifier": verifier,
        }
        try:
            answer = requests.post(
                f"{self.server_url.rstrip('/')}/login/oauth/access_token",
                data=body,
                headers={"Accept": "application/json"},
                timeout=EXCHANGE_SECONDS,
                allow_redirects=False,
            )
            answer.raise_for_status()
            token = _Token.model_validate_json(answer.content)
        except (requests.RequestException, ValueError):
            # The text of these errors may contain the code or the secret.
            raise ForgeError(
                "GitHub did not answer the login", "try again later", "forge_down"
            ) from None
        if not token.access_token:
            logger.info("GitHub refused a login: %s", token.error[:100])
            raise LoginRefused("GitHub does not accept this login", "log in again")
        return token.access_token

    def login(self, token: str) -> str:
        """Return the login of the token's owner. Raises ForgeError."""
        return self._get(token, "/user", "read who logs in", _User).login

    def repositories(self, token: str) -> Mapping[str, Level]:
        """Return the repositories that the token's owner can read explicitly. Raises ForgeError."""
        levels: dict[str, Level] = {}
        for installation in self._installations(token):
            path = f"/user/installations/{installation}/repositories"
            for repository in self._repositories(token, path):
                if repository.level != "none":
                    levels[repository.full_name.lower()] = repository.level
        return levels

    def level(self, token: str, repository: str) -> Level:
        """Return what the token's owner may do in the repository. Raises ForgeError."""
        path = f"/repos/{quote(check_repository(repository))}"
        try:
            found = self._get(token, path, f"read {repository}", _ReadableRepository)
        except ForgeError as error:
            if error.cause in {"not_found", "permission", "sso", "moved"}:
                return "none"
            raise
        # GitHub redirects the old name of a repository that has moved.
        return found.level if found.full_name.lower() == repository.lower() else "none"

    def _installations(self, token: str) -> list[int]:
        path = "/user/installations?per_page=100"
        answer = self._get(token, path, "list the installations of the App", _Installations)
        return [installation.id for installation in answer.installations]

    def _repositories(self, token: str, path: str) -> Iterator[_ReadableRepository]:
        for page in range(1, MAX_REPOSITORY_PAGES + 1):
            page_path = f"{path}?per_page=100&page={page}"
            rows = self._get(token, page_path, "list the repositories", _Listing).repositories
            yield from rows
            if len(rows) < 100:
                return

    def _get(self, token: str, path: str, operation: str, model: type[_Model]) -> _Model:
        access = self.access(token)
        with access.wrap_errors(operation):
            _, answer = access.client().requester.requestJsonAndCheck("GET", path)
            return model.model_validate(answer)
