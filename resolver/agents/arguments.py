"""The tools a model may call: their arguments, checked and coerced, and the action each makes.

Both dialects end here, and the offered JSON schemas are made from these models.
"""

import json
import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.model import PlanItem

MAX_TIMEOUT = 3600.0
"""Seconds; the most a model may ask for."""


def _none_if_blank(value: Any) -> Any:
    blank = isinstance(value, str) and value.strip().lower() in {"", "null", "none"}
    return None if blank else value


def _line_pair(value: Any) -> Any:
    """A range as models write it: a list, or "[1, 40]", "1,40", "1-40"."""
    value = _none_if_blank(value)
    if not isinstance(value, str):
        return value
    parts = value.strip().strip("[]()").split("," if "," in value else "-", 1)
    return [part.strip() for part in parts]


def _partial_is_no(value: Any) -> Any:
    return False if isinstance(value, str) and value.strip().lower() == "partial" else value


Seconds = Annotated[
    Annotated[float, Field(gt=0, le=MAX_TIMEOUT, allow_inf_nan=False)] | None,
    BeforeValidator(_none_if_blank),
    WithJsonSchema({"type": "number"}),
]
Lines = Annotated[
    tuple[int, int] | None,
    BeforeValidator(_line_pair),
    WithJsonSchema({"type": "array", "items": {"type": "integer"}}),
]
Line = Annotated[
    Annotated[int, Field(ge=0)] | None,
    BeforeValidator(_none_if_blank),
    WithJsonSchema({"type": "integer"}),
]
_PLAN_LINE = re.compile(r"(?:(?:[-*]|\d+[.)])\s+)?\[([ xX>~-])\]\s+(.*)")
_MARKS = {" ": "todo", "x": "done", "X": "done"}
_STATUSES = {"pending": "todo", "in_progress": "doing", "completed": "done"}
"""Words for a status that models have learnt elsewhere."""

MOST_ITEMS = 50


def _plan_items(value: Any) -> Any:
    """A plan as models write it: objects, titles, or text with one item a line, as `[x] title`."""
    if isinstance(value, str):
        value = _json_list(value) or [_plan_line(x) for x in value.splitlines() if x.strip()]
    if not isinstance(value, list):
        return value
    return [_plan_item(item) for item in value]


def _json_list(text: str) -> list[Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return value if isinstance(value, list) else []


def _plan_line(line: str) -> dict[str, str]:
    box = _PLAN_LINE.fullmatch(line.strip())
    if box is None:
        return {"title": line}
    return {"title": box[2], "status": _MARKS.get(box[1], "doing")}


def _plan_item(item: Any) -> Any:
    if isinstance(item, str):
        item = {"title": item}
    if not isinstance(item, dict) or not isinstance(item.get("title"), str):
        return item
    title = " ".join(item["title"].split())
    if not title:
        raise ValueError("an item has no title")
    status = item.get("status", "todo")
    known = _STATUSES.get(status, status) if isinstance(status, str) else status
    return {**item, "title": title, "status": known}


Items = Annotated[
    Annotated[tuple[PlanItem, ...], Field(max_length=MOST_ITEMS)],
    BeforeValidator(_plan_items),
    WithJsonSchema(
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "title": {"type": "string"},
                    "status": {"type": "string", "enum": ["todo", "doing", "done"]},
                },
                "required": ["title", "status"],
            },
        }
    ),
]


def _empty_if_none(value: Any) -> Any:
    return "" if value is None else value


Words = Annotated[str, BeforeValidator(_empty_if_none)]
OptionalText = Annotated[str | None, WithJsonSchema({"type": "string"})]


