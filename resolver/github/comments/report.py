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
    """The error that ended a run, described for a person.

    Attributes:
        settings_decide: True when other settings would let a refused change through.
        withdrawn: True when the request was taken back.
    """

    kind: FailureKind
    what: str
    next_step: str | None = None
    cause: Cause | None = None
    settings_decide: bool = False
    withdrawn: bool = False

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

    Attributes:
        mention: The mention that starts another run.
        base: The commit that the work started from.
        repository_url: Address of the repository's page, if it has one.
        base_committed_at: Commit date of the base; None if the requester saw that commit.
        verification: What Resolver's own executions of the checks show.
        commands: The commands that the agent executed, with their exit codes.
        conventions: How the repository writes pull requests and commits.
        warnings: Facts that the reader should know, such as weak isolation.
        render_trace: Renders the folded trace with at most so many UTF-16 units.
        log_url: Page where log and patch are kept, if any.
        page: Page that shows the whole trace, if any.
        continues: True if a comment can continue the run from its log.
        answers: True if the run answers a question.
        pending_approval: The action that waits for a person's approval, if there is one.
        publishable: How the stored change can be published: by comment, or from its folder.
        progress_comment_id: The id of the run's progress comment, if there is one.
        retry_until: Time until which the run is repeated after an outage.
        publication: Where the change was published, and why not elsewhere.
    """

    trigger: Trigger
    run: str
    model: str | None = None
    mention: str = "@agent"
    task: Task | None = None
    outcome: Outcome | None = None
    base: str | None = None
    repository_url: str | None = None
    base_committed_at: datetime | None = None
    patch: Patch | None = None
    verification: Verification | None = None
    commands: tuple[CheckedCommand, ...] = ()
    branch: str | None = None
    pull_request: PullRequest | None = None
    review: PublishedReview | None = None
    failure: RunFailure | None = None
    draft: bool = False
    unverified: UnverifiedReason | None = None
    conventions: Conventions = Conventions()
    warnings: tuple[str, ...] = ()
    render_trace: Callable[[int], str] | None = Field(default=None, repr=False, exclude=True)
    log_url: str | None = None
    page: str | None = None
    continues: bool = False
    answers: bool = False
    pending_approval: PendingApproval | None = None
    publishable: Literal["comment", "folder"] | None = None
    progress_comment_id: int | None = None
    retry_until: datetime | None = None
    publication: Publication = Publication()

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
