"""The tools with which an agent organizes its work: `think`, `plan`, `delegate` and `recall`."""

import re
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field

from resolver.agents.tools.base import Arguments, TextOrEmpty, Tool, list_schema, parse_json_list
from resolver.events import actions as a
from resolver.models.run import PlanItem

_PLAN_LINE = re.compile(r"(?:(?:[-*]|\d+[.)])\s+)?\[([ xX>~-])\]\s+(.*)")
_CHECKBOX_STATUSES = {" ": "todo", "x": "done", "X": "done"}
_STATUSES = {"pending": "todo", "in_progress": "doing", "completed": "done"}
"""Synonyms of statuses that models use."""

MAX_PLAN_ITEMS = 50
"""Maximum number of items of a plan."""


def _parse_plan(value: Any) -> Any:
    """Parse a plan from a list of objects or titles, or from text.

    Text has one item per line, like `[x] title`.
    """
    if isinstance(value, str):
        value = parse_json_list(value) or [
            _parse_plan_line(line) for line in value.splitlines() if line.strip()
        ]
    if not isinstance(value, list):
        return value
    return [_normalize_plan_item(item) for item in value]


def _parse_plan_line(line: str) -> dict[str, str]:
    match = _PLAN_LINE.fullmatch(line.strip())
    if match is None:
        return {"title": line}
    return {"title": match[2], "status": _CHECKBOX_STATUSES.get(match[1], "doing")}


def _normalize_plan_item(item: Any) -> Any:
    if isinstance(item, str):
        item = {"title": item}
    if not isinstance(item, dict) or not isinstance(item.get("title"), str):
        return item
    title = " ".join(item["title"].split())
    if not title:
        raise ValueError("an item has no title")
    status = item.get("status", "todo")
    normalized = _STATUSES.get(status, status) if isinstance(status, str) else status
    return {**item, "title": title, "status": normalized}


Items = Annotated[
    Annotated[tuple[PlanItem, ...], Field(max_length=MAX_PLAN_ITEMS)],
    BeforeValidator(_parse_plan),
    list_schema(
        {"title": "string", "status": {"type": "string", "enum": ["todo", "doing", "done"]}},
        required=("title", "status"),
    ),
]


class ThinkArguments(Arguments):
    """`think`."""

    action_types = (a.Think,)
    renamed: ClassVar = {"thought": "content"}

    thought: str = Field(description="The thought.")


class PlanArguments(Arguments):
    """`plan`."""

    action_types = (a.PlanUpdate,)

    items: Items = Field(description="The whole plan, in order, each time.")


class DelegateArguments(Arguments):
    """`delegate`."""

    action_types = (a.Delegate,)
    non_blank = ("task",)

    agent: str = Field(default="CodeActAgent", min_length=1, description="Name of the agent.")
    task: str = Field(description="All it has to know: what to do, where, and what to report.")


class RecallArguments(Arguments):
    """`recall`."""

    action_types = (a.Recall,)

    query: Annotated[TextOrEmpty, AfterValidator(str.strip)] = Field(
        description="The name of a skill; empty for the list of skills."
    )


TOOLS = (
    Tool(name="think", arguments=ThinkArguments),
    Tool(name="plan", arguments=PlanArguments),
    Tool(name="delegate", arguments=DelegateArguments, requires="delegates"),
    Tool(name="recall", arguments=RecallArguments, requires="recall"),
)
