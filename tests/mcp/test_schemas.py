"""Tests of reducing schemas and listings to what can be offered to a model."""

import json

from hypothesis import given
from hypothesis import strategies as st

from resolver.mcp.tool_listing import (
    MAX_DEPTH,
    MAX_SCHEMA_CHARACTERS,
    MAX_TOOLS,
    ToolListing,
    choose_tools,
    reduce_schema,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(
            ["type", "properties", "items", "enum", "required", "$ref", "anyOf", "allOf", "const",
             "description", "additionalProperties", "a", "b"]
        )
        | st.text(max_size=4),
        inner | st.sampled_from(["object", "array", "string", "#", "#/properties/a", "#/$defs/x"]),
        max_size=5,
    ),
    max_leaves=25,
)  # fmt: skip


def plain(text: str) -> str:
    return text


def is_plain(schema: dict[str, object], depth: int = 0) -> bool:
    kept = {"type", "properties", "items", "required", "enum", "description"}
    assert schema.keys() <= kept and depth <= MAX_DEPTH + 1
    assert schema["type"] in {"string", "number", "integer", "boolean", "array", "object"}
    inner = list((schema.get("properties") or {}).values())  # type: ignore[attr-defined]
    inner += [schema["items"]] if "items" in schema else []
    return all(is_plain(value, depth + 1) for value in inner)


@given(json_values)
def test_any_value_gives_the_plain_schema_of_an_object(schema: object) -> None:
    found = reduce_schema(schema, plain)
    assert found["type"] == "object" and is_plain(found)
    assert set(found.get("required", ())) <= found["properties"].keys()
    assert len(json.dumps(found, ensure_ascii=False)) <= MAX_SCHEMA_CHARACTERS


def test_references_within_the_schema_are_followed() -> None:
    schema = {
        "$defs": {"point": {"type": "object", "properties": {"x": {"type": "number"}}}},
        "properties": {"at": {"$ref": "#/$defs/point", "description": "Where."}},
    }
    at = reduce_schema(schema, plain)["properties"]["at"]
    assert at == {
        "type": "object", "properties": {"x": {"type": "number"}}, "description": "Where.",
    }  # fmt: skip


def test_other_references_are_not_followed() -> None:
    schema = {"properties": {"at": {"$ref": "https://evil.example/schema.json"}}}
    assert reduce_schema(schema, plain)["properties"] == {"at": {"type": "string"}}


def test_a_choice_becomes_its_first_meaningful_option() -> None:
    choice = {"anyOf": [{"type": "null"}, {"type": "integer"}, {"type": "string"}]}
    assert reduce_schema({"properties": {"n": choice}}, plain)["properties"] == {
        "n": {"type": "integer"}
    }


def test_the_values_that_a_text_may_have_are_kept() -> None:
    values = {"unit": {"enum": ["m", "ft", "m", 7]}, "kind": {"const": "length"}}
    assert reduce_schema({"properties": values}, plain)["properties"] == {
        "unit": {"type": "string", "enum": ["m", "ft"]},
        "kind": {"type": "string", "enum": ["length"]},
    }


def test_a_recursive_schema_ends() -> None:
    node = {"type": "object", "properties": {f"p{n}": {"$ref": "#"} for n in range(60)}}
    assert len(json.dumps(reduce_schema(node, plain))) <= MAX_SCHEMA_CHARACTERS


def test_tools_with_names_that_providers_refuse_are_left_out() -> None:
    schema = {"properties": {"ok": {}, "not ok": {}, "x" * 65: {}}, "required": ["ok", "not ok"]}
    assert reduce_schema(schema, plain) == {
        "type": "object", "properties": {"ok": {"type": "string"}}, "required": ["ok"],
    }  # fmt: skip


def test_a_large_schema_loses_descriptions_before_properties() -> None:
    schema = {
        "properties": {f"p{n}": {"type": "integer", "description": "x" * 300} for n in range(60)}
    }
    found = reduce_schema(schema, plain)
    assert len(found["properties"]) == 60 and "description" not in found["properties"]["p0"]


@given(st.lists(json_values.filter(lambda v: isinstance(v, dict)), max_size=60))
def test_any_listing_gives_tools_within_the_bounds(listed: list[dict[str, object]]) -> None:
    found = choose_tools([ToolListing("s", listed, lambda _: True)], plain)
    assert len(found.tools) <= MAX_TOOLS


def test_a_secret_is_neither_in_a_description_nor_in_a_schema() -> None:
    listed = {
        "name": "t",
        "description": "key SECRET",
        "inputSchema": {"properties": {"SECRET": {}, "b": {"enum": ["SECRET"]}}},
    }
    found = choose_tools(
        [ToolListing("s", [listed], lambda _: True)], lambda t: t.replace("SECRET", "[]")
    )
    assert "SECRET" not in found.tools[0].model_dump_json()
