"""Decide who may start work: people with write access, and those on the allow-lists.

An `author_association` never grants permission.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from resolver.config.access_policy import AccessPolicy, contains_login
from resolver.errors import ForgeError, NotAllowed
from resolver.models.run import Trigger, TriggerKind

Answer = TypeVar("Answer")


class PermissionReader(Protocol):
    """The part of a GitHub client that answers questions about permissions."""

    def permission(self, login: str) -> str:
        """Return the permission of an account on the repository.

        It is "admin", "maintain", "write", "triage", "read" or "none".
        """
        ...

    def is_member(self, team: str, login: str) -> bool:
        """Return True if `login` is an active member of the team ORG/TEAM."""
        ...

    def operator_may_push(self) -> bool:
        """Return True if the owner of the token may push."""
        ...


def authorize(trigger: Trigger, reader: PermissionReader, who: AccessPolicy | None = None) -> None:
    """Raise NotAllowed unless the trigger may start work.

    GitHub is asked at the time of the call; if it can't answer, the trigger is refused. Triggers of
    a local checkout and of failed checks are always allowed: nobody requested the latter, and they
    exist only where the operator enabled them, on branches that people with write access push to.

    Args:
        trigger: The request.
        reader: Answers questions about permissions.
        who: Who is allowed; people with write access when None.
    """
    who = who or AccessPolicy()
    if trigger.kind in {TriggerKind.LOCAL, TriggerKind.CHECK_FAILED}:
        return
    login = trigger.actor.login
    if trigger.kind is TriggerKind.COMMAND_LINE:
        if not _asked(reader.operator_may_push, trigger, "the permission of the token's owner"):
            raise NotAllowed(
                f"the token may not push to {trigger.repository}",
                "use the token of an account with write access to the repository",
            )
        return
    if contains_login(who.denied, login):
        raise NotAllowed(
            f"{login} may not start work on {trigger.repository}",
            "ask a person with write access to make the request",
        )
    if contains_login(who.users, login):
        return
    level = _asked(lambda: reader.permission(login), trigger, f"the permission of {login}")
    if who.is_enough(level) or _is_in_a_team(trigger, reader, who):
        return
    raise NotAllowed(
        f"{login} has no {who.level} access to {trigger.repository} "
        f"(permission: {level or 'none'})",
        f"ask a person with {who.level} access to make the request",
    )


def _is_in_a_team(trigger: Trigger, reader: PermissionReader, who: AccessPolicy) -> bool:
    """Return True if the requester is a member of one of the allowed teams."""

    def is_in(team: str) -> bool:
        return reader.is_member(team, trigger.actor.login)

    return any(_asked(partial(is_in, team), trigger, f"who is in {team}") for team in who.teams)


def _asked(question: Callable[[], Answer], trigger: Trigger, what: str) -> Answer:
    """Return the answer to a question, or raise NotAllowed if GitHub can't be asked."""
    try:
        return question()
    except ForgeError as error:
        raise NotAllowed(
            f"{what}, for {trigger.repository}, could not be read: {error.what}",
            error.next_step or "try again later",
        ) from error
