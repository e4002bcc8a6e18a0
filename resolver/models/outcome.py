"""Values of an outcome: what became of a pull request that Resolver opened."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import Field

from resolver.models.base import FrozenModel

OutcomeKind = Literal["open", "merged", "merged_with_edits", "superseded", "closed", "ignored"]
"""What became of a pull request.

"merged": people changed nothing. "superseded": it was closed, and another pull request that closes
the same issue was merged. "closed": it was closed for any other reason. "ignored": it is open, and
nobody has reacted for some time.
"""

Durability = Literal["", "pending", "held", "changed", "reverted", "unknown"]
"""What happened to the merged lines within the observation window.

"": the pull request is not merged. "pending": the window is not over. "changed": people changed
some of the lines again. "unknown": it can't be found out, for example because the branch it was
merged into was rewritten or deleted.
"""

MERGED_KINDS = frozenset({"merged", "merged_with_edits"})


class PullRequestOutcome(FrozenModel):
    """The outcome of one pull request, with what is known of how it was made."""

    number: int
    title: str = ""
    url: str = ""
    issue: int | None = Field(default=None, description="Number of the issue that it is for.")
    outcome: OutcomeKind
    created_at: datetime
    ended_at: datetime | None = Field(default=None, description="When it was merged or closed.")
    survived: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Share of Resolver's lines that were merged; null if unknown.",
    )
    rounds: int = Field(default=0, ge=0, description="Rounds of review by people.")
    durability: Durability = ""
    changed_lines: int = Field(
        default=0, ge=0, description="Merged lines that people changed again within the window."
    )
    superseded_by: int | None = Field(
        default=None, description="Number of the pull request that was merged instead."
    )
    superseded_by_own: bool = Field(
        default=False, description="True if that one is Resolver's own, too."
    )
    agent: str = ""
    model: str = ""
    verdict: str = Field(
        default="", description='Resolver\'s verdict on its last change; "" if unknown.'
    )
    cost: float | None = Field(
        default=None, description="US dollars of the runs that worked on it; null if unknown."
    )
    labels: tuple[str, ...] = ()

    @property
    def is_merged(self) -> bool:
        """True if it was merged, with or without edits."""
        return self.outcome in MERGED_KINDS

    @property
    def seconds_to_merge(self) -> float | None:
        """Seconds from its creation until it was merged; None if it is not merged."""
        if not self.is_merged or self.ended_at is None:
            return None
        return max(0.0, (self.ended_at - self.created_at).total_seconds())


@dataclass(frozen=True)
class PullRequestActivity:
    """Something that happened in a pull request. by_person: False for bots and for Resolver."""

    at: datetime
    kind: Literal["review", "comment", "commit"]
    by_person: bool


@dataclass(frozen=True)
class RecordedWork:
    """What Resolver has recorded of its work on a pull request.

    head: the last commit that it pushed. cost: US dollars; None if a price is unknown.
    """

    agent: str = ""
    model: str = ""
    verdict: str = ""
    cost: float | None = None
    head: str = ""


@dataclass(frozen=True)
class Replacement:
    """Another pull request for the same issue, which was merged. is_own: if it is Resolver's."""

    number: int
    is_own: bool
    merged_at: datetime


@dataclass(frozen=True)
class PullRequestFacts:
    """What is known of one pull request of Resolver's.

    head: its last commit. own_head: the last commit that Resolver pushed, "" if unknown.
    """

    number: int
    title: str
    url: str
    issue: int | None
    state: Literal["open", "closed", "merged"]
    created_at: datetime
    ended_at: datetime | None = None
    base_branch: str = ""
    head: str = ""
    own_head: str = ""
    merge_commit: str = ""
    commit_count: int = 1
    head_message: str = ""
    activities: tuple[PullRequestActivity, ...] = ()
    labels: tuple[str, ...] = ()
    work: RecordedWork = RecordedWork()

    @property
    def has_moved(self) -> bool:
        """True unless its last commit is known to be Resolver's."""
        return not self.own_head or self.head != self.own_head
