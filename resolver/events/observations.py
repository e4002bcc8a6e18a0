"""The observations: the results of actions. A new one also belongs into the union `Observation`."""

from typing import Any, Literal

from pydantic import Field

from resolver.errors import Cause
from resolver.events.base import EventBase, ObservationBase
from resolver.models.base import LoggedModel
from resolver.models.run import RunState


class ChangedPaths(LoggedModel):
    """Which files of the working tree differ from their state after the previous action.

    They are found by comparing the files, not from the action. Ignored and generated files are not
    included, and neither is a tracked file that was written with its content in the base commit.
    """

    paths: tuple[str, ...] = Field(
        default=(),
        description="Paths relative to the repository's root, sorted; the first ones if there are "
        "many.",
    )
    count: int = Field(default=0, description="Number of all changed paths.")
    differing: int = Field(
        default=0, description="Number of paths that differ from the base commit now."
    )


class SandboxObservation(ObservationBase):
    """The result of an action that can change files in the sandbox."""

    changed: ChangedPaths | None = Field(
        default=None,
        description="What changed in the working tree since the previous action; None when that "
        "is not known.",
    )


class CmdOutput(SandboxObservation):
    """Result of `cmd_run`. If the output was long, `content` holds its beginning and end."""

    kind: Literal["cmd_output"] = "cmd_output"
    exit_code: int | None = Field(
        default=None, description="Exit code; None while the command is still running."
    )
    cwd: str | None = Field(default=None, description="Working directory of the shell afterwards.")
    timed_out: bool = Field(
        default=False,
        description="True if the command exceeded its timeout. It may still be running.",
    )
    omitted: int = Field(
        default=0, description="Number of bytes removed from the middle of `content`."
    )
    output_file: str | None = Field(
        default=None, description="File in the sandbox with the whole output."
    )
    seconds: float = Field(default=0.0, description="Duration.")


class IPythonOutput(SandboxObservation):
    """Result of `ipython_run_cell`."""

    kind: Literal["ipython_output"] = "ipython_output"
    rest_hint = "Print less at a time."
    error: bool = Field(default=False, description="True if the cell raised an exception.")
    images: tuple[str, ...] = Field(default=(), description="Plots, as data: URLs.")


class FileReadResult(ObservationBase):
    """Result of `file_read`."""

    kind: Literal["file_read_result"] = "file_read_result"
    rest_hint = "Read the rest with view_range."
    path: str = Field(description="Path of the file or directory.")
    images: tuple[str, ...] = Field(
        default=(), description="The image as a data: URL, if the file is an image."
    )


class FileWriteResult(SandboxObservation):
    """Result of `file_write`."""

    kind: Literal["file_write_result"] = "file_write_result"
    path: str = Field(description="Path of the file.")
    new_hash: str | None = Field(default=None, description="SHA-256 of the new file.")


class FileEditResult(SandboxObservation):
    """Result of `file_edit`: the changed hunk and two hashes, not two copies of the file."""

    kind: Literal["file_edit_result"] = "file_edit_result"
    rest_hint = "View the file to see all of it."
    path: str = Field(description="Path of the file.")
    diff: str = Field(default="", description="The changed hunk, as in a unified diff.")
    old_hash: str | None = Field(default=None, description="SHA-256 of the file before the change.")
    new_hash: str | None = Field(default=None, description="SHA-256 of the file after the change.")


class McpResult(ObservationBase):
    """Result of `mcp_call`."""

    kind: Literal["mcp_result"] = "mcp_result"
    rest_hint = "Ask for less at a time."
    error: bool = Field(default=False, description="True if the tool reported an error.")
    structured: dict[str, Any] | None = Field(
        default=None, description="The result as structured data, if the tool provides it."
    )
    images: tuple[str, ...] = Field(default=(), description="Images of the result, as data: URLs.")
    output_file: str | None = Field(
        default=None,
        description="File in the sandbox with the whole text, if `content` is truncated.",
    )


class CodeResult(ObservationBase):
    """Result of `code_search` and `code_explore`. They run on the host, not in the sandbox."""

    kind: Literal["code_result"] = "code_result"
    commit: str = Field(description="Commit that was indexed. Later edits are not in the index.")
    left_out: int = Field(
        default=0,
        description="Number of source files that are missing from the index, or only partly in it.",
    )


class RecallResult(ObservationBase):
    """Result of `recall`."""

    kind: Literal["recall_result"] = "recall_result"
    about: Literal["instructions", "skill", "task", "list"] = Field(
        default="instructions",
        description="Kind of knowledge: who wrote it, and what it applies to.",
    )
    name: str | None = Field(
        default=None, description="Name of the skill, or path of the instructions."
    )
    sources: tuple[str, ...] = Field(
        default=(), description="Files or runs that the text came from."
    )
    why: str | None = Field(default=None, description="Why it was loaded.")


class DelegateResult(ObservationBase):
    """Result of `delegate`."""

    kind: Literal["delegate_result"] = "delegate_result"
    state: RunState = Field(
        default=RunState.FINISHED, description="State in which the delegate ended."
    )


class PlanUpdated(ObservationBase):
    """Result of `plan_update`."""

    kind: Literal["plan_updated"] = "plan_updated"


class ReviewCommentNoted(ObservationBase):
    """Result of `review_comment`."""

    kind: Literal["review_comment_noted"] = "review_comment_noted"
    placed: bool = Field(
        default=True, description="False if the lines are not part of the known diff."
    )


class ErrorObservation(ObservationBase):
    """The action failed. `content` says why, and what to do instead."""

    kind: Literal["error"] = "error"
    code: str | None = Field(
        default=None, description="Short error code, such as 'edit' or 'sandbox_lost'."
    )


class AgentStateChanged(ObservationBase):
    """The run changed to another state."""

    kind: Literal["agent_state_changed"] = "agent_state_changed"
    state: RunState = Field(description="The new state.")
    reason: str | None = Field(default=None, description="The reason, for people.")
    next_step: str | None = Field(default=None, description="What a person can do about an error.")
    because: Cause | None = Field(
        default=None, description="Code of the cause, if the error has a known cause."
    )


class Null(ObservationBase):
    """Empty result, of `think` and `message`."""

    kind: Literal["null"] = "null"


Observation = (
    CmdOutput
    | IPythonOutput
    | FileReadResult
    | FileWriteResult
    | FileEditResult
    | McpResult
    | CodeResult
    | RecallResult
    | DelegateResult
    | PlanUpdated
    | ReviewCommentNoted
    | ErrorObservation
    | AgentStateChanged
    | Null
)
"""The closed union of the observations."""


def images_of(event: EventBase) -> tuple[str, ...]:
    """Return the data: URLs of the images in an observation."""
    return event.images if isinstance(event, IPythonOutput | FileReadResult | McpResult) else ()
