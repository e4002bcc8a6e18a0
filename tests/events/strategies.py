"""Hypothesis strategies for events of every kind with every field."""

from datetime import UTC, datetime
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st
from pydantic import AwareDatetime, BaseModel
from pydantic_core import from_json

from resolver.events.base import EventBase
from resolver.events.lifecycle import DelegateEvent
from resolver.events.log import (
    ACTION_TYPES,
    OBSERVATION_TYPES,
    KnownEvent,
    dump_line,
    parse_logged_event,
)
from tests.trace.sample import HOSTILE

# Texts of strangers try to break out of a rendering.
ATOMS = (
    *HOSTILE, "`", "```", "~~~", "    ", "\n", "\r", "<", ">", "&", "</details>", "<details>",
    "</summary>", "<!--", "-->", "<script>", "@octocat", "#1", "![", "](", "\x1b[", "\u202e", "::",
    "##[", "\u2028", "$$", "|", "- ", "1. ", "\\", "🦀", "\u0000", "]]>", "<pre>",
)  # fmt: skip
text = st.text(max_size=20) | st.lists(st.sampled_from(ATOMS), max_size=4).map("".join)
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
moments = st.datetimes(
    min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC)
)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: text,
    bool: st.booleans(),
    int: st.integers(0, 10**6),
    float: st.floats(min_value=0, allow_nan=False, allow_infinity=False),
    type(None): st.none(),
    datetime: moments,
    Any: json_values,
}


def values_of(annotation: Any) -> st.SearchStrategy[Any]:
    """Any value that a field of this type may have."""
    origin, args = get_origin(annotation), get_args(annotation)
    if annotation in PLAIN:
        return PLAIN[annotation]
    if annotation is AwareDatetime:
        return moments
    if origin is Annotated:
        return values_of(args[0])
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (UnionType, Union):
        return st.one_of(*map(values_of, args))
    if origin is tuple and args[-1] is Ellipsis:
        return st.lists(values_of(args[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values_of, args))
    if origin is dict:
        return st.dictionaries(text, json_values, max_size=3)
    if issubclass(annotation, Enum):
        return st.sampled_from(annotation)
    return model(annotation)


def model(type_: type[BaseModel], **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Any value of a model; fields that have a default are sometimes left to it."""
    required, optional = {}, {}
    for name, field in type_.model_fields.items():
        if name in given or name not in ("kind", "schema_version") or not _is_event(type_):
            chosen = required if field.is_required() else optional
            chosen[name] = given.get(name, values_of(field.annotation))
    return st.fixed_dictionaries(required, optional=optional).map(lambda values: type_(**values))


def _is_event(type_: type[BaseModel]) -> bool:
    return issubclass(type_, EventBase)


def events_of(*types: type[EventBase]) -> st.SearchStrategy[Any]:
    """Any event of one of the types."""
    return st.one_of(*(nesting if t is DelegateEvent else model(t) for t in types))


nesting = st.deferred(
    lambda: model(DelegateEvent, event=any_event.map(lambda event: from_json(dump_line(event))))
)
unknown = st.builds(
    lambda name, more: parse_logged_event({**more, "kind": f"new_{name}", "source": "agent"}),
    text,
    st.dictionaries(text.map(lambda key: f"x_{key}"), json_values, max_size=3),
)
actions = events_of(*ACTION_TYPES)
observations = events_of(*OBSERVATION_TYPES)
others = events_of(
    *(t for t in get_args(KnownEvent) if t not in ACTION_TYPES and t not in OBSERVATION_TYPES)
)
any_event = actions | observations | others | unknown


@st.composite
def logs(draw: st.DrawFn, max_size: int = 25, min_size: int = 0) -> list[Any]:
    """Events as a stream would number them; what an event refers to is an earlier one."""
    drawn = draw(st.lists(any_event, min_size=min_size, max_size=max_size))
    return [
        event.model_copy(update={"id": i, "timestamp": draw(moments), **draw(references(event, i))})
        for i, event in enumerate(drawn)
    ]


def references(event: EventBase, id: int) -> st.SearchStrategy[dict[str, Any]]:
    """Ids of earlier events for the fields that have some."""
    earlier = st.integers(0, id - 1) if id else st.none()
    fields: dict[str, st.SearchStrategy[Any]] = {"cause": st.none()}
    if isinstance(event, OBSERVATION_TYPES):
        fields["cause"] = earlier
    if "reply" in type(event).model_fields:
        fields["reply"] = st.none() | earlier
    if "forgotten" in type(event).model_fields:
        fields["forgotten"] = st.lists(earlier, max_size=3).map(tuple) if id else st.just(())
    if "delegate" in type(event).model_fields:
        fields["delegate"] = earlier if id else st.just(0)
    return st.fixed_dictionaries(fields)
