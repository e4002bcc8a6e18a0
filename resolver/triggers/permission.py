"""Who may start work: people with write access, and those on the list. Nobody by association."""

from collections.abc import Callable, Collection
from typing import Protocol, TypeVar

from resolver.errors import ForgeError, Refused
from resolver.model import Trigger, TriggerKind

Answer = TypeVar("Answer")

_ENOUGH = {"admin", "maintain", "write"}


class PermissionReader(Protocol):
    """The part of a forge that is asked."""

    def permission(self, login: str) -> str:
        """Permission of `login`: "admin", "maintain", "write", "triage", "read" or "none"."""
        ...

    def operator_may_push(self) -> bool:
        """True when the owner of the token may push."""
        ...


def authorize(
    trigger: Trigger, reader: PermissionReader, allowed_users: Collection[str] = ()
) -> None:
    """Return if the trigger may start work, else raise Refused.

    The forge's permission decides, asked now; an answer that can't be had is a no.
    """
    if trigger.kind is TriggerKind.LOCAL:
        return
    login = trigger.actor.login
    if trigger.kind is TriggerKind.COMMAND_LINE:
        if not _asked(reader.operator_may_push, trigger, "the token's owner"):
            raise Refused(
                f"the token may not push to {trigger.repository}",
                "use the token of an account with write access to the repository",
            )
        return
    if login.casefold() in {user.casefold() for user in allowed_users}:
        return
    level = _asked(lambda: reader.permission(login), trigger, login)
    if level not in _ENOUGH:
        raise Refused(
            f"{login} has no write access to {trigger.repository} (permission: {level or 'none'})",
            "ask a person with write access to make the request",
        )


def _asked(question: Callable[[], Answer], trigger: Trigger, who: str) -> Answer:
    try:
        return question()
    except ForgeError as error:
        raise Refused(
            f"the permission of {who} on {trigger.repository} could not be read: {error.what}",
            error.next_step or "try again later",
        ) from error
