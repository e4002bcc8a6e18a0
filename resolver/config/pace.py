"""How often Resolver calls GitHub, and how long it tries again. These are no settings."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from resolver.config.retries import RetryPolicy

VARIABLE = "RESOLVER_PACE"


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
    return Pace(**json.loads(environment.get(VARIABLE) or "{}"))
