"""The actions. Each executable action names its observation.

A new action also belongs into the union `Action` at the end of this module.
"""

from typing import Any, ClassVar, Literal

from pydantic import Field

from resolver.events import observations as o
from resolver.events.base import ActionBase, ObservationBase
from resolver.models.pull_request import ThreadAnswer
from resolver.models.run import CodePlace, DeclineReason, PlanItem


class SandboxAction(ActionBase):
    """An action that is executed in the sandbox.

    method: name of the method of the action execution server that executes the action. It gets the
        fields that the action's class declares as parameters. None for an action that is executed
        by a case of its own in `Runtime`.
    error_code: code of the ErrorObservation if it failed.
    changes_files: False if it can't change files, so that a sandbox is rebuilt without it.
    """

    observation: ClassVar[type[ObservationBase]]
    method: ClassVar[str | None] = None
    error_code: ClassVar[str] = "action"
    changes_files: ClassVar[bool] = True


class CmdRun(SandboxAction):
    """Run a command in the sandbox's bash session, or send input to the program that runs there."""

    kind: Literal["cmd_run"] = "cmd_run"
    observation = o.CmdOutput
    error_code = "command"
    command: str = Field(description="Shell text, or the input for the running program.")
    timeout: float | None = Field(default=None, description="Seconds; None for the default.")
    is_input: bool = Field(
        default=False, description="True to send `command` to the running program as input."
    )


class IPythonRunCell(SandboxAction):
    """Run a cell in the sandbox's IPython session."""

    kind: Literal["ipython_run_cell"] = "ipython_run_cell"
    observation = o.IPythonOutput
    error_code = "cell"
    code: str = Field(description="Python code; IPython magics are allowed.")
    timeout: float | None = Field(default=None, description="Seconds; None for the default.")


class FileRead(SandboxAction):
    """View a file or a directory."""

    kind: Literal["file_read"] = "file_read"
    observation = o.FileReadResult
    method = "view"
    error_code = "view"
    changes_files = False
    path: str = Field(description="Absolute path, or path from the repository's root.")
    view_range: tuple[int, int] | None = Field(
        default=None,
        description="First and last line, counted from 1; -1 as last line means the end of "
        "the file.",
    )


class FileWrite(SandboxAction):
    """Create a new file. An existing file is not overwritten."""

    kind: Literal["file_write"] = "file_write"
    observation = o.FileWriteResult
    error_code = "create"
    path: str = Field(description="Absolute path, or path from the repository's root.")
    content: str = Field(description="Content of the new file.")


class FileEdit(SandboxAction):
    """Change a file: replace a unique text, insert after a line, or undo the last edit."""

    kind: Literal["file_edit"] = "file_edit"
    observation = o.FileEditResult
    error_code = "edit"
    command: Literal["str_replace", "insert", "undo_edit"] = Field(description="Kind of change.")
    path: str = Field(description="Absolute path, or path from the repository's root.")
    old_str: str | None = Field(
        default=None,
        description="str_replace: the text to replace, which must be in the file exactly once.",
    )
    new_str: str | None = Field(default=None, description="str_replace and insert: the new text.")
    insert_line: int | None = Field(
        default=None,
        description="insert: line after which the text is inserted; 0 for the top of the file.",
    )


class McpCall(ActionBase):
    """Call a tool of an MCP server."""

    kind: Literal["mcp_call"] = "mcp_call"
    observation = o.McpResult
    is_external = True
    server: str = Field(description="Name of the server in the settings.")
    name: str = Field(description="Name of the tool.")
    arguments: dict[str, Any] = Field(
        default_factory=dict, description="Arguments, as required by the tool's schema."
    )


class CodeSearch(ActionBase):
    """Search the code index for definitions and for occurrences of words."""

    kind: Literal["code_search"] = "code_search"
    observation = o.CodeResult
    terms: tuple[str, ...] = Field(
        description="Search terms: each is a name, an id (PATH or PATH::NAME), PATH:LINE, or words."
    )
    path: str | None = Field(
        default=None, description="Restrict the search to this path and everything below it."
    )


class CodeExplore(ActionBase):
    """Walk the graph of the code index: what contains, calls or inherits what."""

    kind: Literal["code_explore"] = "code_explore"
    observation = o.CodeResult
    start: tuple[str, ...] = Field(description="Ids, paths or names to start from.")
    direction: Literal["upstream", "downstream", "both"] = Field(
        default="both",
        description="`upstream` finds what uses the start, `downstream` what the start uses.",
    )
    depth: int = Field(default=1, description="Maximum number of edges from the start.")
    edges: tuple[Literal["contains", "calls", "inherits"], ...] = Field(
        default=(), description="Kinds of edges to follow; empty for all."
    )


