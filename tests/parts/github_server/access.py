"""Tokens and permissions: who is asking, what they see, what they may do."""

from collections.abc import Mapping
from typing import Any

import jwt

from tests.parts.git_http import GitAccess, Grant, Refusal, token_of
from tests.parts.github_server.exchange import ApiError, Call, Caller, not_found
from tests.parts.github_server.state import ROLES, Account, Issue, Repository, Token, World

LEVELS = ("none", "read", "write", "admin")


def caller_of(world: World, headers: Mapping[str, str]) -> Caller:
    """Who sent these headers. Raises ApiError 401 for credentials that are no good."""
    authorization = headers.get("authorization", "")
    if not authorization:
        return Caller()
    value = token_of(authorization)
    token = world.tokens.get(value)
    if token is not None and token.is_good(world.now()):
        return Caller(token=token)
    if value.count(".") == 2:
        return _app_of(world, value)
    raise ApiError(401, "Bad credentials")


def _app_of(world: World, signed: str) -> Caller:
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
    return Caller(app=app)


def _reaches(token: Token, repository: Repository) -> bool:
    return token.repositories is None or repository.full_name.lower() in token.repositories


def role(token: Token | None, repository: Repository) -> str:
    """The role that the token's holder has; an installation has its own permissions only."""
    if token is None:
        return "none" if repository.private else "read"
    if not _reaches(token, repository):
        return "none" if repository.private else "read"
    if token.is_installation:
        return "write"
    return repository.role_of(token.account)


def has_permission(token: Token, permission: str, level: str) -> bool:
    if token.permissions is None:
        return True
    given = token.permissions.get(permission, "none")
    return LEVELS.index(given) >= LEVELS.index(level)


def repository_of(call: Call) -> Repository:
    """The repository of the path. Raises ApiError 404 when the caller can't see it."""
    try:
        repository = call.world.repository(f"{call.at['owner']}/{call.at['repo']}")
    except KeyError:
        raise not_found() from None
    if role(call.caller.token, repository) == "none":
        raise not_found()
    return repository


def may_read(call: Call, repository: Repository, *permissions: str) -> None:
    """Private content needs one of the token's permissions. Raises ApiError 403."""
    token = call.caller.token
    if repository.private and token is not None:
        allowed = any(has_permission(token, name, "read") for name in permissions)
        if not allowed:
            raise _not_accessible(token)


def may_write(
    call: Call, repository: Repository, *permissions: str, role_needed: str = "read"
) -> Account:
    """The account that writes, when it may. `permissions`: one of them is enough."""
    token = call.caller.token
    if token is None:
        raise ApiError(401, "Requires authentication")
    allowed = any(has_permission(token, name, "write") for name in permissions)
    if not allowed or (token.is_installation and not _reaches(token, repository)):
        raise _not_accessible(token)
    if repository.archived:
        raise ApiError(403, "Repository was archived so is read-only.")
    if ROLES.index(role(token, repository)) < ROLES.index(role_needed):
        raise ApiError(403, "Must have admin rights to Repository.")
    return token.account


def readable(call: Call, *permissions: str) -> Repository:
    """The repository of the path, when one of the permissions lets the caller read there."""
    repository = repository_of(call)
    may_read(call, repository, *permissions)
    return repository


def writable(
    call: Call, *permissions: str, role_needed: str = "read"
) -> tuple[Repository, Account]:
    """The repository of the path and the account that writes there, when it may."""
    repository = repository_of(call)
    return repository, may_write(call, repository, *permissions, role_needed=role_needed)


def may_change(call: Call, repository: Repository, author: Account, *permissions: str) -> Account:
    """Authors change what is theirs; for the rest it takes a writer."""
    account = may_write(call, repository, *permissions)
    if account is not author:
        return may_write(call, repository, *permissions, role_needed="write")
    return account


def _not_accessible(token: Token) -> ApiError:
    kind = "integration" if token.is_installation else "personal access token"
    return ApiError(403, f"Resource not accessible by {kind}")


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


class GitGate:
    """Decides on the access of git clients as GitHub does."""

    def __init__(self, world: World) -> None:
        self._world = world

    def __call__(self, access: GitAccess) -> Grant | Refusal:
        with self._world.lock:
            return self._decide(access)

    def _decide(self, access: GitAccess) -> Grant | Refusal:
        token = self._world.tokens.get(access.token)
        if access.token and (token is None or not token.is_good(self._world.now())):
            return Refusal(
                "401 Unauthorized",
                "Invalid username or token. Password authentication is not supported "
                "for Git operations.",
            )
        try:
            repository = self._world.repository(access.repository)
        except KeyError:
            repository = None
        if token is None and (access.push or repository is None or repository.private):
            return Refusal("401 Unauthorized", "No anonymous write access.")
        if repository is None or role(token, repository) == "none":
            return Refusal("404 Not Found", "Repository not found.")
        if not access.push:
            if token and repository.private and not has_permission(token, "contents", "read"):
                return Refusal("403 Forbidden", "Read access to repository not granted.")
            return Grant()
        assert token is not None
        return self._decide_push(token, repository)

    def _decide_push(self, token: Token, repository: Repository) -> Grant | Refusal:
        if repository.archived:
            return Refusal("403 Forbidden", "This repository was archived so it is read-only.")
        if not has_permission(token, "contents", "write"):
            return Refusal("403 Forbidden", "Write access to repository not granted.")
        branches: tuple[str, ...] = ()
        if ROLES.index(role(token, repository)) < ROLES.index("write"):
            branches = editable_branches(self._world, token, repository)
            if not branches:
                return Refusal(
                    "403 Forbidden",
                    f"Permission to {repository.full_name}.git denied to {token.account.login}.",
                )
        repository.pusher = token.account
        may_workflows = has_permission(token, "workflows", "write")
        if token.is_installation and token.permissions is None:
            may_workflows = False  # the Action's own token can't ever
        return Grant(
            {
                "PUSH_WORKFLOWS": "write" if may_workflows else "none",
                "PUSH_BRANCHES": " ".join(f"refs/heads/{name}" for name in branches),
            }
        )
