"""Computes when a request is repeated that an outage of GitHub or of the model's provider
interrupted.

An outage is an error that passes without anybody changing anything: a server that is down, or a
rate limit (`OUTAGES` in `resolver.models.known_failures`). Only these requests are repeated. Any
other error, such as a rejected token or a change that violates the policy, would occur again, so it
ends the request and is reported in the conversation.
"""

from datetime import datetime, timedelta

from resolver.entrypoints.webhook.request_queue import StartedRequest

FIRST_WAIT = timedelta(seconds=30)
"""Delay before the first retry; each further delay is twice as long, up to LONGEST_WAIT."""

LONGEST_WAIT = timedelta(minutes=30)


def retry_end(started: StartedRequest, retry: timedelta, now: datetime) -> datetime:
    """Return the time after which the request is not repeated any more, even if the outage
    continues."""
    return (started.outage_began or now) + retry


def next_try(started: StartedRequest, retry: timedelta, now: datetime) -> timedelta | None:
    """Return the delay until the next attempt; None if the time for retries has passed."""
    if now >= retry_end(started, retry, now):
        return None
    return min(FIRST_WAIT * (1 << min(started.outages, 20)), LONGEST_WAIT)
