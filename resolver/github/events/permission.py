"""Who may start work: people with write access, and those on the lists. Nobody by association."""

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from resolver.config.access_policy import AccessPolicy, contains_login
from resolver.errors import ForgeError, NotAllowed
from resolver.models.run import Trigger, TriggerKind

Answer = TypeVar("Answer")


class PermissionReader(Protocol):
    """The part of a forge that is asked."""

    def permission(self, login: str) -> str:
        """Permission of `login`: "admin", "maintain", "write", "triage", "read" or "none"."""
        ...

    def is_member(self, team: str, login: str) -> bool:
        """Whether `login` is an active member of the team ORG/TEAM."""
        ...

    def operator_may_push(self) -> bool:
        """True when the owner of the token may push."""
        ...


def authorize(trigger: Trigger, reader: PermissionReader, who: AccessPolicy | None = None) -> None:
    """Return if the trigger may start work, else raise NotAllowed.

    who: people with write access when None. The forge's answer decides, asked now; an answer that
    can't be had is a no. A check that failed was nobody's wish: it is listened to only where the
    operator has said so, on branches that people with write access push.
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
    def is_in(team: str) -> bool:
        return reader.is_member(team, trigger.actor.login)

    return any(_asked(partial(is_in, team), trigger, f"who is in {team}") for team in who.teams)


def _asked(question: Callable[[], Answer], trigger: Trigger, what: str) -> Answer:
    try:
        return question()
    except ForgeError as error:
        raise NotAllowed(
            f"{what}, for {trigger.repository}, could not be read: {error.what}",
            error.next_step or "try again later",
        ) from error
