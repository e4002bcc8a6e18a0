"""Decides whose events are ignored, and who may start work.

People with write access, and those on the allow-lists, may start work. An `author_association`
never grants permission.
"""

import re
from dataclasses import dataclass
from typing import Protocol

from resolver.config.github_settings import AccessPolicy, contains_login
from resolver.errors import ForgeError, NotAllowed
from resolver.models.run import Trigger, TriggerKind

_OWN_MARKER = re.compile(r"\s*<!-- resolver:[a-z]")


@dataclass(frozen=True)
class IgnoredEvent:
    """An event that starts no work. `reason` is one line for the log."""

    reason: str


@dataclass(frozen=True)
class MalformedEvent(IgnoredEvent):
    """An event that asks for something that can't be understood: its sender made a mistake."""


def is_own_text(body: str | None) -> bool:
    """Return True if the text begins with one of Resolver's markers.

    With a personal access token, Resolver writes as a person whose login is not known here. A text
    that somebody else begins in the same way is ignored as well.
    """
    return _OWN_MARKER.match(body or "") is not None


class PermissionReader(Protocol):
    """The part of a GitHub client that answers questions about permissions."""

    def permission(self, login: str) -> str:
        """Return the permission of an account on the repository.

        It is "admin", "write", "read" or "none": maintainers count as "write", triagers as "read",
        a custom role of the organization as the role it is based on.
        """
        ...

    def is_member(self, team: str, login: str) -> bool:
        """Return True if `login` is an active member of the team ORG/TEAM."""
        ...

    def operator_may_push(self) -> bool:
        """Return True if the owner of the token may push."""
        ...


WRITE_LEVELS = frozenset({"write", "admin"})
"""The permission levels of GitHub that are enough to start work."""


def authorize(
    trigger: Trigger, reader: PermissionReader, policy: AccessPolicy | None = None
) -> None:
    """Raise NotAllowed unless the trigger may start work.

    GitHub is asked at the time of the call; if it can't answer, the trigger is refused. Triggers of
    a local checkout and of failed checks are always allowed: nobody requested the latter, and they
    exist only where the operator enabled them, on branches that people with write access push to.

    Args:
        trigger: The request.
        reader: Answers questions about permissions.
        policy: Who is allowed; people with write access when None.
    """
    try:
        _require_permission(trigger, reader, policy or AccessPolicy())
    except ForgeError as error:
        raise NotAllowed(
            f"the permission of {trigger.actor.login or 'the token'} on {trigger.repository} could "
            f"not be read: {error.what}",
            error.next_step or "try again later",
        ) from error


def _require_permission(trigger: Trigger, reader: PermissionReader, policy: AccessPolicy) -> None:
    """Raise NotAllowed unless the trigger may start work, and ForgeError if GitHub doesn't say."""
    login, repository = trigger.actor.login, trigger.repository
    if trigger.kind in {TriggerKind.LOCAL, TriggerKind.CHECK_FAILED}:
        return
    if trigger.kind is TriggerKind.COMMAND_LINE:
        if not reader.operator_may_push():
            raise NotAllowed(
                f"the token may not push to {repository}",
                "use the token of an account with write access to the repository",
            )
        return
    if contains_login(policy.users, login):
        return
    level = reader.permission(login)
    if level in WRITE_LEVELS or any(reader.is_member(team, login) for team in policy.teams):
        return
    raise NotAllowed(
        f"{login} has no write access to {repository} (permission: {level or 'none'})",
        "ask a person with write access to make the request",
    )
