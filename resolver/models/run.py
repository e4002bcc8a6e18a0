"""Models that the stages of a run pass on to each other. Data only.

In the order of their use: Trigger (`resolver.github.events`), Task (`resolver.github.context`),
RunLimits (settings), Completion (`resolver.llm`), Outcome (`resolver.controller`), ExportedChange
(`resolver.runs.execute`), Patch (`resolver.git`) and Publication (`resolver.publishing`). The parts
of a Trigger are imported from here, too: their module is apart only for its size.
"""

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from resolver.errors import Cause
from resolver.models.base import FrozenModel, LoggedModel
from resolver.models.issue_context import FailedCheck, Picture, Reference
from resolver.models.pull_request import (
    OpenPullRequest,
    PublishedReview,
    PullRequestContext,
    ThreadRequest,
)
from resolver.models.trigger import Actor as Actor
from resolver.models.trigger import Command as Command
from resolver.models.trigger import Extension as Extension
from resolver.models.trigger import Snapshot as Snapshot
from resolver.models.trigger import Trigger as Trigger
from resolver.models.trigger import TriggerKind as TriggerKind


class Comment(LoggedModel):
    """A comment of the conversation, cleaned of hidden text."""

    id: int = Field(description="GitHub's id of the comment.")
    author: str = Field(description="Login of its author.")
    association: str = Field(
        default="NONE", description="GitHub's author_association; not a permission."
    )
    created_at: datetime = Field(description="When it was written.")
    body: str = Field(description="Its text.")
    url: str = Field(default="", description="Address of its page.")
    is_ours: bool = Field(
        default=False,
        description="True when an earlier run of Resolver wrote it; its text is shortened.",
    )
    skipped: int = Field(
        default=0,
        description="Number of comments directly before this one that were dropped for length.",
    )


class Task(LoggedModel):
    """Everything about the issue that the agent gets to see.

    Created by `resolver.github.context`, used by the prompts and by the publisher.
    """

    trigger: Trigger = Field(description="The request that started the work.")
    title: str = Field(description="Title of the issue.")
    body: str = Field(description="Text of the issue, cleaned.")
    author: str = Field(default="", description="Login of the person who opened the issue.")
    association: str = Field(
        default="", description="The author's author_association; not a permission."
    )
    url: str = Field(default="", description="Address of the issue's page.")
    labels: tuple[str, ...] = Field(default=(), description="Names of the issue's labels.")
    milestone: str = Field(
        default="", description="Title of the issue's milestone, when it has one."
    )
    assignees: tuple[str, ...] = Field(default=(), description="Logins of the issue's assignees.")
    comments: tuple[Comment, ...] = Field(
        default=(), description="Comments of the conversation, oldest first."
    )
    left_out: tuple[str, ...] = Field(
        default=(), description="What was not used and why, for a person."
    )
    base_branch: str = Field(description="Branch that the change is made against.")
    source: str = Field(description="Address or path to clone from; never contains a credential.")
    pull: PullRequestContext | None = Field(
        default=None, description="The pull request, when the work is on one; else None."
    )
    follows: OpenPullRequest | None = Field(
        default=None,
        description="Resolver's open pull request for the issue, when the work is added to it; "
        "else None.",
    )
    references: tuple[Reference, ...] = Field(
        default=(), description="Related issues and pull requests of the repository."
    )
    pictures: tuple[Picture, ...] = Field(
        default=(), description="Pictures in the issue's text and in the comments."
    )
    checks: tuple[FailedCheck, ...] = Field(
        default=(), description="Checks that failed on the commit that is worked on."
    )
    asked: tuple[ThreadRequest, ...] = Field(
        default=(), description="Review threads that the request asks about, in order."
    )


class RunLimits(LoggedModel):
    """Limits of one run."""

    max_iterations: int = Field(default=250, description="Maximum number of replies of the model.")
    max_budget: float = Field(default=5.0, description="Maximum cost in US dollars.")
    max_time: float = Field(default=3600.0, description="Maximum working time in seconds.")


