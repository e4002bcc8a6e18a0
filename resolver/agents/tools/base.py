"""The declaration of a tool, and the types that arguments of several tools have.

The types accept the variants that models write, and normalize them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

from resolver.events.base import ActionBase
from resolver.models.approval import RATINGS, SecurityRisk
from resolver.models.base import JsonObject

SECURITY_RISK = "security_risk"
"""Argument with the model's own rating of a call, of each tool that can change something."""

_SCHEMA_KEYS = ("type", "description", "enum", "items")


class Arguments(BaseModel):
    """Arguments of one tool, and their conversion to the action.

    Both dialects validate calls with these models. The JSON schema that is offered to a model and
    the tag that a model writes are derived from them.

    action_types: types of the actions that calls become.
    renamed: names of the action's fields by the names of the arguments, where they differ.
    non_blank: arguments whose text must not be blank.
    verbatim: arguments whose last line break before the closing tag is part of the text.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    action_types: ClassVar[tuple[type[ActionBase], ...]]
    renamed: ClassVar[Mapping[str, str]] = {}
    non_blank: ClassVar[tuple[str, ...]] = ()
    verbatim: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="after")
    def _check_blank(self) -> Self:
        for name in self.non_blank:
            if not getattr(self, name).strip():
                raise ValueError(f"{name} is empty")
        return self

    def action(self) -> ActionBase:
        """Return the action that these arguments ask for."""
        (action_type, *_) = self.action_types
        return action_type(**{self.renamed.get(name, name): value for name, value in self})

    @classmethod
    def offered_schema(
        cls,
        *,
        is_read_only: bool = False,  # noqa: ARG003 - see the tools whose schemas differ
        has_threads: bool = False,  # noqa: ARG003
    ) -> JsonObject:
        """Return the schema in the subset of JSON Schema that all providers accept.

        That subset has no titles, defaults or unions. The docstring of the class is left out.

        is_read_only: the result of the agent is its final message; it publishes no change.
        has_threads: the run was asked about review threads.
        """
        schema = cls.model_json_schema()
        properties = {
            name: {key: value[key] for key in _SCHEMA_KEYS if key in value}
            for name, value in schema["properties"].items()
        }
        # A call without a rating is accepted, but a model that may leave it out does so.
        rating = [SECURITY_RISK] if SECURITY_RISK in properties else []
        return {
            "type": "object",
            "properties": properties,
            "required": [*schema.get("required", []), *rating],
            "additionalProperties": False,
        }


Requirement = Literal["delegates", "recall"]


@dataclass(frozen=True)
class Tool:
    """A tool that a model can call.

    `prompts/agent/tools/NAME.md.j2` describes it to the model, or else the docstring of its
    arguments, if that says enough.

    arguments: model of its arguments, which knows the action that a call becomes.
    requires: what a run must offer so that the tool can be executed (`AvailableTools`); None if
    every run can execute it.
    is_general: False for a tool that only agents have which list it among their tools.
    is_editing: True if it can change files. An agent without such a tool is read-only.
    """

    name: str
    arguments: type[Arguments]
    requires: Requirement | None = None
    is_general: bool = True
    is_editing: bool = False


def none_if_blank(value: Any) -> Any:
    """Return None for blank text and for words that models write for "no value"."""
    blank = isinstance(value, str) and value.strip().lower() in {"", "null", "none"}
    return None if blank else value


def word(default: str | None) -> BeforeValidator:
    """Accept the values of an enum in any case and with spaces or hyphens; a blank one, or a word
    for "no value", is the default."""
    change_case = str.upper if default and default.isupper() else str.lower

    def normalize(value: Any) -> Any:
        value = none_if_blank(value)
        is_text = isinstance(value, str)
        text = change_case(value.strip().replace(" ", "_").replace("-", "_")) if is_text else value
        return default if text is None else text

    return BeforeValidator(normalize)


def partial_to_false(value: Any) -> Any:
    """Return False for "partial", which models write for `task_completed`; else the value."""
    return False if isinstance(value, str) and value.strip().lower() == "partial" else value


def _parse_rating(value: Any) -> SecurityRisk | None:
    """Return the rating, None for anything else: no work is lost because of it."""
    rating = value.strip().lower() if isinstance(value, str) else ""
    return SecurityRisk(rating) if rating in RATINGS else None


def parse_json_list(text: str) -> list[Any]:
    """Return the list that the text is as JSON, [] if it is not a JSON list."""
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return []
    return value if isinstance(value, list) else []


def parse_objects(value: Any) -> Any:
    """Return a list of objects from JSON text, the form in which a tag holds it; other values
    unchanged. Raises ValueError for other text."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return ()
    if not isinstance(value, str):
        return value
    if not (items := parse_json_list(value)) and value.strip() != "[]":
        raise ValueError("this has to be a JSON list of objects")
    return items


def normalize_path(path: str) -> str:
    """Return the path without a leading `./`, as git writes it.

    The prefixes `a/` and `b/` of diffs are not removed: the diff that the agent gets has none.
    """
    return path.strip().removeprefix("./")


def _empty_if_none(value: Any) -> Any:
    return "" if value is None else value


def list_schema(properties: JsonObject, required: Sequence[str]) -> WithJsonSchema:
    """Return the schema of a list of objects.

    properties: the type of each, or its whole schema if it has one that is more than a type.
    """
    schemas = {
        name: {"type": value} if isinstance(value, str) else value
        for name, value in properties.items()
    }
    item = {"type": "object", "properties": schemas, "required": list(required)}
    return WithJsonSchema({"type": "array", "items": item})


TextOrEmpty = Annotated[str, BeforeValidator(_empty_if_none)]
OptionalText = Annotated[str | None, WithJsonSchema({"type": "string"})]
Line = Annotated[
    Annotated[int, Field(ge=0)] | None,
    BeforeValidator(none_if_blank),
    WithJsonSchema({"type": "integer"}),
]
StatedRisk = Annotated[
    SecurityRisk | None,
    BeforeValidator(_parse_rating),
    WithJsonSchema({"type": "string", "enum": [risk.value for risk in RATINGS]}),
    Field(description="See Security risk."),
]
TaskCompleted = Annotated[bool, BeforeValidator(partial_to_false)]
