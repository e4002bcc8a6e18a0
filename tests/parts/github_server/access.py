"""Tokens and permissions: who is asking, what they see, what they may do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from tests.parts.git_http import GitAccess, Grant, Refusal, token_of
from tests.parts.github_server.exchange import ApiError
from tests.parts.github_server.state import ROLES, App, Repository, Token, World

LEVELS = ("none", "read", "write", "admin")


@dataclass(frozen=True)
class Caller:
    """The sender of a request: nobody, the holder of a token, or an App with its signed key."""

    token: Token | None = None
    app: App | None = None


def caller_of(world: World, headers: Mapping[str, str]) -> Caller:
    """Who sent these headers. Raises ApiError 401 for credentials that are no good."""
    authorization = headers.get("authorization", "")
    if not authorization:
        return Caller()
    value = token_of(authorization)
    token = world.good_token(value)
    if token is not None:
        return Caller(token=token)
    if value.count(".") == 2:
        return Caller(app=_app_of(world, value))
    raise ApiError(401, "Bad credentials")


def _app_of(world: World, signed: str) -> App:
    try:
        claims: dict[str, Any] = jwt.decode(signed, options={"verify_signature": False})
        who = str(claims.get("iss", ""))
        app = next((a for a in world.apps.values() if who in (str(a.id), a.client_id)), None)
        if app is None:
            raise ApiError(404, "Integration not found")
        # By the server's clock, which tests move on.
        unchecked = {"verify_iss": False, "verify_exp": False, "verify_iat": False}
        jwt.decode(signed, app.public_key, algorithms=["RS256"], options=unchecked)
        now = world.now().timestamp()
        if not claims["iat"] - 60 <= now < claims["exp"] <= claims["iat"] + 660:
            raise ValueError
    except (jwt.InvalidTokenError, ValueError, KeyError):
        raise ApiError(401, "A JSON web token could not be decoded") from None
    return app


def reaches(token: Token, repository: Repository) -> bool:
    return token.repositories is None or repository.full_name.lower() in token.repositories


def role(token: Token | None, repository: Repository) -> str:
    """The role that the token's holder has; an installation has its own permissions only."""
    if token is None or not reaches(token, repository):
        return "none" if repository.private else "read"
    return "write" if token.is_installation else repository.role_of(token.account)


def has_role(token: Token | None, repository: Repository, least: str) -> bool:
    return ROLES.index(role(token, repository)) >= ROLES.index(least)


def has_permission(token: Token, permission: str, level: str) -> bool:
    if token.permissions is None:
        return True
    given = token.permissions.get(permission, "none")
    return LEVELS.index(given) >= LEVELS.index(level)


def editable_branches(world: World, token: Token, fork: Repository) -> list[str]:
    """Branches of a fork that the token's holder may push to as a maintainer of where the open pull
    requests from them go. A token that is bound to repositories, or is an App's, may not."""
    if token.is_installation or token.repositories is not None:
        return []
    return [
        issue.pull.head
        for repository in world.repositories.values()
        if ROLES.index(repository.role_of(token.account)) >= ROLES.index("write")
        for issue in repository.pulls
        if issue.pull and issue.pull.head_repository is fork
        if issue.state == "open" and issue.pull.maintainer_can_modify
    ]


class GitGate:
    """Decides on the access of git clients as GitHub does."""

    def __init__(self, world: World) -> None:
        self._world = world

    def __call__(self, access: GitAccess) -> Grant | Refusal:
        with self._world.lock:
            return self._decide(access)

    def _decide(self, access: GitAccess) -> Grant | Refusal:
        token = self._world.good_token(access.token)
        if access.token and token is None:
            return Refusal(
                "401 Unauthorized",
                "Invalid username or token. Password authentication is not supported "
                "for Git operations.",
            )
        repository = self._world.repositories.get(access.repository.lower())
        if token is None and (access.push or repository is None or repository.private):
            return Refusal("401 Unauthorized", "No anonymous write access.")
        if repository is None or role(token, repository) == "none":
            return Refusal("404 Not Found", "Repository not found.")
        if access.push:
            assert token is not None
            return self._decide_push(token, repository)
        if token and repository.private and not has_permission(token, "contents", "read"):
            return Refusal("403 Forbidden", "Read access to repository not granted.")
        return Grant()

    def _decide_push(self, token: Token, repository: Repository) -> Grant | Refusal:
        if repository.archived:
            return Refusal("403 Forbidden", "This repository was archived so it is read-only.")
        if not has_permission(token, "contents", "write"):
            return Refusal("403 Forbidden", "Write access to repository not granted.")
        branches: list[str] = []
        if not has_role(token, repository, "write"):
            branches = editable_branches(self._world, token, repository)
            if not branches:
                return Refusal(
                    "403 Forbidden",
                    f"Permission to {repository.full_name}.git denied to {token.account.login}.",
                )
        repository.pusher = token.account
        # The Action's own token can't ever write workflows.
        unbound_app = token.is_installation and token.permissions is None
        may_workflows = has_permission(token, "workflows", "write") and not unbound_app
        return Grant(
            {
                "PUSH_WORKFLOWS": "write" if may_workflows else "none",
                "PUSH_BRANCHES": " ".join(f"refs/heads/{name}" for name in branches),
            }
        )