class Recall(ActionBase):
    """Load repository knowledge (instructions, skills), requested by the agent or by the run."""

    kind: Literal["recall"] = "recall"
    observation = o.RecallResult
    query: str = Field(description="What to load: the name of a skill, or search words.")
    why: str | None = Field(
        default=None,
        description="What triggered the run to load it; none if the agent requested it.",
    )


class Delegate(ActionBase):
    """Delegate a task to another agent."""

    kind: Literal["delegate"] = "delegate"
    observation = o.DelegateResult
    agent: str = Field(description="Name of the agent.")
    task: str = Field(description="Description of the task.")


class PlanUpdate(ActionBase):
    """Replace the agent's plan. The event always holds the whole plan."""

    kind: Literal["plan_update"] = "plan_update"
    observation = o.PlanUpdated
    items: tuple[PlanItem, ...] = Field(default=(), description="The whole plan, in order.")


class Message(ActionBase):
    """A message from the user or the agent."""

    kind: Literal["message"] = "message"
    content: str = Field(description="Text of the message, in Markdown.")
    wait_for_response: bool = Field(
        default=False, description="True if the agent can't continue without an answer."
    )


class Think(ActionBase):
    """A note of the agent to itself. It has no effect."""

    kind: Literal["think"] = "think"
    content: str = Field(description="The note.")


class Finish(ActionBase):
    """The agent declares its work finished."""

    kind: Literal["finish"] = "finish"
    message: str = Field(description="Closing message of the agent: a claim, not proof.")
    task_completed: bool = Field(
        default=True, description="True if the agent considers the task completed."
    )
    root_cause: str = Field(default="", description="The cause of the problem.")
    change: str = Field(default="", description="What was changed, and why that is right.")
    verification: str = Field(
        default="", description="What was run to verify the change, and with which result."
    )
    remaining: str = Field(
        default="", description="What remains: doubts, and what was not verified."
    )
    places: tuple[CodePlace, ...] = Field(
        default=(), description="Code locations that have to change, the most relevant first."
    )
    declined: DeclineReason | None = Field(
        default=None,
        description="Why the agent decided that nothing is to be changed, if it did.",
    )
    verdict: Literal["comment", "approve", "request_changes"] | None = Field(
        default=None,
        description="A reviewer's recommendation to the maintainers; none for other agents.",
    )
    threads: tuple[ThreadAnswer, ...] = Field(
        default=(), description="Answers to the review threads that the agent was asked about."
    )
    title: str = Field(
        default="", description="Title of the change, on one line; empty for the issue's."
    )
    pull_request_body: str = Field(
        default="",
        description="Text of the pull request, for which the repository's template was filled in.",
    )


class ReviewComment(ActionBase):
    """A comment on lines of a pull request's diff, for the review that the run ends with. A later
    comment on the same lines replaces it."""

    kind: Literal["review_comment"] = "review_comment"
    observation = o.ReviewCommentNoted
    path: str = Field(description="The file, as a path from the repository's root.")
    line: int = Field(description="Last line of the commented range, counted from 1.")
    start_line: int | None = Field(
        default=None, description="First line of the range, if it has several lines."
    )
    side: Literal["LEFT", "RIGHT"] = Field(
        default="RIGHT",
        description="`LEFT` for lines of the old version of the file, `RIGHT` for lines of "
        "the new one.",
    )
    body: str = Field(description="The comment, in Markdown.")
    suggestion: str | None = Field(
        default=None,
        description="Complete new text for the lines; None if the comment proposes no text.",
    )
    severity: Literal["high", "medium", "low"] = Field(
        default="medium", description="Severity, as judged by the agent."
    )


class Reject(ActionBase):
    """The agent declines the task."""

    kind: Literal["reject"] = "reject"
    reason: str = Field(description="The reason, for people.")


class CondensationRequest(ActionBase):
    """The conversation exceeds the model's context: condense it before the next step."""

    kind: Literal["condensation_request"] = "condensation_request"
    tokens: int | None = Field(
        default=None, description="Number of tokens of the request, if it is known."
    )
    max_tokens: int | None = Field(
        default=None, description="Number of tokens that the model's endpoint accepts, if known."
    )


class Invalid(ActionBase):
    """A reply of the model that could not be read as an action."""

    kind: Literal["invalid"] = "invalid"
    reason: str = Field(description="What was wrong, and what the correct form is.")


Action = (
    CmdRun
    | IPythonRunCell
    | FileRead
    | FileWrite
    | FileEdit
    | McpCall
    | CodeSearch
    | CodeExplore
    | Recall
    | Delegate
    | PlanUpdate
    | ReviewComment
    | Message
    | Think
    | Finish
    | Reject
    | CondensationRequest
    | Invalid
)
"""The closed union of the actions."""
