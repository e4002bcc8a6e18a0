"""The actions. Each runnable one has exactly one observation (see RUNNABLE in log.py)."""

from typing import Any, Literal

from pydantic import Field

from resolver.events.base import ActionBase
from resolver.models.pull_request import ThreadAnswer
from resolver.models.run import CodePlace, Declined, PlanItem, RunState


class CmdRun(ActionBase):
    """Run a command in the sandbox's one live bash, or send input to the running one."""

    kind: Literal["cmd_run"] = "cmd_run"
    command: str = Field(description="Shell text, or the input for the running program.")
    timeout: float | None = Field(default=None, description="Seconds; None means the default.")
    is_input: bool = Field(default=False, description="Send to the running program instead.")


class IPythonRunCell(ActionBase):
    """Run a cell in the sandbox's IPython session."""

    kind: Literal["ipython_run_cell"] = "ipython_run_cell"
    code: str = Field(description="Python, with IPython's magics.")
    timeout: float | None = Field(default=None, description="Seconds; None means the default.")


class FileRead(ActionBase):
    """View a file or a directory."""

    kind: Literal["file_read"] = "file_read"
    path: str = Field(description="From the repository's root, or absolute.")
    view_range: tuple[int, int] | None = Field(
        default=None, description="First and last line, from 1; -1 as last means to the end."
    )


class FileWrite(ActionBase):
    """Create a new file. An existing one is not overwritten."""

    kind: Literal["file_write"] = "file_write"
    path: str = Field(description="From the repository's root, or absolute.")
    content: str = Field(description="The whole new file.")


class FileEdit(ActionBase):
    """Change a file: replace a unique text, insert after a line, or undo the last edit."""

    kind: Literal["file_edit"] = "file_edit"
    command: Literal["str_replace", "insert", "undo_edit"] = Field(description="Which change.")
    path: str = Field(description="From the repository's root, or absolute.")
    old_str: str | None = Field(
        default=None, description="str_replace: text that is in the file exactly once."
    )
    new_str: str | None = Field(
        default=None, description="str_replace and insert: the text put in."
    )
    insert_line: int | None = Field(
        default=None, description="Insert after this line; 0 is the top."
    )


class BrowseURL(ActionBase):
    """Open a page."""

    kind: Literal["browse_url"] = "browse_url"
    url: str = Field(description="Where to.")


class BrowseInteractive(ActionBase):
    """Drive the page with BrowserGym-style code."""

    kind: Literal["browse_interactive"] = "browse_interactive"
    code: str = Field(description="Calls such as click('12'), one a line.")


class McpCall(ActionBase):
    """Call a tool of an MCP server."""

    kind: Literal["mcp_call"] = "mcp_call"
    server: str = Field(description="Name of the server, as the settings have it.")
    name: str = Field(description="Name of the tool.")
    arguments: dict[str, Any] = Field(
        default_factory=dict, description="As the tool's own schema wants them."
    )


class CodeSearch(ActionBase):
    """Search the index of the code for what is defined, and where words stand."""

    kind: Literal["code_search"] = "code_search"
    terms: tuple[str, ...] = Field(
        description="Each a name, an id (PATH or PATH::NAME), PATH:LINE, or words."
    )
    path: str = Field(default="", description="Only what lies below this path.")


class CodeExplore(ActionBase):
    """Walk the index's graph: what contains, imports, calls or inherits what."""

    kind: Literal["code_explore"] = "code_explore"
    start: tuple[str, ...] = Field(description="Ids, paths or names to start from.")
    direction: Literal["upstream", "downstream", "both"] = Field(
        default="both", description="Upstream is what uses the start, downstream what it uses."
    )
    depth: int = Field(default=1, description="Most edges from the start.")
    edges: tuple[Literal["contains", "imports", "calls", "inherits"], ...] = Field(
        default=(), description="Kinds of edges that are followed; none means all."
    )


