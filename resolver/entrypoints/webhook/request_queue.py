"""The values of the request queue, which is in `sql_request_queue`.

Requests are ordered by their priority and by one sequence, the position in the queue.

A request is repeated later if an outage of GitHub or of the model's provider interrupted it. An
outage is an error that passes without anybody changing anything: a server that is down, or a rate
limit (`OUTAGES` in `resolver.models.known_failures`). Any other error, such as a rejected token or
a change that violates the policy, would occur again, so it ends the request and is reported in the
conversation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum

from resolver.models.run import Trigger, TriggerKind

MAX_LISTED = 100
"""Maximum number of rows that a query returns, which bounds its cost."""

MAX_CRASHES = 5
"""Number of consecutive server crashes without progress of a run after which the run is given
up."""


PROGRAM_DISPATCH = "repository_dispatch:"
"""Beginning of the keys of requests by the API, which a schedule or another program sends."""


class RequestKind(StrEnum):
    """The kind of a request.

    RUN starts work. COMMAND is a comment for an active run and does not wait behind it.
    """

    RUN = "run"
    COMMAND = "command"


class RequestState(StrEnum):
    """The state of a request.

    WAITING can be started. DEFERRED can be started from a given time on. WORKING was claimed by a
    worker. DONE has ended with any result; it is kept so that a redelivery finds it.
    """

    WAITING = "waiting"
    DEFERRED = "deferred"
    WORKING = "working"
    DONE = "done"


class RequestPriority(IntEnum):
    """The order in which runs start: the lowest first.

    PERSON: somebody asked and waits. AUTOMATIC: a failed check, a bot or a program asked.
    """

    PERSON = 0
    AUTOMATIC = 1


def priority_of(trigger: Trigger) -> RequestPriority:
    """Return the priority of a request."""
    is_automatic = (
        trigger.kind is TriggerKind.CHECK_FAILED
        or trigger.actor.is_bot
        or trigger.key.startswith(PROGRAM_DISPATCH)
    )
    return RequestPriority.AUTOMATIC if is_automatic else RequestPriority.PERSON


OPEN_STATES = tuple(state for state in RequestState if state is not RequestState.DONE)
"""The states of a request that is not done."""


@dataclass(frozen=True)
class NewRequest:
    """A request to be stored.

    id: the same for every delivery of one request.
    """

    id: str
    kind: RequestKind
    trigger: Trigger


@dataclass(frozen=True)
class QueuedRequest:
    """A stored request.

    position: in the queue. claim: how often it was claimed; each claim revokes the ones before it.
    """

    id: str
    kind: RequestKind
    trigger: Trigger
    position: int
    claim: int


@dataclass(frozen=True)
class StartedRequest:
    """A claimed request whose work starts now.

    attempt: counted from 1.
    crashes: consecutive crashes of the server that this run has probably caused.
    outages: how often it was deferred because of an outage.
    outage_began: time of the first of these outages.
    """

    request: QueuedRequest
    attempt: int
    crashes: int = 0
    outages: int = 0
    outage_began: datetime | None = None


@dataclass(frozen=True)
class Backlog:
    """What is in the queue.

    waiting, deferred, working: number of requests in these states.
    oldest: when the first waiting request was made; None if none waits.
    """

    waiting: int = 0
    deferred: int = 0
    working: int = 0
    oldest: datetime | None = None

    def age(self, now: datetime) -> float:
        """Return for how many seconds the oldest request waits; 0 if none does."""
        return max(0.0, (now - self.oldest).total_seconds()) if self.oldest else 0.0


MeasureProgress = Callable[[Trigger], int]
"""Returns the progress of a request's run according to its log: a number that grows with each
result."""


FIRST_RETRY_WAIT = timedelta(seconds=30)
"""Delay before the first retry; each further delay is twice as long, up to MAX_RETRY_WAIT."""

MAX_RETRY_WAIT = timedelta(minutes=30)


def retry_end(started: StartedRequest, retry: timedelta, now: datetime) -> datetime:
    """Return the time after which the request is not repeated any more, even if the outage
    continues.

    An outage that began in the future began before the clock was set back. It has lasted at least
    as long as the waits until now.
    """
    began = started.outage_began or now
    if began > now:
        began = now - sum(map(_wait_after, range(started.outages)), timedelta(0))
    return began + retry


def next_retry_wait(started: StartedRequest, retry: timedelta, now: datetime) -> timedelta | None:
    """Return the delay until the next attempt; None if the time for retries has passed."""
    if now >= retry_end(started, retry, now):
        return None
    return _wait_after(started.outages)


def _wait_after(outages: int) -> timedelta:
    """Return the delay after that many earlier outages of the same request."""
    return min(FIRST_RETRY_WAIT * (1 << min(outages, 20)), MAX_RETRY_WAIT)
