"""When calls are tried again, with waits that double, and how often GitHub is called."""

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential

from resolver.errors import ResolverError

Result = TypeVar("Result")

logger = logging.getLogger("resolver.config")


@dataclass(frozen=True)
class RetryPolicy:
    """The times and number of retries of a failed call.

    seconds: time after the first attempt within which retries may start; 0 for a single attempt.
    first_wait_seconds, max_wait_seconds: time between two attempts, at first and at most. A failure
        may ask for a longer wait.
    """

    seconds: float = 240.0
    first_wait_seconds: float = 1.0
    max_wait_seconds: float = 30.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def lasting(self, seconds: float) -> "RetryPolicy":
        """Return the same policy with another number of seconds."""
        return replace(self, seconds=seconds)

    def call(
        self,
        attempt: Callable[[], Result],
        wait_after: Callable[[ResolverError], float | None],
    ) -> Result:
        """Return the result of `attempt`. Raises the error of the last attempt.

        wait_after: returns the minimum number of seconds to wait after an error, or None if a retry
        can't help.
        """
        deadline = self.clock() + self.seconds
        backoff = wait_exponential(self.first_wait_seconds, self.max_wait_seconds)

        def wait(state: RetryCallState) -> float:
            return max(backoff(state), wait_after(_error_of(state)) or 0.0)

        def log(state: RetryCallState) -> None:
            what, seconds = _error_of(state).what, state.upcoming_sleep
            logger.warning("%s; trying again in %.0f seconds", what, seconds)

        retrying = Retrying(
            sleep=self.sleep,
            stop=lambda state: self.clock() + state.upcoming_sleep > deadline,
            wait=wait,
            retry=retry_if_exception(
                lambda error: isinstance(error, ResolverError) and wait_after(error) is not None
            ),
            before_sleep=log,
            reraise=True,
        )
        return retrying(attempt)


def _error_of(state: RetryCallState) -> ResolverError:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, ResolverError)
    return error


NO_RETRIES = RetryPolicy(seconds=0.0)

PACE_VARIABLE = "RESOLVER_PACE"


@dataclass(frozen=True)
class Pace:
    """Seconds between two requests to GitHub, and for which failed ones are tried again.

    write_interval: GitHub asks for a second between two writes.
    progress_interval: between two edits of the progress comment.
    command_interval: between two checks for comments that control a run in progress, when no
        webhook delivers them; 0 for none.
    first_wait: until the first retry of a request. Each further wait is twice as long.
    github_writes: for which failed writes are retried, and for which a finished run waits for a
        GitHub that is unavailable.
    final_comment: for which posting the final comment is retried when GitHub does not accept it.
    outage: for which a server retries a request that was stopped by an outage.
    """

    write_interval: float = 1.0
    progress_interval: float = 15.0
    command_interval: float = 10.0
    first_wait: float = 1.0
    github_writes: float = 240.0
    final_comment: float = 75.0
    outage: float = 12 * 3600.0

    @property
    def retries(self) -> RetryPolicy:
        """The retry policy of writes to GitHub, pushes, and the publishing of a finished run."""
        return RetryPolicy(self.github_writes, first_wait_seconds=self.first_wait)


def read_pace(environment: Mapping[str, str]) -> Pace:
    """Return the pace, which tests against a server of their own shorten by a variable (JSON)."""
    return Pace(**json.loads(environment.get(PACE_VARIABLE) or "{}"))
