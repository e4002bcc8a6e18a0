"""The runs of a conversation as a later run finds them: the interface of their stores, and a store
in memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

EVENTS = "events.jsonl"
OUTCOME = "outcome.json"
CHANGE = "change.json"
BUNDLE = "change.bundle"

MAX_CHANGE_BYTES = 16_000_000
"""Maximum size in bytes of a change that a later comment can still have published."""

MAX_OUTCOME_BYTES = 5_000_000
"""Maximum size in bytes of an outcome.json that is read."""


@dataclass(frozen=True)
class EarlierRun:
    """The files of an earlier run. The outcome is missing if the run was killed.

    A change that is not public is next to the log, in `CHANGE` and `BUNDLE`.
    """

    run: str
    log: Path
    outcome: Path


class RunStore(Protocol):
    """Stores the runs of one repository's conversations, with their logs."""

    def runs_before(self, issue: int, run: str) -> Iterator[EarlierRun]:
        """Yield the runs of a conversation that are stored from before `run`, newest first.

        The files of each are local when it is yielded, and not earlier: they may have to be
        fetched. All stored runs are from before one that is not stored. Raises ResolverError.
        """
        ...
