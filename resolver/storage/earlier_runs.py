"""The files of a run, and the runs of a conversation as a later run finds them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

EVENTS = "events.jsonl"
REQUEST = "request.json"
ISSUE = "issue.md"
"""The issue's text, if it was given on the command line."""
CHANGE = "change.json"
BUNDLE = "change.bundle"
PATCH = "patch.diff"
OUTCOME = "outcome.json"

RESULT_FILES = (
    REQUEST, ISSUE, CHANGE, BUNDLE,
    PATCH, "trace.md", "trace.html", "pull_request.md", "review.md", OUTCOME,
)  # fmt: skip
"""The files of a run besides its event log. The last one says that the run is over."""

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


class EarlierRuns(Protocol):
    """Finds the stored runs of one repository's conversations, with their logs.

    The jobs of GitHub Actions keep them in refs of the repository (`run_refs`), a server in its
    `run_store`.
    """

    def runs_before(self, issue: int, run: str) -> Iterator[EarlierRun]:
        """Yield the runs of a conversation that are stored from before `run`, newest first.

        The files of each are local when it is yielded, and not earlier: they may have to be
        fetched. All stored runs are from before one that is not stored. Raises ResolverError.
        """
        ...
