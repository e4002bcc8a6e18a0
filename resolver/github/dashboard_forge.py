"""What the guard asks of a forge beside a run's own thread: who has spoken there last, and the
dashboard's issue. The protocol, and its nouns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True)
class LastSpeaker:
    """A comment of a thread, for who wrote it and when. own: by our account."""

    author: str
    is_bot: bool
    own: bool
    at: datetime
    body: str


@dataclass(frozen=True)
class DashboardIssue:
    """An issue of our own account, with the marker of a dashboard at its start."""

    number: int
    body: str


class DashboardForge(Protocol):
    """Of one repository. Raises ForgeError."""

    def voices(self, number: int) -> Sequence[LastSpeaker]:
        """Who has written the newest comments of a thread, newest first."""
        ...

    def dashboard(self, number: int) -> DashboardIssue | None:
        """Issue `number` if it is a dashboard of ours, else None."""
        ...

    def find(self) -> DashboardIssue | None:
        """The oldest open dashboard of ours."""
        ...

    def create(self, title: str, body: str) -> int:
        """A new issue; its number. None is made where one can be found."""
        ...

    def rewrite(self, number: int, body: str) -> None:
        """Put another text into the dashboard's issue."""
        ...
