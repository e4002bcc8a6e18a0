"""Access policy: who may start work. `resolver.github.events.permission` applies it."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["triage", "write", "maintain", "admin"]
LEVELS = ("none", "read", "triage", "write", "maintain", "admin")
"""What GitHub lets people do with a repository, least first."""


@dataclass(frozen=True)
class AccessPolicy:
    """Those who have `level` on the repository, and those who are named.

    users: logins that need no level. teams: the members of these, as ORG/TEAM, need none either.
    denied: logins that may not, whatever else is said.
    """

    users: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    level: Level = "write"

    def is_enough(self, level: str) -> bool:
        """Whether that level starts work; one that is not known does not."""
        return level in LEVELS and LEVELS.index(level) >= LEVELS.index(self.level)


def contains_login(listed: tuple[str, ...], login: str) -> bool:
    """Whether the list holds this login, in whatever case."""
    return login.casefold() in {each.casefold() for each in listed}
