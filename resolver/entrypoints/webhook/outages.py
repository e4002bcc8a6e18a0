"""When a request is tried again that an outage of GitHub or of the model's provider has stopped."""

from datetime import datetime, timedelta

from resolver.entrypoints.webhook.request_queue import StartedRequest

FIRST_WAIT = timedelta(seconds=30)
"""Before the first retry; each wait is twice the one before."""

LONGEST_WAIT = timedelta(minutes=30)


def retry_end(started: StartedRequest, retry: timedelta, now: datetime) -> datetime:
    """When the request is tried for the last time, if an outage goes on for so long."""
    return (started.outage_began or now) + retry


def next_try(started: StartedRequest, retry: timedelta, now: datetime) -> timedelta | None:
    """How long to wait for the next try; None when the time for retries has passed."""
    if now >= retry_end(started, retry, now):
        return None
    return min(FIRST_WAIT * (1 << min(started.outages, 20)), LONGEST_WAIT)
