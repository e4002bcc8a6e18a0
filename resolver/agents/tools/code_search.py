"""The tools of LocAgent: queries of the code index, and the report of the places found.

Only LocAgent has them: the index does not contain edits, so it would mislead an agent that edits.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    WithJsonSchema,
    model_validator,
)

from resolver.agents.tools.base import (
    Arguments,
    OptionalText,
    TaskCompleted,
    Tool,
    list_schema,
    normalize_path,
    parse_json_list,
    parse_objects,
    word,
)
from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.models.run import CodePlace

MAX_SEARCH_TERMS = 8
MAX_START_NODES = 5
MAX_EXPLORE_DEPTH = 5
MAX_REPORTED_PLACES = 30


def _parse_texts(value: Any) -> Any:
    """Parse a list of texts from a list, a JSON list, or text with one item per line."""
    if isinstance(value, str):
        value = parse_json_list(value) or [v.strip() for v in value.splitlines()]
    if not isinstance(value, list | tuple):
        return value
    return [v for v in value if not isinstance(v, str) or v.strip()]


def _parse_edge_kinds(value: Any) -> Any:
    if isinstance(value, str):
        value = re.split(r"[\s,]+", value.strip("[] "))
    if not isinstance(value, list | tuple):
        return () if value is None else value
    return [kind.strip(" \"'").lower() if isinstance(kind, str) else kind for kind in value if kind]


def _parse_places(value: Any) -> Any:
    """Parse places from objects, or from JSON text."""
    value = parse_objects(value)
    return [_parse_place(item) for item in value] if isinstance(value, list | tuple) else value


def _parse_place(item: Any) -> Any:
    """Return one place as a mapping, with `end` set to `start` if it is missing.

    The field `known` is removed, because it is the result of a check and not the model's to set.
    Raises ValueError if its lines are in the wrong order.
    """
    if not isinstance(item, dict):
        return item
    item = {key: value for key, value in item.items() if value is not None and key != "known"}
    if isinstance(item.get("path"), str):
        item["path"] = normalize_path(item["path"])
    start, end = _parse_number(item.get("start")), _parse_number(item.get("end"))
    if start is not None and end is None:
        item["end"] = item["start"]
    if start is not None and end is not None and end < start:
        raise ValueError(f"line {end} is before line {start}")
    return item


def _normalize_folder(path: str | None) -> str | None:
    return normalize_path(path) or None if path else None


def _parse_number(value: Any) -> int | None:
    return int(value) if isinstance(value, int | str) and str(value).isdecimal() else None


Texts = Annotated[
    tuple[str, ...],
    BeforeValidator(_parse_texts),
    WithJsonSchema({"type": "array", "items": {"type": "string"}}),
]
Edges = Annotated[
    tuple[Literal["contains", "calls", "inherits"], ...],
    BeforeValidator(_parse_edge_kinds),
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": "string", "enum": ["contains", "calls", "inherits"]},
        }
    ),
]
Places = Annotated[
    Annotated[tuple[CodePlace, ...], Field(max_length=MAX_REPORTED_PLACES)],
    BeforeValidator(_parse_places),
    list_schema(
        {
            "path": "string",
            "start": "integer",
            "end": "integer",
            "symbol": "string",
            "why": "string",
        },
        required=("path", "why"),
    ),
]


class SearchArguments(Arguments):
    """`search_code`."""

    action_types = (a.CodeSearch,)

    terms: Texts = Field(
        min_length=1,
        max_length=MAX_SEARCH_TERMS,
        description="Each on its own: a name, an id, path:line, or words that describe it.",
    )
    path: Annotated[OptionalText, AfterValidator(_normalize_folder)] = Field(
        default=None, description="Only below this folder, or in this file."
    )


class ExploreArguments(Arguments):
    """`explore_code`."""

    action_types = (a.CodeExplore,)

    start: Texts = Field(
        min_length=1,
        max_length=MAX_START_NODES,
        description="Ids, paths or unique names to start from.",
    )
    direction: Annotated[
        Literal["upstream", "downstream", "both"],
        word("both"),
    ] = Field(
        default="both",
        description="upstream: what uses it. downstream: what it contains and uses.",
    )
    depth: Annotated[int, Field(ge=1, le=MAX_EXPLORE_DEPTH)] = Field(
        default=1, description=f"Edges from the start, 1 to {MAX_EXPLORE_DEPTH}."
    )
    edges: Edges = Field(default=(), description="Kinds of edges to follow; all when left out.")


class PlacesArguments(Arguments):
    """`report_places`."""

    action_types = (a.Finish,)

    message: str = Field(description="What is wrong or wanted, and how the places belong together.")
    places: Places = Field(
        description="Where the code has to change, the most telling first: path from the "
        "repository's root, first and last line, symbol, why."
    )
    task_completed: TaskCompleted = Field(
        default=True, description="false when you did not find where."
    )

    @model_validator(mode="after")
    def _check_places(self) -> "PlacesArguments":
        if self.task_completed and not self.places:
            raise ValueError("places is empty; if you found none, set task_completed to false")
        return self


_MAX_PATH_PARTS = 40
"""Maximum number of path components of a reported place that are considered."""


def check_places(action: ActionBase, count_lines: Callable[[str], int | None]) -> ActionBase:
    """Return the action, with its reported places marked as unknown if their file or lines do not
    exist at the base commit.

    count_lines: returns the number of lines of a file at the base commit, None if there is none.
    """
    if not isinstance(action, a.Finish) or not action.places:
        return action
    places = tuple(_check_place(place, count_lines) for place in action.places)
    return action.model_copy(update={"places": places})


def _check_place(place: CodePlace, count_lines: Callable[[str], int | None]) -> CodePlace:
    """Return the place with its path relative to the repository.

    Models also write absolute paths of the sandbox; leading folders are removed until a file
    matches.
    """
    parts = place.path.strip("/").split("/")[:_MAX_PATH_PARTS]
    start_indexes = range(len(parts) if place.path.startswith("/") else 1)
    for path in ("/".join(parts[start:]) for start in start_indexes):
        length = count_lines(path)
        if length is not None:
            known = (place.end or place.start or 0) <= length
            return place.model_copy(update={"path": path, "known": known})
    return place.model_copy(update={"known": False})


TOOLS = (
    Tool(name="search_code", arguments=SearchArguments, is_general=False),
    Tool(name="explore_code", arguments=ExploreArguments, is_general=False),
    Tool(name="report_places", arguments=PlacesArguments, is_general=False),
)
