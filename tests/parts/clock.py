"""A clock that advances only by waiting, so that waits of minutes take no time."""

from dataclasses import dataclass, field

from resolver.config.retries import RetryPolicy


@dataclass
class PassingTime:
    """now: seconds since it was made. waits: those that were waited, in order."""

    now: float = 0.0
    waits: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def retries(self, seconds: float = 240.0) -> RetryPolicy:
        """A policy by this clock."""
        return RetryPolicy(seconds, sleep=self.sleep, clock=lambda: self.now)
