"""The nouns of the straight line. Data only; behaviour lives in the rooms.

Made and read, in order: Trigger (triggers -> forge), Task (forge -> agents),
Limits (settings -> controller), Completion (llm -> events), Outcome (controller ->
everything after), Patch (workspace -> forge), Evidence (verify -> forge, trace),
Publication (forge -> outcome.json).
"""

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from resolver.errors import Cause
from resolver.models.approval import ApprovalDecision
from resolver.models.base import FrozenModel as FrozenModel
from resolver.models.base import LoggedModel as LoggedModel
from resolver.models.check_history import Verdict
from resolver.models.issue_context import FailedCheck, Form, Picture, Reference
from resolver.models.pull_request import (
    AskedThread,
    OpenPullRequest,
    PublishedReview,
    PullRequestContext,
)
from resolver.models.trigger import Actor as Actor
from resolver.models.trigger import Command as Command
from resolver.models.trigger import Extension as Extension
from resolver.models.trigger import Snapshot as Snapshot
from resolver.models.trigger import Trigger as Trigger
from resolver.models.trigger import TriggerKind as TriggerKind


class Comment(LoggedModel):
    """One comment of the thread, already cleaned of hidden text."""

    id: int = Field(description="The forge's number.")
    author: str = Field(description="Login of who wrote it.")
    association: str = Field(
        default="NONE", description="GitHub's author_association; not a permission."
    )
    created_at: datetime = Field(description="When it was written.")
    body: str = Field(description="The words.")
    url: str = Field(default="", description="Its page.")
    is_ours: bool = Field(
        default=False, description="Whether an earlier run has said it; shortened."
    )
    skipped: int = Field(
        default=0, description="Comments just before this one that are not here, for length."
    )


class Task(LoggedModel):
    """Everything about the issue that the agent is told.

    Made in `resolver.github`, read by the prompts and the publisher.
    """

    trigger: Trigger = Field(description="What started the work.")
    title: str = Field(description="The issue's title.")
    body: str = Field(description="The issue's text, cleaned.")
    author: str = Field(default="", description="Login of who opened it.")
    association: str = Field(
        default="", description="The author's author_association; not a permission."
    )
    url: str = Field(default="", description="The issue's page.")
    form: Form | None = Field(
        default=None, description="The form that its text was written with, where one fits."
    )
    labels: tuple[str, ...] = Field(default=(), description="Names of its labels.")
    issue_type: str = Field(default="", description="Name of its type, where it has one.")
    milestone: str = Field(default="", description="Title of its milestone, where it has one.")
    assignees: tuple[str, ...] = Field(default=(), description="Logins of who is to do it.")
    comments: tuple[Comment, ...] = Field(default=(), description="The thread, oldest first.")
    left_out: tuple[str, ...] = Field(
        default=(), description="What was not used and why, in words for a person."
    )
    base_branch: str = Field(description="Branch the change is made against.")
    source: str = Field(description="URL or path to clone from; never holds a credential.")
    pull: PullRequestContext | None = Field(
        default=None, description="The pull request, where the work is on one; else None."
    )
    follows: OpenPullRequest | None = Field(
        default=None,
        description="Our open pull request for the issue, where the work adds to it; else None.",
    )
    references: tuple[Reference, ...] = Field(
        default=(), description="Issues and pull requests of the repository that belong to it."
    )
    pictures: tuple[Picture, ...] = Field(
        default=(), description="The pictures of description and comments."
    )
    checks: tuple[FailedCheck, ...] = Field(
        default=(), description="Checks that had failed on the commit that is worked on."
    )
    asked: tuple[AskedThread, ...] = Field(
        default=(), description="Conversations on its code that the request is about, in order."
    )


class RunLimits(LoggedModel):
    """Bounds of one run: iterations, US dollars, seconds."""

    max_iterations: int = Field(default=250, description="Replies of the model.")
    max_budget: float = Field(default=5.0, description="US dollars.")
    max_time: float = Field(default=3600.0, description="Seconds at work.")


class PlanItem(LoggedModel):
    """One line of the agent's plan."""

    title: str = Field(description="What is to be done.")
    status: Literal["todo", "doing", "done"] = Field(default="todo", description="How far it is.")


