"""How long something that failed is tried again: after waits that double, for a bounded time."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from resolver.errors import ResolverError

Result = TypeVar("Result")


@dataclass(frozen=True)
class RetryPolicy:
    """seconds: for which an attempt is followed by another, 0 for a single attempt. first_wait and
    longest_wait: seconds between two attempts, as long as the failure asks for no longer wait."""

    seconds: float = 240.0
    first_wait: float = 1.0
    longest_wait: float = 30.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def lasting(self, seconds: float) -> "RetryPolicy":
        """The same for another number of seconds."""
        return replace(self, seconds=seconds)

    def call(
        self,
        attempt: Callable[[], Result],
        wait_after: Callable[[ResolverError], float | None],
        before_wait: Callable[[ResolverError, float], None],
    ) -> Result:
        """The result of `attempt`. Raises what the last attempt raised.

        wait_after: the least number of seconds to wait after a failure; None where no other attempt
        can help. before_wait: gets the failure and the seconds until the next attempt.
        """
        end = self.clock() + self.seconds
        pause = self.first_wait
        while True:
            try:
                return attempt()
            except ResolverError as error:
                least = wait_after(error)
                wait = max(pause, least or 0.0)
                if least is None or self.clock() + wait > end:
                    raise
                before_wait(error, wait)
            self.sleep(wait)
            pause = min(2 * pause, self.longest_wait)


NO_RETRIES = RetryPolicy(seconds=0.0)
