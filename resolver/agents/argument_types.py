"""Types of tool arguments. Each accepts the variants that models write and normalizes them."""

import json
import re
from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from resolver.events.base import ActionBase
from resolver.models.run import Declined, PlanItem

MAX_TIMEOUT = 3600.0
"""Maximum timeout that a model may ask for, in seconds."""


def _none_if_blank(value: Any) -> Any:
    blank = isinstance(value, str) and value.strip().lower() in {"", "null", "none"}
    return None if blank else value


def _line_pair(value: Any) -> Any:
    """Parse a line range from a list, or from text like "[1, 40]", "1,40" or "1-40"."""
    value = _none_if_blank(value)
    if not isinstance(value, str):
        return value
    parts = value.strip().strip("[]()").split("," if "," in value else "-", 1)
    return [part.strip() for part in parts]


def partial_is_no(value: Any) -> Any:
    """Return False for "partial", which models write for `task_completed`; else the value."""
    return False if isinstance(value, str) and value.strip().lower() == "partial" else value


def _known_reason(value: Any) -> Any:
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    word = value.strip().lower().replace(" ", "_").replace("-", "_")
    return "" if word in {"none", "null"} else word


Reason = Annotated[
    Declined,
    BeforeValidator(_known_reason),
    # Some providers refuse an empty string in an enum.
    WithJsonSchema({"type": "string", "enum": [word for word in get_args(Declined) if word]}),
]
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
"""Synonyms of statuses that models use."""

MOST_ITEMS = 50
"""Maximum number of items of a plan."""


def _plan_items(value: Any) -> Any:
    """Parse a plan from a list of objects or titles, or from text.

    Text has one item per line, like `[x] title`.
    """
    if isinstance(value, str):
        value = json_list(value) or [_plan_line(x) for x in value.splitlines() if x.strip()]
    if not isinstance(value, list):
        return value
    return [_plan_item(item) for item in value]


def json_list(text: str) -> list[Any]:
    """Return the list that the text is as JSON, [] if it is not a JSON list."""
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
        """Return the action that these arguments ask for."""
        raise NotImplementedError