class CodePlace(LoggedModel):
    """Lines of the code that an agent points at, and what is known of them.

    Made by the agent that looks for places, read by who handed it the work and by the answer.
    """

    path: str = Field(description="From the repository's root.")
    start: int | None = Field(default=None, description="First line, from 1; None: the file.")
    end: int | None = Field(default=None, description="Last line, inclusive.")
    symbol: str = Field(default="", description="Name of what is there.")
    why: str = Field(default="", description="Why it matters, in the agent's words.")
    known: bool = Field(
        default=True, description="False when the base has no such file, or no such lines."
    )

    @property
    def where(self) -> str:
        """As `src/a.py:3-9`."""
        lines = "" if self.end in (None, self.start) else f"-{self.end}"
        return self.path if self.start is None else f"{self.path}:{self.start}{lines}"


class Tokens(LoggedModel):
    """Token counts: `input` includes `cached`."""

    input: int = Field(default=0, description="Tokens sent, cached ones included.")
    output: int = Field(default=0, description="Tokens received.")
    cached: int = Field(default=0, description="Of those sent, read from the provider's cache.")

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
        )


class McpTool(LoggedModel):
    """A tool of an MCP server, as it is offered to a model."""

    server: str = Field(description="Name of the server, as the settings have it.")
    name: str = Field(description="The tool's own name.")
    description: str = Field(default="", description="What the server says of it; bounded.")
    parameters: dict[str, Any] = Field(
        default_factory=dict, description="JSON schema of its arguments."
    )


class RequestedToolCall(LoggedModel):
    """A tool call as the model wrote it. `arguments` is the raw text, valid JSON or not."""

    id: str = Field(description="The provider's id of the call.")
    name: str = Field(description="Name of the tool.")
    arguments: str = Field(description="Raw text, valid JSON or not.")


class Completion(LoggedModel):
    """One reply of a model, as it came, with what it cost.

    Made in `resolver.llm`, kept whole in the event log so that a run can be replayed.
    """

    model: str = Field(description="Name of the model that answered.")
    text: str = Field(default="", description="The words.")
    reasoning: str = Field(default="", description="What the model shows of its reasoning.")
    thinking: tuple[dict[str, Any], ...] = Field(
        default=(),
        description="Signed blocks of its reasoning, sent back unchanged to the provider.",
    )
    tool_calls: tuple[RequestedToolCall, ...] = Field(
        default=(), description="The tool calls, in order."
    )
    finish_reason: str = Field(default="", description="Why the reply ended, as the provider says.")
    tokens: Tokens = Field(default=Tokens(), description="What was counted for it.")
    cost: float | None = Field(default=None, description="US dollars; None when no price is known.")
    latency: float = Field(
        default=0.0, description="Seconds from request to reply, retries included."
    )


class RunState(StrEnum):
    """States of a run. The last seven are ends; the two AWAITING ones are where nobody answers."""

    LOADING = "loading"
    RUNNING = "running"
    AWAITING_USER_INPUT = "awaiting_user_input"
    AWAITING_CONFIRMATION = "awaiting_confirmation"
    PAUSED = "paused"
    FINISHED = "finished"
    REJECTED = "rejected"
    ERROR = "error"
    STOPPED = "stopped"
    STUCK = "stuck"
    LIMIT = "limit"
    REFUSED = "refused"


Declined = Literal["", "cannot_reproduce", "already_fixed", "needs_answer", "not_wanted"]
"""Why an agent changes nothing, in a word. cannot_reproduce: what was told of was not seen.
already_fixed: the code does what was asked. needs_answer: only a person can decide. not_wanted: it
should not be done.
"""


class Outcome(FrozenModel):
    """How the agent's work ended. Made in `resolver.controller` from the event log."""

    state: RunState
    reason: str = Field(default="", description="One line for a person.")
    next_step: str = Field(default="", description="What a person can do about an error.")
    because: Cause = Field(default="", description="The error's cause, where people know it.")
    declined: Declined = Field(default="", description="Why the agent changed nothing on purpose.")
    limit: Literal["iterations", "budget", "time"] | None = None
    message: str = Field(default="", description="The agent's closing words: a claim, not proof.")
    cause: str = Field(default="", description="In the agent's words: what was wrong.")
    change: str = Field(default="", description="What it changed, and why.")
    verification: str = Field(default="", description="What it ran, and what that gave.")
    remaining: str = Field(default="", description="What it holds to be left.")
    places: tuple[CodePlace, ...] = Field(
        default=(), description="Where it says the code must change."
    )
    pull_request_title: str = Field(
        default="",
        description="Its title for the pull request that the change is added to, if any.",
    )
    task_completed: bool = False
    iterations: int = 0
    tokens: Tokens = Tokens()
    cost: float | None = Field(default=0.0, description="US dollars; None when a price is unknown.")
    seconds: float = 0.0


