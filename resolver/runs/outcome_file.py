"""outcome.json: the result of a run for programs. The names of its fields are stable."""

from pydantic import Field

from resolver.events.state import ModelMetrics
from resolver.models.base import FrozenModel
from resolver.models.pull_request import PublishedReview
from resolver.models.run import CodePlace, FileChange, PullRequest, RunState, Tokens
from resolver.models.verification import VerificationEvidence

FORMAT = 1


class EarlierPublication(FrozenModel):
    """The part of the work that was already public when the run continued it."""

    branch: str | None = Field(default=None, description="Branch that was pushed.")
    commit: str | None = Field(default=None, description="Commit that was published.")
    tree: str | None = Field(default=None, description="Id of its tree.")
    pull_request: PullRequest | None = Field(
        default=None, description="Pull request that was opened or updated."
    )


class RecordedDifference(FrozenModel):
    """A difference between a replay and its recording."""

    recorded_id: int = Field(description="Id of the event in the recording.")
    field: str = Field(description="The field of the event that differs.")
    recorded: str = Field(description="Its value in the recording.")
    found: str = Field(description="Its value in the replay.")


class OutcomeFile(FrozenModel):
    """The content of outcome.json. Every field is always present; null or empty if the run did not
    get that far."""

    format: int = Field(default=FORMAT, description="Version of the format of this file.")
    run: str = Field(description="Id of the run.")
    state: RunState = Field(description="How the run ended.")
    reason: str = Field(description="Why it ended so, in one sentence.")
    next_step: str | None = Field(description="What to do next; null if there is nothing.")
    limit: str | None = Field(description="The setting whose limit ended the run.")
    exit_code: int = Field(description="Exit code of the command.")
    key: str = Field(description="Key of the request: the same for a redelivery of its event.")
    repository: str = Field(description="OWNER/NAME, or the path of a local checkout.")
    number: int | None = Field(description="Number of the issue or pull request that was asked on.")
    issue: int | None = Field(description="Number of the issue that the work is for.")
    model: str = Field(description="Name of the model of the agent.")
    base: str | None = Field(description="Commit that the work started from.")
    commit: str | None = Field(description="Commit that was published.")
    tree: str | None = Field(
        description="Id of the change's tree, the same in the sandbox and in the commit."
    )
    branch: str | None = Field(description="Branch that was pushed.")
    pull_request: PullRequest | None = Field(description="Pull request that was opened or updated.")
    comment_url: str | None = Field(description="Address of the final comment.")
    review: PublishedReview | None = Field(description="Review that was published.")
    repeated: bool = Field(
        description="True if an earlier attempt had already published this work."
    )
    earlier: EarlierPublication = Field(
        description="The part of the work that was already public when the run continued it."
    )
    iterations: int = Field(
        description="Number of replies of the model to the agent and to those that it delegated to."
    )
    cost: float | None = Field(
        description="Cost in US dollars; null if the price of a reply is unknown."
    )
    tokens: Tokens = Field(description="Tokens of all replies.")
    models: dict[str, ModelMetrics] = Field(
        description="Calls and cost of each model, by its name."
    )
    services: dict[str, ModelMetrics] = Field(
        description="Calls and cost of each service that used a model, by its name."
    )
    seconds: float = Field(description="Duration of the run in seconds.")
    task_completed: bool = Field(
        description="True if the agent called its work complete, which nothing confirms."
    )
    message: str = Field(description="The last message of the agent.")
    places: tuple[CodePlace, ...] = Field(
        description="Lines of code that the agent named in its answer."
    )
    files: tuple[FileChange, ...] = Field(description="Changed paths.")
    evidence: VerificationEvidence = Field(
        description="What the executions of the project's checks show."
    )
    divergences: tuple[RecordedDifference, ...] = Field(
        description="Differences of a replay from its recording."
    )
    traceparent: str | None = Field(
        description="Ids of the run's OpenTelemetry trace, as in the header of that name."
    )
