"""The nouns of the straight line. Data only; behaviour lives in the rooms.

Made and read, in order: Trigger (triggers -> forge), Task (forge -> agents),
Limits (settings -> controller), Completion (llm -> events), Outcome (controller ->
everything after), Patch (workspace -> forge), Evidence (verify -> forge, trace),
Publication (forge -> outcome.json).
"""

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Noun(BaseModel):
    """A frozen value. Unknown fields are a mistake of ours and are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_bytes="base64")


class TriggerKind(StrEnum):
    """What started the work."""

    ISSUE_COMMENT = "issue_comment"
    ISSUE_LABELED = "issue_labeled"
    COMMAND_LINE = "command_line"
    LOCAL = "local"


class Actor(Noun):
    """The person (or bot) who asked. `id` is the forge's number, None when not known."""

    login: str
    id: int | None = None
    is_bot: bool = False


class Command(StrEnum):
    """What a mention asks for."""

    FIX = "fix"
    CONTINUE = "continue"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"


class Snapshot(Noun):
    """The issue's words as the requester saw them, from the event's own payload."""

    title: str
    body: str
    author: str = ""


class Extension(Noun):
    """What a maintainer grants on top of a run's limits: replies, US dollars, seconds."""

    iterations: int = 0
    budget: float = 0.0
    time: float = 0.0


class Trigger(Noun):
    """A wish to start work, parsed from an event and not yet allowed.

    Made in `resolver.triggers` (and by the command line), read by `resolver.forge`.
    """

    key: str = Field(description="Same key, same run: what makes a redelivery a no-op.")
    kind: TriggerKind
    repository: str = Field(description="OWNER/NAME, or the path of a local checkout.")
    number: int | None = Field(default=None, description="Issue or PR number; None when local.")
    is_pull_request: bool = False
    actor: Actor
    instruction: str = Field(default="", description="The words that follow the mention.")
    command: Command = Command.FIX
    extension: Extension = Extension()
    at: datetime = Field(description="Text written or edited after this moment is not used.")
    comment_id: int | None = Field(default=None, description="The comment to react to.")
    snapshot: Snapshot | None = None


class Comment(Noun):
    """One comment of the thread, already cleaned of hidden text."""

    id: int
    author: str
    association: str = Field(
        default="NONE", description="GitHub's author_association; not a permission."
    )
    created_at: datetime
    body: str
    url: str = ""


class Task(Noun):
    """Everything about the issue that the agent is told.

    Made in `resolver.forge`, read by the prompts and the publisher.
    """

    trigger: Trigger
    title: str
    body: str
    author: str = ""
    url: str = ""
    labels: tuple[str, ...] = ()
    comments: tuple[Comment, ...] = ()
    left_out: tuple[str, ...] = Field(
        default=(), description="What was not used and why, in words for a person."
    )
    base_branch: str = Field(description="Branch the change is made against.")
    source: str = Field(description="URL or path to clone from; never holds a credential.")


class Limits(Noun):
    """Bounds of one run: steps, US dollars, seconds."""

    max_iterations: int = 100
    max_budget: float = 5.0
    max_time: float = 3600.0


class PlanItem(Noun):
    """One line of the agent's plan."""

    title: str
    status: Literal["todo", "doing", "done"] = "todo"


class Tokens(Noun):
    """Token counts: `input` includes `cached`."""

    input: int = 0
    output: int = 0
    cached: int = 0

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
        )


class RequestedToolCall(Noun):
    """A tool call as the model wrote it. `arguments` is the raw text, valid JSON or not."""

    id: str
    name: str
    arguments: str


class Completion(Noun):
    """One reply of a model, as it came, with what it cost.

    Made in `resolver.llm`, kept whole in the event log so that a run can be replayed.
    """

    model: str
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[RequestedToolCall, ...] = ()
    finish_reason: str = ""
    tokens: Tokens = Tokens()
    cost: float | None = Field(default=None, description="US dollars; None when no price is known.")
    latency: float = Field(
        default=0.0, description="Seconds from request to reply, retries included."
    )


class RunState(StrEnum):
    """States of a run. The last seven are ends."""

    LOADING = "loading"
    RUNNING = "running"
    AWAITING_USER_INPUT = "awaiting_user_input"
    PAUSED = "paused"
    FINISHED = "finished"
    REJECTED = "rejected"
    ERROR = "error"
    STOPPED = "stopped"
    STUCK = "stuck"
    LIMIT = "limit"
    REFUSED = "refused"


class Outcome(Noun):
    """How the agent's work ended. Made in `resolver.controller` from the event log."""

    state: RunState
    reason: str = Field(default="", description="One line for a person.")
    limit: Literal["iterations", "budget", "time"] | None = None
    message: str = Field(default="", description="The agent's closing words: a claim, not proof.")
    task_completed: bool = False
    iterations: int = 0
    tokens: Tokens = Tokens()
    cost: float | None = Field(default=0.0, description="US dollars; None when a price is unknown.")
    seconds: float = 0.0


class FileChange(Noun):
    """One changed path. `path` is quoted the way git prints it when it has odd bytes."""

    path: str
    status: Literal["added", "modified", "deleted", "type_changed"]
    old_mode: str
    new_mode: str
    additions: int | None = Field(default=None, description="None for binary content.")
    deletions: int | None = None


class Patch(Noun):
    """The change, judged and committed on the host.

    Made in `resolver.workspace`; `tree` equals the tree hash in the sandbox.
    """

    base: str
    tree: str
    commit: str | None = Field(default=None, description="Our commit; None while only judged.")
    files: tuple[FileChange, ...] = ()
    diff: bytes = Field(default=b"", repr=False, description="`git diff --binary --full-index`.")

    @property
    def is_empty(self) -> bool:
        return not self.files


class CheckedCommand(Noun):
    """A command that was run and how it ended."""

    command: str
    exit_code: int | None
    event_id: int
    output_tail: str = ""


class Evidence(Noun):
    """What is known about the change. Made in `resolver.verify`, shown in the PR.

    independent: False means that the agent ran the commands itself in its own sandbox;
    such a result is labelled as the agent's, never as "verified".
    """

    independent: bool = False
    commands: tuple[CheckedCommand, ...] = ()


class PullRequest(Noun):
    """A pull request, or only its text when there is no forge (number and url None)."""

    title: str
    body: str
    number: int | None = None
    url: str | None = None
    draft: bool = False


class Publication(Noun):
    """What was made public. Made in `resolver.forge`, written to outcome.json."""

    branch: str | None = None
    commit: str | None = None
    pull_request: PullRequest | None = None
    comment_url: str | None = None
    repeated: bool = Field(default=False, description="True when an earlier run had done it all.")


class Continuation(Noun):
    """An earlier run that this one goes on from: its log is already the beginning of this one's.

    Made at the doors, read by the pipeline.
    """

    run: str = Field(description="Id of the earlier run.")
    words: str = Field(default="", description="What the person said along with it.")
    by: str = ""
    extension: Extension = Extension()
    publication: Publication = Field(
        default=Publication(), description="What the earlier run made public: it is added to."
    )


JsonObject = dict[str, Any]
