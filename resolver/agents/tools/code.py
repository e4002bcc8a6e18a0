"""The tools that act by code and edits: `execute_bash`, `execute_ipython_cell` and the editor."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from resolver.agents.tools.base import (
    Arguments,
    Line,
    OptionalText,
    StatedRisk,
    Tool,
    none_if_blank,
)
from resolver.events import actions as a
from resolver.events.base import ActionBase

MAX_TIMEOUT = 3600.0
"""Maximum timeout that a model may ask for, in seconds."""

Seconds = Annotated[
    Annotated[float, Field(gt=0, le=MAX_TIMEOUT, allow_inf_nan=False)] | None,
    BeforeValidator(none_if_blank),
    WithJsonSchema({"type": "number"}),
]


class BashArguments(Arguments):
    """`execute_bash`."""

    action_types = (a.CmdRun,)

    command: str = Field(
        description="The command, or with is_input what to send to the running program."
    )
    timeout: Seconds = Field(
        default=None, description="Seconds until the command is left to itself; at most 3600."
    )
    is_input: bool = Field(
        default=False,
        description="Send `command` to the program that is still running instead of running it.",
    )
    security_risk: StatedRisk = None

    @model_validator(mode="after")
    def _check_not_empty(self) -> "BashArguments":
        if not self.is_input and not self.command.strip():
            raise ValueError("command is empty; only with is_input it may be, to wait for output")
        return self


class CellArguments(Arguments):
    """`execute_ipython_cell`."""

    action_types = (a.IPythonRunCell,)
    non_blank = ("code",)

    code: str = Field(description="Python code of the cell; IPython magics work.")
    security_risk: StatedRisk = None


def _parse_line_range(value: Any) -> Any:
    """Parse a line range from a list, or from text like "[1, 40]", "1,40" or "1-40"."""
    value = none_if_blank(value)
    if not isinstance(value, str):
        return value
    parts = value.strip().strip("[]()").split("," if "," in value else "-", 1)
    return [part.strip() for part in parts]


Lines = Annotated[
    tuple[int, int] | None,
    BeforeValidator(_parse_line_range),
    WithJsonSchema({"type": "array", "items": {"type": "integer"}}),
]

_EDITOR_ARGUMENTS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "view": ((), ("view_range",)),
    "create": (("file_text",), ()),
    "str_replace": (("old_str",), ("new_str",)),
    "insert": (("insert_line", "new_str"), ()),
    "undo_edit": ((), ()),
}
"""The arguments that each command of the editor needs, and those that it can have."""


class EditorArguments(Arguments):
    """`str_replace_editor`. Which of the texts a command takes is in the table above."""

    action_types = (a.FileRead, a.FileWrite, a.FileEdit)
    verbatim = ("file_text",)

    command: Literal["view", "create", "str_replace", "insert", "undo_edit"] = Field(
        description="What to do."
    )
    path: str = Field(
        min_length=1, description="File or directory; absolute, or from the repository's root."
    )
    file_text: OptionalText = Field(default=None, description="create: the whole file.")
    old_str: OptionalText = Field(
        default=None, description="str_replace: the text to replace; must occur exactly once."
    )
    new_str: OptionalText = Field(
        default=None,
        description="str_replace: what comes in its place, empty to delete. "
        "insert: the lines to insert.",
    )
    insert_line: Line = Field(
        default=None, description="insert: the line to insert after; 0 is the top of the file."
    )
    view_range: Lines = Field(
        default=None,
        description="view: first and last line, e.g. [10, 40]; -1 as last means to the end.",
    )
    security_risk: StatedRisk = None

    @model_validator(mode="after")
    def _check_command(self) -> "EditorArguments":
        required, optional = _EDITOR_ARGUMENTS[self.command]
        missing = [n for n in required if getattr(self, n) is None]
        if missing:
            raise ValueError(f"{self.command} needs {' and '.join(missing)}")
        names = ("file_text", "old_str", "new_str", "insert_line", "view_range")
        # Models often send all arguments and leave those that don't apply empty. Only a value that
        # does not apply is an error.
        extra = [
            n
            for n in names
            if n not in (*required, *optional) and getattr(self, n) not in (None, "")
        ]
        if extra:
            raise ValueError(f"{self.command} does not take {' or '.join(extra)}")
        if self.command == "str_replace" and not self.old_str:
            raise ValueError("old_str is empty; use insert to add lines, create for a new file")
        return self

    def action(self) -> ActionBase:
        return self._requested_action().model_copy(update={"security_risk": self.security_risk})

    def _requested_action(self) -> ActionBase:
        match self.command:
            case "view":
                return a.FileRead(path=self.path, view_range=self.view_range)
            case "create":
                return a.FileWrite(path=self.path, content=self.file_text or "")
            case "str_replace":
                new_str = self.new_str or ""
                return a.FileEdit(
                    command=self.command, path=self.path, old_str=self.old_str, new_str=new_str
                )
            case "insert" | "undo_edit":
                needed, _ = _EDITOR_ARGUMENTS[self.command]
                values = {name: getattr(self, name) for name in needed}
                return a.FileEdit(command=self.command, path=self.path, **values)


TOOLS = (
    Tool(name="execute_bash", arguments=BashArguments, is_editing=True),
    Tool(name="execute_ipython_cell", arguments=CellArguments, is_editing=True),
    Tool(name="str_replace_editor", arguments=EditorArguments, is_editing=True),
)
