"""The observations: what came of an action."""

from typing import Any, Literal

from pydantic import Field

from resolver.errors import Cause
from resolver.events.base import ObservationBase
from resolver.models.run import RunState


class CmdOutput(ObservationBase):
    """Answer to CmdRun. `content` holds head and tail when the output was long."""

    kind: Literal["cmd_output"] = "cmd_output"
    exit_code: int | None = Field(default=None, description="None while the command still runs.")
    cwd: str = Field(default="", description="The shell's folder afterwards.")
    timed_out: bool = Field(
        default=False, description="True when it did not end in its time; it may still run."
    )
    omitted: int = Field(default=0, description="Bytes cut out of the middle of `content`.")
    output_file: str | None = Field(default=None, description="Sandbox file with the whole output.")
    seconds: float = Field(default=0.0, description="How long it took.")


class IPythonOutput(ObservationBase):
    """Answer to IPythonRunCell."""

    kind: Literal["ipython_output"] = "ipython_output"
    error: bool = Field(default=False, description="True when the cell raised.")
    images: tuple[str, ...] = Field(default=(), description="data: URLs of plots.")


class FileReadResult(ObservationBase):
    """Answer to FileRead."""

    kind: Literal["file_read_result"] = "file_read_result"
    path: str = Field(description="What was viewed.")
    images: tuple[str, ...] = Field(default=(), description="data: URL, where it is a picture.")


class FileWriteResult(ObservationBase):
    """Answer to FileWrite."""

    kind: Literal["file_write_result"] = "file_write_result"
    path: str = Field(description="What was written.")
    new_hash: str = Field(default="", description="SHA-256 of the file after.")


class FileEditResult(ObservationBase):
    """Answer to FileEdit: a hunk and two hashes, never two copies of the file."""

    kind: Literal["file_edit_result"] = "file_edit_result"
    path: str = Field(description="What was changed.")
    diff: str = Field(default="", description="The hunk, as in a unified diff.")
    old_hash: str = Field(default="", description="SHA-256 of the file before.")
    new_hash: str = Field(default="", description="SHA-256 of the file after.")


class BrowserOutput(ObservationBase):
    """Answer to BrowseURL and BrowseInteractive."""

    kind: Literal["browser_output"] = "browser_output"
    url: str = Field(default="", description="Where the page is now.")
    error: bool = Field(default=False, description="True when the page could not be driven.")
    screenshot: str | None = Field(default=None, description="data: URL.")


class McpResult(ObservationBase):
    """Answer to McpCall."""

    kind: Literal["mcp_result"] = "mcp_result"
    error: bool = Field(default=False, description="True when the tool says that it failed.")
    structured: dict[str, Any] | None = Field(
        default=None, description="The result as data, where the tool gives it."
    )
    images: tuple[str, ...] = Field(default=(), description="data: URLs of its pictures.")
    output_file: str | None = Field(
        default=None, description="Sandbox file with the whole text, when `content` is cut."
    )


class CodeResult(ObservationBase):
    """Answer to CodeSearch and CodeExplore, which the host gives and not the sandbox."""

    kind: Literal["code_result"] = "code_result"
    commit: str = Field(description="The commit that the index is of; later edits are not in it.")
    left_out: int = Field(default=0, description="Sources that are not, or only partly, in it.")


class RecallResult(ObservationBase):
    """Answer to Recall."""

    kind: Literal["recall_result"] = "recall_result"
    about: Literal["instructions", "skill", "task", "list", "notes"] = Field(
        default="instructions", description="What it is: who wrote it, and how far it goes."
    )
    name: str = Field(default="", description="Name of the skill; the path of instructions.")
    sources: tuple[str, ...] = Field(default=(), description="Files or runs the text came from.")
    why: str = Field(default="", description="Why it was loaded.")


class Remembered(ObservationBase):
    """Answer to Remember."""

    kind: Literal["remembered"] = "remembered"


class DelegateResult(ObservationBase):
    """Answer to Delegate."""

    kind: Literal["delegate_result"] = "delegate_result"
    state: RunState = Field(default=RunState.FINISHED, description="How the delegate ended.")
    outputs: dict[str, Any] = Field(
        default_factory=dict, description="What it hands back, by name."
    )


class PlanUpdated(ObservationBase):
    """Answer to PlanUpdate."""

    kind: Literal["plan_updated"] = "plan_updated"


class ReviewCommentNoted(ObservationBase):
    """Answer to ReviewComment."""

    kind: Literal["review_comment_noted"] = "review_comment_noted"
    placed: bool = Field(
        default=True, description="False when its lines are no part of the diff that is known."
    )


class ErrorObservation(ObservationBase):
    """The action could not be done; `content` says why and what to do instead."""

    kind: Literal["error"] = "error"
    code: str = Field(default="", description="Short machine word, like 'edit' or 'sandbox_lost'.")


class AgentStateChanged(ObservationBase):
    """The run moved to another state."""

    kind: Literal["agent_state_changed"] = "agent_state_changed"
    state: RunState = Field(description="The state from now on.")
    reason: str = Field(default="", description="Why, for a person.")
    next_step: str = Field(default="", description="What a person can do about an error.")
    because: Cause = Field(
        default="", description="The cause of an error, where it is one that people know."
    )


class Null(ObservationBase):
    """Nothing to say: the answer to Think and Message."""

    kind: Literal["null"] = "null"