class PlanItem(LoggedModel):
    """One line of the agent's plan."""

    title: str = Field(description="What is to be done.")
    status: Literal["todo", "doing", "done"] = Field(default="todo", description="How far it is.")


class CodePlace(LoggedModel):
    """Lines of code that an agent points at.

    Created by an agent that locates code; used by the agent that delegated the work to it, and in
    the answer to the user.
    """

    path: str = Field(description="Path from the repository's root.")
    start: int | None = Field(
        default=None, description="First line, counted from 1; None for the whole file."
    )
    end: int | None = Field(default=None, description="Last line, inclusive.")
    symbol: str = Field(default="", description="Name of the definition at this place.")
    why: str = Field(default="", description="Why the place matters, in the agent's words.")
    known: bool = Field(
        default=True, description="False when the base commit has no such file or no such lines."
    )

    @property
    def where(self) -> str:
        """The place as text, such as `src/a.py:3-9`."""
        lines = "" if self.end in (None, self.start) else f"-{self.end}"
        return self.path if self.start is None else f"{self.path}:{self.start}{lines}"


class Tokens(LoggedModel):
    """Token counts of a reply. `input` includes `cached`."""

    input: int = Field(default=0, description="Tokens sent, including cached ones.")
    output: int = Field(default=0, description="Tokens received.")
    cached: int = Field(
        default=0, description="Tokens of the input that were read from the provider's cache."
    )

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
        )


class McpTool(LoggedModel):
    """A tool of an MCP server, as offered to a model."""

    server: str = Field(description="Name of the server in the settings.")
    name: str = Field(description="The tool's own name.")
    description: str = Field(
        default="", description="The server's description of the tool, truncated."
    )
    parameters: dict[str, Any] = Field(
        default_factory=dict, description="JSON schema of the tool's arguments."
    )


class RequestedToolCall(LoggedModel):
    """A tool call as the model wrote it."""

    id: str = Field(description="The provider's id of the call.")
    name: str = Field(description="Name of the tool.")
    arguments: str = Field(description="The arguments as raw text, which may be invalid JSON.")


REASONING_TEXT = "reasoning_text"
"""Type of the block of `Completion.own_reasoning` that holds unsigned reasoning."""


class Completion(LoggedModel):
    """One reply of a model, unchanged, with its cost.

    Created by `resolver.llm` and stored in full in the event log, so that a run can be replayed.
    """

    model: str = Field(description="Name of the model that answered.")
    text: str = Field(default="", description="Text of the reply.")
    reasoning: str = Field(default="", description="What the model shows of its reasoning.")
    thinking: tuple[dict[str, Any], ...] = Field(
        default=(),
        description="Signed blocks of its reasoning, which are sent back to the provider "
        "unchanged.",
    )
    tool_calls: tuple[RequestedToolCall, ...] = Field(
        default=(), description="The tool calls, in order."
    )
    finish_reason: str = Field(
        default="", description="Why the reply ended, as reported by the provider."
    )
    tokens: Tokens = Field(default=Tokens(), description="Token counts of the reply.")
    cost: float | None = Field(
        default=None, description="Cost in US dollars; None when no price is known."
    )
    is_cost_estimated: bool = Field(
        default=False,
        description="True if the provider reported no usable token counts, so that the cost is "
        "estimated from the length of the request and the reply.",
    )
    latency: float = Field(
        default=0.0, description="Seconds from the request to the reply, including retries."
    )

    @property
    def own_reasoning(self) -> tuple[dict[str, Any], ...]:
        """The reasoning as blocks to send back: the signed ones, or the text with its model.

        Some thinking models refuse a conversation whose calls come without their reasoning.
        """
        if self.thinking or not self.reasoning:
            return self.thinking
        return ({"type": REASONING_TEXT, "text": self.reasoning, "model": self.model},)


class RunState(StrEnum):
    """States of a run.

    The last seven are final. A run also ends in one of the two AWAITING states when nobody answers.
    """

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


ACTIVE_STATES = frozenset({RunState.LOADING, RunState.RUNNING, RunState.PAUSED})
"""States that no run ends in."""

