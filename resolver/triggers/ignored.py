"""Why an event asks for nothing, and whose events never do."""

from collections.abc import Collection
from dataclasses import dataclass

from resolver.triggers.payloads import User


@dataclass(frozen=True)
class Ignored:
    """The event asks for nothing. reason: one line for the log."""

    reason: str


def not_a_person(account: User, bot_login: str, allowed_users: Collection[str]) -> Ignored | None:
    """Why this account is not listened to, None when it is.

    bot_login: our own account; allowed_users: bots that are listened to.
    """
    login = account.login.casefold()
    if bot_login and login == bot_login.casefold():
        return Ignored("it's our own")
    if login in {user.casefold() for user in allowed_users}:
        return None
    if account.type != "User" or login.endswith("[bot]"):
        return Ignored(f"{account.login} isn't a person")
    return None
