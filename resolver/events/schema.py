"""The JSON schema of a line of an event log, generated from the event types."""

from typing import Any

from pydantic.json_schema import models_json_schema

from resolver.events.base import SCHEMA_VERSION, EventBase
from resolver.events.log import EVENT_TYPES
from resolver.models.base import JsonObject

JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"


REQUIRED_FIELDS = ["id", "timestamp", "source", "kind"]
"""Fields that every line has."""


def log_schema() -> JsonObject:
    """Return one schema for all lines: `kind` selects the type.

    For an unlisted kind, only the common fields are described.
    """
    types: list[type[EventBase]] = [EventBase, *EVENT_TYPES]
    _, schema = models_json_schema(
        [(event_type, "validation") for event_type in types],
        ref_template="#/$defs/{model}",
    )
    definitions: dict[str, JsonObject] = schema["$defs"]
    for definition in definitions.values():
        # A newer version may add fields to any object.
        definition.pop("additionalProperties", None)
    for event_type in EVENT_TYPES:
        kind = definitions[event_type.__name__]["properties"]["kind"]
        kind["description"] = "Says that the line is of this type."
    common_fields = definitions.pop("EventBase")["properties"]
    common_fields["kind"] = {"type": "string", "description": "Which type of event the line is."}
    return {
        "$schema": JSON_SCHEMA_DIALECT,
        "$id": f"urn:resolver:event-log:{SCHEMA_VERSION}",
        "title": "One line of a Resolver event log",
        "description": (
            f"Version {SCHEMA_VERSION} of the format, which `schema_version` of the first line "
            "names. Lines are numbered 0, 1, 2, ... Kinds and fields that are not listed come from "
            "a newer Resolver and are to be kept."
        ),
        "type": "object",
        "required": REQUIRED_FIELDS,
        "properties": common_fields,
        "allOf": [_kind_condition(event_type) for event_type in EVENT_TYPES],
        "$defs": definitions,
    }


def _kind_condition(event_type: type[EventBase]) -> dict[str, Any]:
    return {
        "if": {"properties": {"kind": {"const": event_type.model_fields["kind"].default}}},
        "then": {"$ref": f"#/$defs/{event_type.__name__}"},
    }