AWAITING_STATES = frozenset({RunState.AWAITING_USER_INPUT, RunState.AWAITING_CONFIRMATION})
"""States in which a run waits for a person. They end the process too if nobody answers."""

FINAL_STATES = frozenset(RunState) - ACTIVE_STATES - AWAITING_STATES
"""States that end a run."""


DeclineReason = Literal[
    "answered", "cannot_reproduce", "already_fixed", "needs_answer", "not_wanted"
]
"""Why an agent changed nothing on purpose.

- answered: a question was asked, and the message answers it.
- cannot_reproduce: the reported behaviour was not observed.
- already_fixed: the code already does what was asked.
- needs_answer: only a person can decide.
- not_wanted: the change should not be made.
"""


class Outcome(FrozenModel):
    """The result of the agent's work. Derived from the event log by `resolver.controller`."""

    state: RunState
    reason: str | None = Field(default=None, description="Why it ended, one line for a person.")
    next_step: str | None = Field(default=None, description="What a person can do about an error.")
    because: Cause | None = Field(
        default=None, description="Cause of the error, when it is one that a person can fix."
    )
    declined: DeclineReason | None = Field(
        default=None, description="Why the agent changed nothing on purpose."
    )
    limit: Literal["iterations", "budget", "time"] | None = None
    message: str = Field(default="", description="The agent's closing message: a claim, not proof.")
    cause: str = Field(default="", description="What was wrong, in the agent's words.")
    change: str = Field(default="", description="What the agent changed and why, in its words.")
    verification: str = Field(
        default="", description="What the agent ran and with what result, in its words."
    )
    remaining: str = Field(default="", description="What is left to do, in the agent's opinion.")
    places: tuple[CodePlace, ...] = Field(
        default=(), description="Where the code must change, in the agent's opinion."
    )
    title: str = Field(default="", description="The agent's title for the change, if any.")
    pull_request_body: str = Field(
        default="", description="The repository's template as the agent filled it in, if it did."
    )
    task_completed: bool = False
    iterations: int = 0
    tokens: Tokens = Tokens()
    cost: float | None = Field(
        default=0.0, description="Cost in US dollars; None when a price is unknown."
    )
    seconds: float = 0.0


class FileChange(FrozenModel):
    """One changed path. A path with unusual bytes is quoted as a Python literal."""

    path: str = Field(description="Path from the repository's root.")
    status: Literal["added", "modified", "deleted", "type_changed"] = Field(
        description="`type_changed`: a file became a link, or the reverse."
    )
    old_mode: str = Field(description="git's mode before, such as 100644; 000000 if it is new.")
    new_mode: str = Field(description="git's mode after; 000000 if it was deleted.")
    additions: int | None = Field(
        default=None, description="Number of added lines; None for binary content."
    )
    deletions: int | None = Field(
        default=None, description="Number of deleted lines; None for binary content."
    )


class Patch(FrozenModel):
    """A change, checked by the policy and committed on the host.

    Created by `resolver.git`. `tree` equals the tree hash in the sandbox.
    """

    base: str
    tree: str
    commit: str | None = Field(
        default=None,
        description="Id of the commit on the host; None while the change is only checked.",
    )
    files: tuple[FileChange, ...] = ()
    diff: bytes = Field(
        default=b"", repr=False, description="Output of `git diff --binary --full-index`."
    )

    @property
    def is_empty(self) -> bool:
        """True when no file was changed."""
        return not self.files


class ExportedChange(FrozenModel):
    """A change as exported from the sandbox: git objects that are not yet checked.

    Created when the sandbox ends, and kept in the output directory until it is published.
    """

    commit: str
    tree: str
    bundle: Path | None = Field(
        default=None, description="Path of the git bundle; None when nothing was changed."
    )
    left_out: tuple[str, ...] = Field(
        default=(), description="Paths that could not be exported; they stay as they were."
    )
    generated: tuple[str, ...] = Field(
        default=(),
        description="New caches and other generated files, which are never part of a change.",
    )


