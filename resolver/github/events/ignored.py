"""Why an event asks for nothing, and whose events never do."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from resolver.github.events.payloads import User

_OURS = re.compile(r"\s*<!-- resolver:[a-z]")


@dataclass(frozen=True)
class IgnoredEvent:
    """The event asks for nothing. reason: one line for the log."""

    reason: str


@dataclass(frozen=True)
class MalformedEvent(IgnoredEvent):
    """Something is asked for that can't be understood: whoever sent it has made a mistake."""


def not_a_person(
    account: User,
    bot_login: str,
    allowed_users: Collection[str],
    denied_users: Collection[str] = (),
) -> IgnoredEvent | None:
    """Why this account is not listened to, None when it is.

    bot_login: our own account; allowed_users: bots that are listened to; denied_users: who never
    is.
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
    """Whether the text begins as ours do. Our account may be that of a person, whose name is not
    known here; somebody else who begins so is not listened to either."""
    return _OURS.match(body or "") is not None


@dataclass(frozen=True)
class ListeningPolicy:
    """What is listened to. bot_login: our own account, "" when it is not known.

    checks: whose failing checks start work: "none", "own", "default-branch" or "all".
    review_teams: whose review is ours to do, as ORG/TEAM, or TEAM of the repository's owner.
    """

    mention: str
    label: str
    bot_login: str = ""
    allowed_users: Collection[str] = ()
    denied_users: Collection[str] = ()
    checks: str = "none"
    review_teams: Collection[str] = ()

    def ignores(self, account: User) -> IgnoredEvent | None:
        """Why this account is not listened to, None when it is."""
        return not_a_person(account, self.bot_login, self.allowed_users, self.denied_users)

    def is_review_team(self, owner: str, team: str) -> bool:
        """Whether a review that this team of `owner` is asked for is ours to do."""
        names = {team.casefold(), f"{owner}/{team}".casefold()}
        return any(each.casefold() in names for each in self.review_teams)

    def is_label(self, name: str) -> bool:
        """Whether it is the label that asks for work."""
        return name.casefold() == self.label.casefold()