class Recall(ActionBase):
    """Load repository knowledge (instructions, skills) into the conversation: the agent asks for
    it, or the run itself does, for a reason."""

    kind: Literal["recall"] = "recall"
    query: str = Field(description="What to look for: the name of a skill, or words.")
    why: str = Field(default="", description="What made the run load it; empty for the agent's.")


class Remember(ActionBase):
    """Keep a note for later runs on this repository."""

    kind: Literal["remember"] = "remember"
    note: str = Field(description="The note: one fact, in a sentence or two.")


class Delegate(ActionBase):
    """Hand a task to another agent."""

    kind: Literal["delegate"] = "delegate"
    agent: str = Field(description="Name of the agent.")
    task: str = Field(description="What it is to do, in words.")


class PlanUpdate(ActionBase):
    """The agent's list of what is to be done, whole, each time it changes."""

    kind: Literal["plan_update"] = "plan_update"
    items: tuple[PlanItem, ...] = Field(default=(), description="The whole plan, in order.")


class Message(ActionBase):
    """Words from the user or the agent."""

    kind: Literal["message"] = "message"
    content: str = Field(description="The words, in Markdown.")
    wait_for_response: bool = Field(
        default=False, description="True when the agent can't go on without an answer."
    )


class Think(ActionBase):
    """A note to self; changes nothing."""

    kind: Literal["think"] = "think"
    content: str = Field(description="The note.")


class Finish(ActionBase):
    """The agent says that it is done."""

    kind: Literal["finish"] = "finish"
    message: str = Field(description="Closing words: a claim, not proof.")
    task_completed: bool = Field(
        default=True, description="Whether the agent holds the task to be done."
    )
    root_cause: str = Field(default="", description="What was wrong.")
    change: str = Field(default="", description="What was changed, and why that is right.")
    verification: str = Field(default="", description="What was run, and what it gave.")
    remaining: str = Field(default="", description="What is left: doubts, what was not checked.")
    places: tuple[CodePlace, ...] = Field(
        default=(), description="Where the code has to change, the most telling first."
    )
    declined: Declined = Field(
        default="", description="Why the agent holds that nothing is to be changed; else empty."
    )
    verdict: Literal["", "comment", "approve", "request_changes"] = Field(
        default="", description="What a reviewer would do as a maintainer; empty for other agents."
    )
    threads: tuple[ThreadAnswer, ...] = Field(
        default=(), description="What it says to the conversations that it was asked about."
    )
    pull_request_title: str = Field(
        default="", description="New title of the pull request that the change is added to, if any."
    )


class ReviewComment(ActionBase):
    """A comment on lines of a pull request's diff, for the review that the run ends with. A later
    one on the same lines takes its place."""

    kind: Literal["review_comment"] = "review_comment"
    path: str = Field(description="The file, from the repository's root.")
    line: int = Field(description="The last line it is about, from 1.")
    start_line: int | None = Field(default=None, description="The first one, of several.")
    side: Literal["LEFT", "RIGHT"] = Field(
        default="RIGHT", description="LEFT counts the lines of the file before, RIGHT after."
    )
    body: str = Field(description="The comment, in markdown.")
    suggestion: str | None = Field(
        default=None, description="What the lines should be instead, whole; None for no text."
    )
    severity: Literal["high", "medium", "low"] = Field(
        default="medium", description="How much it matters, as the agent holds it."
    )


class Reject(ActionBase):
    """The agent says that it will not do this."""

    kind: Literal["reject"] = "reject"
    reason: str = Field(description="Why, for a person.")


class ChangeAgentState(ActionBase):
    """Ask for another state: pause, resume, stop."""

    kind: Literal["change_agent_state"] = "change_agent_state"
    state: RunState = Field(description="The state that is wanted.")
    reason: str = Field(default="", description="Why, for a person.")


class CondensationRequest(ActionBase):
    """The conversation no longer fits: forget something before the next step."""

    kind: Literal["condensation_request"] = "condensation_request"


class Invalid(ActionBase):
    """A reply of the model that could not be read as an action; `reason` teaches the right form."""

    kind: Literal["invalid"] = "invalid"
    reason: str = Field(description="What was wrong and what the right form is.")