class CheckedCommand(FrozenModel):
    """A command that was executed, and how it ended."""

    command: str
    exit_code: int | None
    event_id: int
    output_tail: str = ""


UnverifiedReason = Literal["unfinished", "unedited_conflict", "not_verified"]
"""The reason why a change is not presented as ready.

- unfinished: the agent does not call the work complete.
- unedited_conflict: the agent left a merge conflict that it was to resolve as git wrote it.
- not_verified: Resolver's own executions of the project's checks do not speak for it, or there were
  none.
"""

ConflictResolution = Literal["ours", "theirs", "deleted", "merged"]
"""The state of a file after its merge conflict was resolved.

- ours: the pull request's version.
- theirs: the version of the base branch.
- deleted: the file was deleted.
- merged: a combination of both versions.
"""


class ResolvedConflict(FrozenModel):
    """The resolution of a merge conflict.

    `untouched` is True when the agent left the file as git wrote it.
    """

    path: str
    kept: ConflictResolution
    untouched: bool = False


class PullRequest(FrozenModel):
    """A pull request, or only its text when there is none on GitHub.

    In the latter case, as for a local checkout, `number` and `url` are None.
    """

    title: str = Field(description="Its title.")
    body: str = Field(description="Its text in markdown.")
    number: int | None = Field(default=None, description="Its number on GitHub.")
    url: str | None = Field(default=None, description="Address of its page.")
    draft: bool = Field(default=False, description="True if it was opened as a draft.")
    base_commit: str = Field(
        default="", exclude=True, description="The commit of its base branch, if GitHub named it."
    )
    notes: tuple[str, ...] = Field(
        default=(),
        exclude=True,
        description="What could not be done for the pull request, for a person.",
    )


PublicationMethod = Literal["new", "added", "unchanged", "pushed", "updated", "separate", "patch"]
"""The way in which a change was published.

- new: on a new branch, with a new pull request.
- added: as a commit on the branch of an earlier run's pull request.
- unchanged: the branch and the pull request of an earlier run stay as they are.
- pushed: as a commit on the branch of the pull request that was worked on.
- updated: as a merge of the base branch into the branch of that pull request.
- separate: in a separate pull request, for a change to another one.
- patch: nothing was pushed; the patch is shown in a comment.
"""


class Publication(FrozenModel):
    """The result of publishing. Written to outcome.json."""

    branch: str | None = None
    commit: str | None = None
    tree: str | None = Field(
        default=None,
        description="Tree of the change that an earlier run made itself, when this describes an "
        "earlier run.",
    )
    pull_request: PullRequest | None = None
    comment_url: str | None = None
    review: PublishedReview | None = None
    how: PublicationMethod = Field(default="new", description="How the change was published.")
    repository: str | None = Field(
        default=None,
        description="OWNER/NAME of the branch's repository, when it is another one (a fork).",
    )
    commit_url: str | None = Field(default=None, description="Address of the commit's page.")
    patch: str | None = Field(
        default=None,
        repr=False,
        description="The commit in the format of `git am`, when it could not be pushed.",
    )
    why: str | None = Field(
        default=None,
        description="Why the change was not published where it was meant to be, for a person.",
    )
    next_step: str | None = Field(
        default=None,
        description="What a person can do so that a patch that was not pushed can be, if "
        "something can be done about it.",
    )
    conflicts: tuple[ResolvedConflict, ...] = Field(
        default=(),
        description="How the merge conflicts were resolved that the agent worked on.",
    )
    repeated: bool = Field(
        default=False, description="True when an earlier run had already published everything."
    )


class Continuation(FrozenModel):
    """An earlier run that this one continues. The log of this run begins with that run's log.

    Created by the entry points, used by the pipeline.
    """

    run: str = Field(description="Id of the earlier run.")
    message: str = Field(default="", description="What the person wrote along with the command.")
    by: str | None = None
    extension: Extension = Extension()
    publication: Publication = Field(
        default=Publication(), description="What the earlier run published, to which this run adds."
    )
    publishes: bool = Field(
        default=False,
        description="True when the run only publishes the finished change of the earlier one.",
    )
