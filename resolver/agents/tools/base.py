"""The declaration of a tool, and the types that arguments of several tools have.

The types accept the variants that models write, and normalize them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    """Arguments of one tool, and their conversion to the action and back.

    Both dialects validate calls with these models. The JSON schema that is offered to a model and
    the tag that a model writes are derived from them.

    action_type: type of the action that a call becomes.
    renamed: names of the action's fields by the names of the arguments, where they differ.
    non_blank: arguments whose text must not be blank.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    action_type: ClassVar[type[ActionBase]]
    renamed: ClassVar[Mapping[str, str]] = {}
    non_blank: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="after")
    def _check_blank(self) -> Self:
        for name in self.non_blank:
            if not getattr(self, name).strip():
                raise ValueError(f"{name} is empty")
        return self

    def action(self) -> ActionBase:
        """Return the action that these arguments ask for."""
        return self.action_type(**{self.renamed.get(name, name): value for name, value in self})

    @classmethod
    def from_action(cls, action: ActionBase) -> JsonObject | None:
        """Return the arguments that ask for the action, or None if this tool has no such action."""
        if not isinstance(action, cls.action_type):
            return None
        return {name: getattr(action, cls.renamed.get(name, name)) for name in cls.model_fields}

    @classmethod
    def texts_of(cls, arguments: JsonObject) -> dict[str, str]:
        """Return the arguments as texts from which they are validated to the same values.

        A type whose text is not the usual one has a serializer. None has no text.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        values = cls.model_construct(**given).model_dump(exclude_unset=True)
        return {name: _format_value(value) for name, value in values.items()}

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


def _format_value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            text = f"{value:g}"
            return text if float(text) == value else repr(value)
        case _:
            return str(value)


@dataclass(frozen=True)
class Tag:
    """The form of a tool in the tag dialect. Arguments that are not named here are attributes.

    name: name of the tag; "" for the name of the tool, which is accepted in any case.
    content: the argument that is the content of the tag; "" if the tag contains tags only.
    sections: arguments that can follow the content, each as a tag of its own.
    children: arguments that are written as tags in a tag without content, in this order.
    verbatim: those children whose last line break is part of the text.
    explicit: attributes that are written even if they have their default.
    """

    name: str = ""
    content: str = ""
    sections: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    verbatim: tuple[str, ...] = ()
    explicit: tuple[str, ...] = ()


Requirement = Literal["", "delegates", "recall"]


@dataclass(frozen=True)
class Tool:
    """A tool that a model can call. `prompts/agent/tools/NAME.md.j2` describes it to the model.

    arguments: model of its arguments, which knows the action that a call becomes.
    tag: its form in the tag dialect.
    examples: actions that prompts in the tag dialect show, by the name that templates use.
    requires: what a run must offer so that the tool can be executed (`AvailableTools`); "" if every
    run can execute it.
    is_general: False for a tool that only agents have which list it among their tools.
    is_editing: True if it can change files. An agent without such a tool is read-only.
    """

    name: str
    arguments: type[Arguments]
    tag: Tag
    examples: Mapping[str, ActionBase] = field(default_factory=dict)
    requires: Requirement = ""
    is_general: bool = True
    is_editing: bool = False

    @property
    def tag_name(self) -> str:
        """Name of the tag that is offered to a model."""
        return self.tag.name or self.name


def none_if_blank(value: Any) -> Any:
    """Return None for blank text and for words that models write for "no value"."""
    blank = isinstance(value, str) and value.strip().lower() in {"", "null", "none"}
    return None if blank else value


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


def write_objects(items: Sequence[BaseModel]) -> str:
    """Return a list of objects as JSON text, from which `parse_objects` returns the same."""
    return json.dumps([item.model_dump(mode="json", exclude_none=True) for item in items])


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
    Field(description="Your rating of this call: see Security risk."),
]
TaskCompleted = Annotated[bool, BeforeValidator(partial_to_false)]
