"""Whose events Resolver listens to, and the reasons why an event starts no work."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from resolver.github.events.payloads import User

_OURS = re.compile(r"\s*<!-- resolver:[a-z]")


@dataclass(frozen=True)
class IgnoredEvent:
    """An event that starts no work. `reason` is one line for the log."""

    reason: str


@dataclass(frozen=True)
class MalformedEvent(IgnoredEvent):
    """An event that asks for something that can't be understood: its sender made a mistake."""


def not_a_person(
    account: User,
    bot_login: str,
    allowed_users: Collection[str],
    denied_users: Collection[str] = (),
) -> IgnoredEvent | None:
    """Return the reason why an account's events are ignored, or None when they are accepted.

    Args:
        account: The account.
        bot_login: Login of Resolver's own account.
        allowed_users: Bots whose events are accepted.
        denied_users: Accounts whose events are always ignored.
    """
    login = account.login.casefold()
    if bot_login and login == bot_login.casefold():
        return IgnoredEvent("it's our own")
    if login in {user.casefold() for user in denied_users}:
        return IgnoredEvent(f"{account.login} is on the list of those who are not listened to")
    if login in {user.casefold() for user in allowed_users}:
        return None
    if account.type != "User" or login.endswith("[bot]"):
        return IgnoredEvent(f"{account.login} isn't a person")
    return None


def is_our_text(body: str | None) -> bool:
    """Return True if the text begins with one of Resolver's markers.

    With a personal access token, Resolver writes as a person whose login is not known here. A text
    that somebody else begins in the same way is ignored as well.
    """
    return _OURS.match(body or "") is not None


@dataclass(frozen=True)
class ListeningPolicy:
    """Whose events start work, and how they address Resolver.

    Attributes:
        mention: The mention that addresses Resolver.
        label: The label that asks for work.
        bot_login: Login of Resolver's own account; "" when it is not known.
        allowed_users: Bots whose events are accepted.
        denied_users: Accounts whose events are always ignored.
        checks: Whose failing checks start work: "none", "own", "default-branch" or "all".
        review_teams: Teams whose reviews Resolver does, as ORG/TEAM, or as TEAM for a team of the
            repository's owner.
    """

    mention: str
    label: str
    bot_login: str = ""
    allowed_users: Collection[str] = ()
    denied_users: Collection[str] = ()
    checks: str = "none"
    review_teams: Collection[str] = ()

    def ignores(self, account: User) -> IgnoredEvent | None:
        """Return the reason why an account's events are ignored, or None when they are accepted."""
        return not_a_person(account, self.bot_login, self.allowed_users, self.denied_users)

    def is_review_team(self, owner: str, team: str) -> bool:
        """Return True if a review requested from this team of `owner` is Resolver's to do."""
        names = {team.casefold(), f"{owner}/{team}".casefold()}
        return any(each.casefold() in names for each in self.review_teams)

    def is_label(self, name: str) -> bool:
        """Return True if `name` is the label that asks for work."""
        return name.casefold() == self.label.casefold()
