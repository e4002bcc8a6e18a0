"""Access policy: which accounts may start work.

`resolver.github.events.permission` applies it.
"""

from dataclasses import dataclass
from typing import Literal

Level = Literal["triage", "write", "maintain", "admin"]
LEVELS = ("none", "read", "triage", "write", "maintain", "admin")
"""Permission levels of a repository on GitHub, lowest first."""


@dataclass(frozen=True)
class AccessPolicy:
    """The accounts that may start work: by permission level, by login or by team.

    users: logins that may start work whatever their permission level.
    teams: teams, as ORG/TEAM, whose members may start work whatever their permission level.
    denied: logins that may never start work; takes precedence over everything else.
    level: permission level on the repository that everybody else needs.
    """

    users: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    level: Level = "write"

    def is_enough(self, level: str) -> bool:
        """Return True if `level` is sufficient to start work. An unknown level never is."""
        return level in LEVELS and LEVELS.index(level) >= LEVELS.index(self.level)


def contains_login(logins: tuple[str, ...], login: str) -> bool:
    """Return True if `listed` contains the login, ignoring case."""
    return login.casefold() in {entry.casefold() for entry in logins}
