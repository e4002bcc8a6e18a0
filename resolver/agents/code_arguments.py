"""The tools of LocAgent: queries of the code index, and the report of the places found."""

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from resolver.agents.argument_types import Arguments, TextOrEmpty, parse_json_list, partial_to_false
from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.models.run import CodePlace

MAX_SEARCH_TERMS = 8
MAX_START_NODES = 5
MAX_EXPLORE_DEPTH = 5
MAX_REPORTED_PLACES = 30

_EDGE_SYNONYMS = {"invokes": "calls", "call": "calls", "import": "imports", "contain": "contains",
          "inherit": "inherits", "extends": "inherits"}  # fmt: skip
"""Synonyms of edge kinds that models use."""

_PLACE_LINE = re.compile(
    r"(?:[-*]|\d+[.)])?\s*`?(?P<path>[^\s`:]+)(?::(?P<start>\d+)(?:-(?P<end>\d+))?)?`?:?"
    r"(?:\s+`?(?P<symbol>[\w.:$]+(?:\(\))?)`?)?(?:\s*(?:--|[-–—:])\s*(?P<why>.*))?"
)


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
    return [_normalize_edge_kind(kind) if isinstance(kind, str) else kind for kind in value if kind]


def _normalize_edge_kind(kind: str) -> str:
    normalized = kind.strip(" \"'").lower()
    return _EDGE_SYNONYMS.get(normalized, normalized)


def _parse_places(value: Any) -> Any:
    """Parse places from a list of objects, or from text with one place per line.

    A line looks like `src/a.py:3-9 name - why`.
    """
    if isinstance(value, str):
        value = parse_json_list(value) or [line for line in value.splitlines() if line.strip()]
    if not isinstance(value, list | tuple):
        return value
    return [_parse_place(item) for item in value]


def _parse_place(item: Any) -> Any:
    """Return one place as a mapping, with `end` set to `start` if it is missing.

    The field `known` is removed, because it is the result of a check and not the model's to set.
    Raises ValueError if the place can't be parsed.
    """
    if isinstance(item, str):
        match = _PLACE_LINE.fullmatch(item.strip())
        if match is None or not re.search(r"\w", match["path"]):
            raise ValueError(f"{item[:100]!r} is not a place: write `path:first-last symbol - why`")
        item = {name: text for name, text in match.groupdict().items() if text}
    if not isinstance(item, dict):
        return item
    item = {key: value for key, value in item.items() if value is not None and key != "known"}
    if isinstance(item.get("path"), str):
        item["path"] = item["path"].strip().removeprefix("./")
    start, end = _parse_number(item.get("start")), _parse_number(item.get("end"))
    if start is not None and end is None:
        item["end"] = item["start"]
    if start is not None and end is not None and end < start:
        raise ValueError(f"line {end} is before line {start}")
    return item


def _parse_number(value: Any) -> int | None:
    return int(value) if isinstance(value, int | str) and str(value).isdecimal() else None


class FoundPlace(Arguments):
    """One place of `report_places`."""

    path: str = Field(min_length=1, max_length=4096)
    start: Annotated[int, Field(ge=1)] | None = None
    end: Annotated[int, Field(ge=1)] | None = None
    symbol: str = ""
    why: str = ""


Terms = Annotated[
    Annotated[tuple[str, ...], Field(min_length=1, max_length=MAX_SEARCH_TERMS)],
    BeforeValidator(_parse_texts),
    WithJsonSchema({"type": "array", "items": {"type": "string"}}),
]
Starts = Annotated[
    Annotated[tuple[str, ...], Field(min_length=1, max_length=MAX_START_NODES)],
    BeforeValidator(_parse_texts),
    WithJsonSchema({"type": "array", "items": {"type": "string"}}),
]
Edges = Annotated[
    tuple[Literal["contains", "imports", "calls", "inherits"], ...],
    BeforeValidator(_parse_edge_kinds),
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": "string", "enum": ["contains", "imports", "calls", "inherits"]},
        }
    ),
]
Places = Annotated[
    Annotated[tuple[FoundPlace, ...], Field(max_length=MAX_REPORTED_PLACES)],
    BeforeValidator(_parse_places),
    WithJsonSchema(
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "start": {"type": "integer"},
                    "end": {"type": "integer"},
                    "symbol": {"type": "string"},
                    "why": {"type": "string"},
                },
                "required": ["path", "why"],
            },
        }
    ),
]


def write_texts(texts: Sequence[str]) -> str:
    """Return the texts one per line, or as JSON if they could not be parsed from that."""
    lines = "\n".join(texts)
    return lines if _parse_texts(lines) == list(texts) else json.dumps(list(texts))


def write_places(places: Sequence[CodePlace]) -> str:
    """Return the places one per line, like `src/a.py:3-9 parse - why`.

    They are returned as JSON if the lines would not be parsed to the same places.
    """
    lines = "\n".join(_format_place(place) for place in places)
    fields = [place.model_dump(exclude={"known"}) for place in places]
    try:
        parsed = [FoundPlace.model_validate(item).model_dump() for item in _parse_places(lines)]
    except ValueError:
        parsed = []
    return lines if parsed == fields else json.dumps(fields)


def _format_place(place: CodePlace) -> str:
    symbol = f" {place.symbol}" if place.symbol else ""
    return f"{place.where}{symbol}" + (f" - {place.why}" if place.why else "")


class SearchArguments(Arguments):
    """`search_code`."""

    terms: Terms = Field(
        description="Each on its own: a name, an id, path:line, or words that describe it."
    )
    path: TextOrEmpty = Field(default="", description="Only below this folder, or in this file.")

    def action(self) -> ActionBase:
        return a.CodeSearch(terms=self.terms, path=self.path.strip().removeprefix("./"))


class ExploreArguments(Arguments):
    """`explore_code`."""

    start: Starts = Field(description="Ids, paths or unique names to start from.")
    direction: Annotated[
        Literal["upstream", "downstream", "both"],
        BeforeValidator(lambda v: v.strip().lower() if isinstance(v, str) else v),
    ] = Field(
        default="both",
        description="upstream: what uses it. downstream: what it contains and uses.",
    )
    depth: Annotated[int, Field(ge=1, le=MAX_EXPLORE_DEPTH)] = Field(
        default=1, description=f"Edges from the start, 1 to {MAX_EXPLORE_DEPTH}."
    )
    edges: Edges = Field(default=(), description="Kinds of edges to follow; all when left out.")

    def action(self) -> ActionBase:
        return a.CodeExplore(
            start=self.start, direction=self.direction, depth=self.depth, edges=self.edges
        )


class PlacesArguments(Arguments):
    """`report_places`."""

    message: str = Field(description="What is wrong or wanted, and how the places belong together.")
    places: Places = Field(
        description="Where the code has to change, the most telling first: path from the "
        "repository's root, first and last line, symbol, why."
    )
    task_completed: Annotated[bool, BeforeValidator(partial_to_false)] = Field(
        default=True, description="false when you did not find where."
    )

    @model_validator(mode="after")
    def _check_places(self) -> "PlacesArguments":
        if self.task_completed and not self.places:
            raise ValueError("places is empty; if you found none, set task_completed to false")
        return self

    def action(self) -> ActionBase:
        return a.Finish(
            message=self.message,
            task_completed=self.task_completed,
            places=tuple(CodePlace(**place.model_dump()) for place in self.places),
        )
