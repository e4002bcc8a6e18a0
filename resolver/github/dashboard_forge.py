"""The protocol by which the quota dashboard reads and writes issues, and its values."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True)
class LastSpeaker:
    """A comment on an issue, with its author and time. `own` is true for Resolver's own account."""

    author: str
    is_bot: bool
    own: bool
    at: datetime
    body: str


@dataclass(frozen=True)
class DashboardIssue:
    """A dashboard: an issue by Resolver's account whose body starts with the dashboard marker."""

    number: int
    body: str


class DashboardForge(Protocol):
    """The dashboard in one repository. All methods raise ForgeError."""

    def voices(self, number: int) -> Sequence[LastSpeaker]:
        """Return the newest comments of an issue, newest first."""
        ...

    def dashboard(self, number: int) -> DashboardIssue | None:
        """Return issue `number` if it is Resolver's dashboard, else None."""
        ...

    def find(self) -> DashboardIssue | None:
        """Return the oldest open dashboard, or None."""
        ...

    def create(self, title: str, body: str) -> int:
        """Return the number of the dashboard, which is created if none can be found."""
        ...

    def rewrite(self, number: int, body: str) -> None:
        """Replace the body of the dashboard issue."""
        ...
