"""The queue of requests: what the server keeps of each, and what it asks of the store behind it.

One sequence, the position in the queue, orders everything: which request is next, and which ones
a person is told are before theirs.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from resolver.models.run import Trigger

MAX_LISTED = 100
"""Requests that are looked at to say how many are ahead of one: the cost of a look is bounded."""

ISOLATED_AFTER = 2
"""Server crashes after which a run that was at work in each of them has the server to itself: the
next crash then is the fault of this run, or of none."""

MAX_CRASHES = 5
"""Server crashes, in a row and without progress of the run, after which the run is given up."""


class RequestKind(StrEnum):
    """RUN starts work. COMMAND is a comment for a run at work, which does not wait behind it.
    UNDECIDED starts work if it turns out to be addressed to this server's own account."""

    RUN = "run"
    COMMAND = "command"
    UNDECIDED = "undecided"


class RequestState(StrEnum):
    """WAITING can be started. DEFERRED can be started from a given time on. WORKING was claimed by
    a worker. DONE has ended, however that went, and is kept so that a redelivery finds it."""

    WAITING = "waiting"
    DEFERRED = "deferred"
    WORKING = "working"
    DONE = "done"


@dataclass(frozen=True)
class NewRequest:
    """A request to be stored.

    id: the same for every delivery of one request. login: of UNDECIDED, the account that was asked.
    """

    id: str
    kind: RequestKind
    trigger: Trigger
    login: str = ""


@dataclass(frozen=True)
class QueuedRequest:
    """A stored request that a worker has claimed.

    position: in the queue. claim: how often it was claimed; a claim ends the ones before it.
    """

    id: str
    kind: RequestKind
    trigger: Trigger
    login: str
    position: int
    claim: int


@dataclass(frozen=True)
class StartedRequest:
    """A claimed request whose work begins now.

    attempt: from 1. crashes: of the server in a row, which this run is likely to have caused.
    outages: how often it was deferred for one. outage_began: the first of them.
    """

    request: QueuedRequest
    attempt: int
    crashes: int = 0
    outages: int = 0
    outage_began: datetime | None = None


@dataclass(frozen=True)
class RequestsAhead:
    """What comes before a waiting run.

    numbers: issues and pull requests of the same repository whose runs come first, in order.
    count: how many requests that are; more than MAX_LISTED are not counted.
    """

    numbers: tuple[int, ...] = ()
    count: int = 0


MeasureProgress = Callable[[Trigger], int]
"""How far the run of a request has come, by its log: a number that grows with each result."""


class RequestQueue(Protocol):
    """A durable queue. Safe to use from several threads. Each call raises DatabaseError when the
    store can't be used, and its cost does not depend on how many requests wait."""

    def add(self, request: NewRequest) -> bool:
        """Store the request, durably when this returns; False when its id is known."""
        ...

    def claim(self, kind: RequestKind, limit: int, now: datetime) -> list[QueuedRequest]:
        """Claim the next requests, so that at most `limit` of the kind are claimed at a time. Runs:
        never two of one repository."""
        ...

    def start(self, id: str, claim: int) -> StartedRequest | None:
        """Note that the work begins. None when the claim has ended."""
        ...

    def finish(self, id: str, claim: int) -> None:
        """The request needs no more work."""
        ...

    def defer(self, id: str, claim: int, until: datetime, outage: datetime | None = None) -> None:
        """Let the request wait until then, and be claimed again. outage: now, where one is why."""
        ...

    def recover(self, stopped: bool, progress: MeasureProgress, now: datetime) -> None:
        """Take back what an earlier process had claimed. stopped: it was told to end; otherwise it
        crashed, and a run that was at work then may be why."""
        ...

    def requests_ahead(self, request: QueuedRequest) -> RequestsAhead:
        """What comes before a waiting run in its repository."""
        ...

    def unannounced(self, limit: int) -> list[QueuedRequest]:
        """The first waiting runs of which nobody was told yet that they wait."""
        ...

    def mark_announced(self, requests: Collection[QueuedRequest]) -> None:
        """Those were told, or need not be."""
        ...

    def unfinished_runs(self, repository: str, subject: int | None) -> list[Trigger]:
        """What the runs of one issue or pull request are for that wait or are at work."""
        ...

    def repositories(self) -> list[str]:
        """Those of which something was asked, in small letters; the first MAX_LISTED."""
        ...

    def check(self) -> None:
        """Raise DatabaseError unless the queue can be used."""
        ...
