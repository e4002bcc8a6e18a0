"""The format of outcome.json: the result of a run for programs. Field names are stable."""

from collections.abc import Mapping, Sequence

from resolver.events.lifecycle import ReplayDiverged
from resolver.events.state import ModelMetrics, State
from resolver.github.comments.report import RunFailure
from resolver.models.pull_request import PublishedReview
from resolver.models.run import (
    CodePlace,
    FileChange,
    FrozenModel,
    Outcome,
    Patch,
    Publication,
    PullRequest,
    RunState,
    Tokens,
    Trigger,
)
from resolver.models.verification import VerificationEvidence

FORMAT = 1

_STATES = {
    "refused": RunState.REFUSED,
    "policy": RunState.REFUSED,
    "over_budget": RunState.REFUSED,
    "ceiling": RunState.REFUSED,
    "limit": RunState.LIMIT,
    "stopped": RunState.STOPPED,
}


class EarlierPublication(FrozenModel):
    """The part of the work that was already public when the run continued it."""

    branch: str | None = None
    commit: str | None = None
    tree: str = ""
    pull_request: PullRequest | None = None


class ModelCosts(FrozenModel):
    """The calls of one model or one service, and their cost in US dollars.

    cost: null if the price of one of the replies is unknown. priced: sum of the known prices.
    """

    calls: int
    cost: float | None
    priced: float
    tokens: Tokens
    seconds: float


class RecordedDifference(FrozenModel):
    """A difference between a replay and its recording."""

    recorded_id: int
    field: str
    recorded: str
    found: str


class OutcomeFile(FrozenModel):
    """The content of outcome.json. Every field is always present; null or empty if the run did not
    get that far."""

    format: int = FORMAT
    run: str
    state: RunState
    reason: str
    next_step: str
    limit: str | None
    exit_code: int
    key: str
    repository: str
    number: int | None
    issue: int | None
    model: str
    base: str | None
    commit: str | None
    tree: str | None
    branch: str | None
    pull_request: PullRequest | None
    comment_url: str | None
    review: PublishedReview | None
    repeated: bool
    earlier: EarlierPublication
    iterations: int
    cost: float | None
    tokens: Tokens
    models: dict[str, ModelCosts]
    services: dict[str, ModelCosts]
    seconds: float
    task_completed: bool
    message: str
    places: tuple[CodePlace, ...]
    files: tuple[FileChange, ...]
    evidence: VerificationEvidence
    divergences: tuple[RecordedDifference, ...]


def build_outcome_file(
    *,
    run: str,
    trigger: Trigger,
    model: str,
    base: str | None,
    outcome: Outcome | None,
    patch: Patch | None,
    publication: Publication,
    earlier: Publication,
    evidence: VerificationEvidence,
    failure: RunFailure | None,
    exit_code: int,
    divergences: Sequence[ReplayDiverged],
    spent: State | None,
) -> OutcomeFile:
    """Return the content of outcome.json. earlier: what was already public of the work that the run
    continued. spent: state of the log, with the cost of each model and service."""
    state, reason = _state(outcome, failure, publication)
    told = outcome or Outcome(state=state, cost=0.0)
    return OutcomeFile(
        run=run,
        state=state,
        reason=reason,
        next_step=failure.next_step if failure else told.next_step,
        limit=told.limit,
        exit_code=exit_code,
        key=trigger.key,
        repository=trigger.repository,
        number=trigger.number,
        issue=trigger.subject,
        model=model,
        base=base,
        commit=publication.commit,
        tree=patch.tree if patch else None,
        branch=publication.branch,
        pull_request=publication.pull_request,
        comment_url=publication.comment_url,
        review=publication.review,
        repeated=publication.repeated,
        earlier=EarlierPublication(
            branch=earlier.branch,
            commit=earlier.commit,
            tree=earlier.tree,
            pull_request=earlier.pull_request,
        ),
        iterations=told.iterations,
        cost=told.cost,
        tokens=told.tokens,
        models=_costs(spent.metrics if spent else {}),
        services=_costs(spent.services if spent else {}),
        seconds=told.seconds,
        task_completed=told.task_completed,
        message=told.message,
        places=tuple(told.places),
        files=tuple(patch.files) if patch else (),
        evidence=evidence,
        divergences=tuple(_difference(each) for each in divergences),
    )


def _difference(event: ReplayDiverged) -> RecordedDifference:
    return RecordedDifference(
        recorded_id=event.recorded_id,
        field=event.field,
        recorded=event.recorded,
        found=event.found,
    )


def _costs(metrics: Mapping[str, ModelMetrics]) -> dict[str, ModelCosts]:
    return {
        name: ModelCosts(
            calls=each.calls,
            cost=None if each.unpriced else each.priced,
            priced=each.priced,
            tokens=each.tokens,
            seconds=each.seconds,
        )
        for name, each in metrics.items()
    }


def _state(
    outcome: Outcome | None, failure: RunFailure | None, publication: Publication
) -> tuple[RunState, str]:
    """Return state and reason. A failure takes precedence over the outcome of the agent."""
    if failure is not None:
        return _STATES.get(failure.kind, RunState.ERROR), failure.what
    if outcome is None:
        return RunState.FINISHED, "an earlier run of the same request did it"
    reason = outcome.reason or ("" if publication.pull_request else "finished without a change")
    return outcome.state, reason or "finished"
