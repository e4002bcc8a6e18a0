"""Retry policy: retries with waits that double, for a limited time."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential

from resolver.errors import ResolverError

Result = TypeVar("Result")


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
        before_wait: Callable[[ResolverError, float], None],
    ) -> Result:
        """Return the result of `attempt`. Raises the error of the last attempt.

        wait_after: returns the minimum number of seconds to wait after an error, or None if a retry
        can't help.
        before_wait: called with the error and the seconds until the next attempt.
        """
        deadline = self.clock() + self.seconds
        backoff = wait_exponential(self.first_wait_seconds, self.max_wait_seconds)

        def wait(state: RetryCallState) -> float:
            return max(backoff(state), wait_after(_error_of(state)) or 0.0)

        retrying = Retrying(
            sleep=self.sleep,
            stop=lambda state: self.clock() + state.upcoming_sleep > deadline,
            wait=wait,
            retry=retry_if_exception(
                lambda error: isinstance(error, ResolverError) and wait_after(error) is not None
            ),
            before_sleep=lambda state: before_wait(_error_of(state), state.upcoming_sleep),
            reraise=True,
        )
        return retrying(attempt)


def _error_of(state: RetryCallState) -> ResolverError:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, ResolverError)
    return error


NO_RETRIES = RetryPolicy(seconds=0.0)
