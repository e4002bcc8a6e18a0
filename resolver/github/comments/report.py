"""The report of a run: all data that its final comment and pull request are written from.

The text is in the templates of prompts/comments/, which `resolver.github.comments.comment_text`
renders.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field

from resolver.errors import (
    Cause,
    LimitReached,
    PolicyViolation,
    QuotaReached,
    Refused,
    ResolverError,
    RunStopped,
    UsageError,
)
from resolver.github.text.markers import Ending
from resolver.models.approval import PendingApproval
from resolver.models.base import FrozenModel
from resolver.models.pull_request import PublishedReview
from resolver.models.repository import Conventions
from resolver.models.run import (
    CheckedCommand,
    Outcome,
    Patch,
    Publication,
    PullRequest,
    RunState,
    Task,
    Trigger,
    UnverifiedReason,
)
from resolver.models.verification import Verification

FailureKind = Literal["error", "refused", "policy", "limit", "stopped", "ceiling"]


class RunFailure(FrozenModel):
    """The error that ended a run, described for a person."""

    kind: FailureKind
    what: str
    next_step: str | None = None
    cause: Cause | None = None
    settings_decide: bool = Field(
        default=False, description="True when other settings would let a refused change through."
    )
    withdrawn: bool = Field(default=False, description="True when the request was taken back.")

    @property
    def is_lasting(self) -> bool:
        """True if the policy would refuse the same change again with any settings."""
        return self.kind == "policy" and not self.settings_decide


_KIND_OF_ERROR: Mapping[type[BaseException], FailureKind] = {
    PolicyViolation: "policy",
    QuotaReached: "ceiling",
    Refused: "refused",
    LimitReached: "limit",
    RunStopped: "stopped",
}
"""The kinds of failures, in the order in which they are looked for."""


def failure_from_error(error: ResolverError | RunStopped) -> RunFailure:
    """Convert the error that ended a run to its description in the report."""
    kind: FailureKind = next(
        (kind for cls, kind in _KIND_OF_ERROR.items() if isinstance(error, cls)), "error"
    )
    cause = None if isinstance(error, RunStopped) else error.cause
    if isinstance(error, UsageError):
        cause = cause or "set_up"
    return RunFailure(
        kind=kind,
        what=error.what,
        next_step=error.next_step,
        cause=cause,
        settings_decide=isinstance(error, PolicyViolation) and error.settings_decide,
        withdrawn=isinstance(error, RunStopped) and error.withdrawn,
    )


class Report(FrozenModel):
    """Everything that is reported about a run.

    It is made by the pipeline when the run ends, in whatever way, and read by the forge. Only
    `trigger` and `run` are always set; the other fields are set as far as the run got.
    """

    trigger: Trigger
    run: str
    model: str | None = None
    mention: str = Field(default="@agent", description="The mention that starts another run.")
    task: Task | None = None
    outcome: Outcome | None = None
    base: str | None = Field(default=None, description="The commit that the work started from.")
    repository_url: str | None = Field(
        default=None, description="Address of the repository's page, if it has one."
    )
    base_committed_at: datetime | None = Field(
        default=None, description="Commit date of the base; None if the requester saw that commit."
    )
    patch: Patch | None = None
    verification: Verification | None = Field(
        default=None, description="What Resolver's own executions of the checks show."
    )
    commands: tuple[CheckedCommand, ...] = Field(
        default=(), description="The commands that the agent executed, with their exit codes."
    )
    branch: str | None = None
    pull_request: PullRequest | None = None
    review: PublishedReview | None = None
    failure: RunFailure | None = None
    draft: bool = False
    unverified: UnverifiedReason | None = None
    conventions: Conventions = Field(
        default=Conventions(),
        description="How the repository writes pull requests and commits.",
    )
    warnings: tuple[str, ...] = Field(
        default=(), description="Facts that the reader should know, such as weak isolation."
    )
    render_trace: Callable[[int], str] | None = Field(
        default=None,
        repr=False,
        exclude=True,
        description="Renders the folded trace with at most so many UTF-16 units.",
    )
    log_url: str | None = Field(
        default=None, description="Page where log and patch are kept, if any."
    )
    page: str | None = Field(default=None, description="Page that shows the whole trace, if any.")
    continues: bool = Field(
        default=False, description="True if a comment can continue the run from its log."
    )
    answers: bool = Field(default=False, description="True if the run answers a question.")
    pending_approval: PendingApproval | None = Field(
        default=None, description="The action that waits for a person's approval, if there is one."
    )
    publishable: Literal["comment", "folder"] | None = Field(
        default=None,
        description="How the stored change can be published: by comment, or from its folder.",
    )
    progress_comment_id: int | None = Field(
        default=None, description="The id of the run's progress comment, if there is one."
    )
    retry_until: datetime | None = Field(
        default=None, description="Time until which the run is repeated after an outage."
    )
    publication: Publication = Field(
        default=Publication(),
        description="Where the change was published, and why not elsewhere.",
    )

    @property
    def forge_host(self) -> str | None:
        """Host of the repository's pages, the one that a model's text may link to."""
        return urlsplit(self.task.url).netloc or None if self.task else None

    @property
    def is_completed(self) -> bool:
        """True if the agent finished and reported the whole task as completed."""
        outcome = self.outcome
        return outcome is not None and outcome.state is RunState.FINISHED and outcome.task_completed

    @property
    def ending(self) -> Ending:
        """The run's outcome. A failure takes precedence over everything before it."""
        if self.failure is not None:
            return Ending(self.failure.kind)
        if self.pending_approval is not None:
            return Ending.CONFIRMATION
        if self.pull_request is not None:
            return Ending.PULL_REQUEST
        if self.review is not None:
            return Ending.REVIEW
        state = self.outcome.state if self.outcome else RunState.ERROR
        if state is RunState.FINISHED:
            return Ending.ANSWER if self.answers else Ending.NO_CHANGE
        if state is RunState.AWAITING_USER_INPUT:
            return Ending.WAITING
        if state in {RunState.REJECTED, RunState.LIMIT, RunState.STUCK, RunState.STOPPED}:
            return Ending(state.value)
        return Ending.ERROR