class Arguments(BaseModel):
    """Arguments of one tool."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    def action(self) -> ActionBase:
        """The action these arguments ask for."""
        raise NotImplementedError


class BashArguments(Arguments):
    """`execute_bash`."""

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

    @model_validator(mode="after")
    def _not_empty(self) -> "BashArguments":
        if not self.is_input and not self.command.strip():
            raise ValueError("command is empty; only with is_input it may be, to wait for output")
        return self

    def action(self) -> ActionBase:
        return a.CmdRun(command=self.command, timeout=self.timeout, is_input=self.is_input)


class CellArguments(Arguments):
    """`execute_ipython_cell`."""

    code: str = Field(description="Python code of the cell; IPython magics work.")

    @model_validator(mode="after")
    def _not_empty(self) -> "CellArguments":
        if not self.code.strip():
            raise ValueError("code is empty")
        return self

    def action(self) -> ActionBase:
        return a.IPythonRunCell(code=self.code)


_EDITOR_NEEDS = {
    "view": (),
    "create": ("file_text",),
    "str_replace": ("old_str",),
    "insert": ("insert_line", "new_str"),
    "undo_edit": (),
}
_EDITOR_MAY = {"view": ("view_range",), "str_replace": ("new_str",)}


class EditorArguments(Arguments):
    """`str_replace_editor`. Which of the texts a command takes is in the two tables above."""

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

    @model_validator(mode="after")
    def _fits_the_command(self) -> "EditorArguments":
        needs, may = _EDITOR_NEEDS[self.command], _EDITOR_MAY.get(self.command, ())
        missing = [n for n in needs if getattr(self, n) is None]
        if missing:
            raise ValueError(f"{self.command} needs {' and '.join(missing)}")
        texts = ("file_text", "old_str", "new_str", "insert_line", "view_range")
        # models often send every argument, the idle ones empty: only a value is a contradiction
        extra = [n for n in texts if n not in (*needs, *may) and getattr(self, n) not in (None, "")]
        if extra:
            raise ValueError(f"{self.command} does not take {' or '.join(extra)}")
        if self.command == "str_replace" and not self.old_str:
            raise ValueError("old_str is empty; use insert to add lines, create for a new file")
        return self

    def action(self) -> ActionBase:
        match self.command:
            case "view":
                return a.FileRead(path=self.path, view_range=self.view_range)
            case "create":
                return a.FileWrite(path=self.path, content=self.file_text or "")
            case "str_replace":
                return a.FileEdit(
                    command="str_replace",
                    path=self.path,
                    old_str=self.old_str,
                    new_str=self.new_str or "",
                )
            case "insert":
                return a.FileEdit(
                    command="insert",
                    path=self.path,
                    new_str=self.new_str,
                    insert_line=self.insert_line,
                )
            case "undo_edit":
                return a.FileEdit(command="undo_edit", path=self.path)


class BrowserArguments(Arguments):
    """`browser`."""

    code: str = Field(description="One or more action calls, one a line.")

    @model_validator(mode="after")
    def _not_empty(self) -> "BrowserArguments":
        if not self.code.strip():
            raise ValueError("code is empty")
        return self

    def action(self) -> ActionBase:
        return a.BrowseInteractive(code=self.code)


class ThinkArguments(Arguments):
    """`think`."""

    thought: str = Field(description="The thought.")

    def action(self) -> ActionBase:
        return a.Think(content=self.thought)


class FinishArguments(Arguments):
    """`finish`."""

    message: str = Field(description="A title in one line; then, if needed, a short summary.")
    task_completed: Annotated[bool, BeforeValidator(_partial_is_no)] = Field(
        default=True, description="false when the issue is not, or only partly, resolved."
    )
    cause: Words = Field(default="", description="What was wrong.")
    change: Words = Field(default="", description="What changed, and why it is the right change.")
    verification: Words = Field(
        default="", description="The commands you ran and what they gave, before and after."
    )
    remaining: Words = Field(
        default="", description="Decisions you took, doubts, what you did not check."
    )

    def action(self) -> ActionBase:
        told = self.model_dump()
        return a.Finish(root_cause=told.pop("cause"), **told)


class PlanArguments(Arguments):
    """`plan`."""

    items: Items = Field(description="The whole plan, in order, each time.")

    def action(self) -> ActionBase:
        return a.PlanUpdate(items=self.items)


class DelegateArguments(Arguments):
    """`delegate`."""

    agent: str = Field(default="CodeActAgent", min_length=1, description="Name of the agent.")
    task: str = Field(
        description="All it has to know: what to do, where, and what to report. It sees nothing "
        "of this conversation."
    )

    @model_validator(mode="after")
    def _not_empty(self) -> "DelegateArguments":
        if not self.task.strip():
            raise ValueError("task is empty")
        return self

    def action(self) -> ActionBase:
        return a.Delegate(agent=self.agent, task=self.task)


TOOLS: dict[str, type[Arguments]] = {
    "execute_bash": BashArguments,
    "execute_ipython_cell": CellArguments,
    "str_replace_editor": EditorArguments,
    "think": ThinkArguments,
    "plan": PlanArguments,
    "delegate": DelegateArguments,
    "browser": BrowserArguments,
    "finish": FinishArguments,
}
"""Every tool that can be offered. A tool with nothing behind it in a run is not."""
