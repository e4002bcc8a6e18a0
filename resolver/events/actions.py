"""The actions. Each runnable one has exactly one observation (see RUNNABLE in log.py)."""

from typing import Any, Literal

from pydantic import Field

from resolver.events.base import ActionBase
from resolver.model import PlanItem, RunState


class CmdRun(ActionBase):
    """Run a command in the sandbox's one live bash, or send input to the running one."""

    kind: Literal["cmd_run"] = "cmd_run"
    command: str
    timeout: float | None = Field(default=None, description="Seconds; None means the default.")
    is_input: bool = Field(default=False, description="Send to the running program instead.")


class IPythonRunCell(ActionBase):
    """Run a cell in the sandbox's IPython session."""

    kind: Literal["ipython_run_cell"] = "ipython_run_cell"
    code: str
    timeout: float | None = None


class FileRead(ActionBase):
    """View a file or a directory."""

    kind: Literal["file_read"] = "file_read"
    path: str
    view_range: tuple[int, int] | None = Field(
        default=None, description="First and last line, from 1; -1 as last means to the end."
    )


class FileWrite(ActionBase):
    """Create a new file. An existing one is not overwritten."""

    kind: Literal["file_write"] = "file_write"
    path: str
    content: str


class FileEdit(ActionBase):
    """Change a file: replace a unique text, insert after a line, or undo the last edit."""

    kind: Literal["file_edit"] = "file_edit"
    command: Literal["str_replace", "insert", "undo_edit"]
    path: str
    old_str: str | None = None
    new_str: str | None = None
    insert_line: int | None = Field(
        default=None, description="Insert after this line; 0 is the top."
    )


class BrowseURL(ActionBase):
    """Open a page."""

    kind: Literal["browse_url"] = "browse_url"
    url: str


class BrowseInteractive(ActionBase):
    """Drive the page with BrowserGym-style code."""

    kind: Literal["browse_interactive"] = "browse_interactive"
    code: str


class McpCall(ActionBase):
    """Call a tool of an MCP server."""

    kind: Literal["mcp_call"] = "mcp_call"
    server: str
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class Recall(ActionBase):
    """Load repository knowledge (instructions, skills) into the conversation."""

    kind: Literal["recall"] = "recall"
    query: str


class Delegate(ActionBase):
    """Hand a task to another agent."""

    kind: Literal["delegate"] = "delegate"
    agent: str
    task: str


class PlanUpdate(ActionBase):
    """The agent's list of what is to be done, whole, each time it changes."""

    kind: Literal["plan_update"] = "plan_update"
    items: tuple[PlanItem, ...] = ()


class Message(ActionBase):
    """Words from the user or the agent."""

    kind: Literal["message"] = "message"
    content: str
    wait_for_response: bool = False


class Think(ActionBase):
    """A note to self; changes nothing."""

    kind: Literal["think"] = "think"
    content: str


class Finish(ActionBase):
    """The agent says that it is done."""

    kind: Literal["finish"] = "finish"
    message: str
    task_completed: bool = True


class Reject(ActionBase):
    """The agent says that it will not do this."""

    kind: Literal["reject"] = "reject"
    reason: str


class ChangeAgentState(ActionBase):
    """Ask for another state: pause, resume, stop."""

    kind: Literal["change_agent_state"] = "change_agent_state"
    state: RunState
    reason: str = ""


class CondensationRequest(ActionBase):
    """The conversation no longer fits: forget something before the next step."""

    kind: Literal["condensation_request"] = "condensation_request"


class Invalid(ActionBase):
    """A reply of the model that could not be read as an action; `reason` teaches the right form."""

    kind: Literal["invalid"] = "invalid"
    reason: str
