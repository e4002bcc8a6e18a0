"""The observations: what came of an action."""

from typing import Any, Literal

from pydantic import Field

from resolver.events.base import ObservationBase
from resolver.model import RunState


class CmdOutput(ObservationBase):
    """Answer to CmdRun. `content` holds head and tail when the output was long."""

    kind: Literal["cmd_output"] = "cmd_output"
    exit_code: int | None = Field(default=None, description="None while the command still runs.")
    cwd: str = ""
    timed_out: bool = False
    omitted: int = Field(default=0, description="Bytes cut out of the middle of `content`.")
    output_file: str | None = Field(default=None, description="Sandbox file with the whole output.")
    seconds: float = 0.0


class IPythonOutput(ObservationBase):
    """Answer to IPythonRunCell."""

    kind: Literal["ipython_output"] = "ipython_output"
    error: bool = False
    images: tuple[str, ...] = Field(default=(), description="data: URLs of plots.")


class FileReadResult(ObservationBase):
    """Answer to FileRead."""

    kind: Literal["file_read_result"] = "file_read_result"
    path: str


class FileWriteResult(ObservationBase):
    """Answer to FileWrite."""

    kind: Literal["file_write_result"] = "file_write_result"
    path: str
    new_hash: str = Field(default="", description="SHA-256 of the file after.")


class FileEditResult(ObservationBase):
    """Answer to FileEdit: a hunk and two hashes, never two copies of the file."""

    kind: Literal["file_edit_result"] = "file_edit_result"
    path: str
    diff: str = ""
    old_hash: str = ""
    new_hash: str = ""


class BrowserOutput(ObservationBase):
    """Answer to BrowseURL and BrowseInteractive."""

    kind: Literal["browser_output"] = "browser_output"
    url: str = ""
    error: bool = False
    screenshot: str | None = Field(default=None, description="data: URL.")


class McpResult(ObservationBase):
    """Answer to McpCall."""

    kind: Literal["mcp_result"] = "mcp_result"
    error: bool = False
    structured: dict[str, Any] | None = None


class RecallResult(ObservationBase):
    """Answer to Recall."""

    kind: Literal["recall_result"] = "recall_result"
    sources: tuple[str, ...] = Field(default=(), description="Repository paths the text came from.")


class DelegateResult(ObservationBase):
    """Answer to Delegate."""

    kind: Literal["delegate_result"] = "delegate_result"
    state: RunState = RunState.FINISHED
    outputs: dict[str, Any] = Field(default_factory=dict)


class PlanUpdated(ObservationBase):
    """Answer to PlanUpdate."""

    kind: Literal["plan_updated"] = "plan_updated"


class ErrorObservation(ObservationBase):
    """The action could not be done; `content` says why and what to do instead."""

    kind: Literal["error"] = "error"
    code: str = Field(default="", description="Short machine word, like 'edit' or 'sandbox_lost'.")


class AgentStateChanged(ObservationBase):
    """The run moved to another state."""

    kind: Literal["agent_state_changed"] = "agent_state_changed"
    state: RunState
    reason: str = ""


class Null(ObservationBase):
    """Nothing to say: the answer to Think and Message."""

    kind: Literal["null"] = "null"