class FileChange(FrozenModel):
    """One changed path. `path` is quoted the way git prints it when it has odd bytes."""

    path: str
    status: Literal["added", "modified", "deleted", "type_changed"]
    old_mode: str
    new_mode: str
    additions: int | None = Field(default=None, description="None for binary content.")
    deletions: int | None = None


class Patch(FrozenModel):
    """The change, judged and committed on the host.

    Made in `resolver.git`; `tree` equals the tree hash in the sandbox.
    """

    base: str
    tree: str
    commit: str | None = Field(default=None, description="Our commit; None while only judged.")
    files: tuple[FileChange, ...] = ()
    diff: bytes = Field(default=b"", repr=False, description="`git diff --binary --full-index`.")

    @property
    def is_empty(self) -> bool:
        return not self.files


class ExportedChange(FrozenModel):
    """The change as it left the sandbox: git objects, not yet judged.

    Made where the sandbox ends, kept in the output folder until it is published.
    """

    commit: str
    tree: str
    bundle: Path | None = Field(default=None, description="None when nothing was changed.")
    left_out: tuple[str, ...] = Field(
        default=(), description="Paths that could not be taken; they are as they were before."
    )
    generated: tuple[str, ...] = Field(
        default=(), description="New caches and the like, which are never part of a change."
    )


class CheckedCommand(FrozenModel):
    """A command that was run and how it ended."""

    command: str
    exit_code: int | None
    event_id: int
    output_tail: str = ""
    verdict: Verdict | None = Field(default=None, description="Of a check; how it was seen to end.")
    stale: bool = Field(default=False, description="True when code was edited after it.")


class Evidence(FrozenModel):
    """What is known about the change. Made in `resolver.verification`, shown in the PR.

    independent: False means that the agent ran the commands itself in its own sandbox;
    such a result is labelled as the agent's, never as "verified".
    """

    independent: bool = False
    commands: tuple[CheckedCommand, ...] = ()


Unverified = Literal[
    "", "unfinished", "unchecked", "unclear", "failed", "unended", "hidden", "edited", "untouched"
]
"""What a change lacks to be shown as ready, "" for nothing: the agent does not call it complete; no
check was run; none was seen separately from other commands; one fails; one has not ended; its exit
code was not its own; code was edited after the last that passed; a conflict that it was to resolve
is as git left it."""

Kept = Literal["ours", "theirs", "deleted", "merged"]
"""What a file is whose conflict has ended: as the pull request has it, as its base has it, gone, or
something of both."""


class SettledConflict(FrozenModel):
    """How a conflict of a merge ended. untouched: the agent left the file as git did."""

    path: str
    kept: Kept
    untouched: bool = False


class PullRequest(FrozenModel):
    """A pull request, or only its text when there is no forge (number and url None)."""

    title: str
    body: str
    number: int | None = None
    url: str | None = None
    draft: bool = False
    notes: tuple[str, ...] = Field(
        default=(), exclude=True, description="What could not be done about it, for a person."
    )


How = Literal["new", "added", "unchanged", "pushed", "updated", "beside", "patch"]
"""What became of a change. new: a branch and a pull request of its own. added: a commit on those
of an earlier run. unchanged: they stay as they are. pushed: a commit on the branch of the pull
request that was worked on. updated: a merge of its base there. beside: a pull request of its own
for a change to another one. patch: nothing was pushed, the patch is shown.
"""


class Publication(FrozenModel):
    """What was made public. Made in `resolver.github`, written to outcome.json."""

    branch: str | None = None
    commit: str | None = None
    tree: str = Field(
        default="", description="Of an earlier run's: the tree that it has made itself."
    )
    pull_request: PullRequest | None = None
    comment_url: str | None = None
    review: PublishedReview | None = None
    how: How = Field(default="new", description="What became of it.")
    repository: str = Field(
        default="", description="Whose branch it is, where that is another repository."
    )
    commit_url: str = Field(default="", description="The commit's page.")
    patch: str = Field(
        default="",
        repr=False,
        description="The commit as `git am` takes it, where it could not be pushed.",
    )
    why: str = Field(default="", description="Why it is not where it was to be, for a person.")
    conflicts: tuple[SettledConflict, ...] = Field(
        default=(), description="How the conflicts of a merge ended that the agent was asked about."
    )
    repeated: bool = Field(default=False, description="True when an earlier run had done it all.")


class Continuation(FrozenModel):
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
    decision: ApprovalDecision | None = Field(
        default=None, description="What was said about the action that the earlier run waited for."
    )
    publishes: bool = Field(
        default=False, description="True when its finished change is to be made public, no more."
    )


JsonObject = dict[str, Any]
