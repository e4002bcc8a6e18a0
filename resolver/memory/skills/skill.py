"""What a skill is, and the heads of its files in both forms that exist: SKILL.md, microagents."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

Kind = Literal["always", "knowledge", "task"]
"""always: told at the beginning. knowledge: on a trigger, or when the agent asks. task: asked for
by a person, by its name after a slash; the agent may ask for it too."""

MAX_NAME = 80
MAX_DESCRIPTION = 1_024
MAX_TRIGGERS = 50
MAX_TRIGGER = 100


class Origin(StrEnum):
    """Who keeps it. Of two skills with one name the first in this order counts."""

    REPOSITORY = "repository"
    ORGANIZATION = "organization"
    SHIPPED = "shipped"


def named(text: str) -> str:
    """The text as a skill's name: lower case, `-` for whatever is no letter, digit, `.` or `-`;
    "" where there is nothing to make one of."""
    return re.sub(r"[^a-z0-9.-]+", "-", text.lower()).strip("-.")[:MAX_NAME]


def _listed(value: Any) -> Any:
    """A list, also where it is written as text with commas."""
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _words(value: Any) -> Any:
    return " ".join(value.split()) if isinstance(value, str) else value


Trigger = Annotated[str, BeforeValidator(_words), Field(min_length=1, max_length=MAX_TRIGGER)]
Listed = Annotated[tuple[Trigger, ...], BeforeValidator(_listed), Field(max_length=MAX_TRIGGERS)]


class SkillFileHead(BaseModel):
    """Fields of a file's head. What others' programs keep there besides is let be."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)


class SkillInput(SkillFileHead):
    """A value that a task skill takes. Without a default it is required unless it says otherwise.

    choices: the values it may have; any when empty.
    """

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", max_length=MAX_NAME)
    description: Annotated[str, BeforeValidator(_words)] = ""
    type: Literal["string", "integer", "number", "boolean"] = "string"
    required: bool | None = None
    default: str | None = None
    choices: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()

    @field_validator("default", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        return str(value).lower() if isinstance(value, bool) else value

    @property
    def is_required(self) -> bool:
        return self.default is None if self.required is None else self.required


class SkillHead(SkillFileHead):
    """The head of a skill's file. All of it is optional: names come from paths."""

    name: str = Field(default="", max_length=MAX_NAME)
    description: Annotated[str, BeforeValidator(_words)] = Field(
        default="", max_length=MAX_DESCRIPTION
    )
    type: Annotated[Literal["", "repo", "knowledge", "task"], BeforeValidator(_lower)] = ""
    triggers: Listed = ()
    globs: Listed = ()
    paths: Listed = ()
    inputs: tuple[SkillInput, ...] = Field(default=(), max_length=20)

    @field_validator("triggers")
    @classmethod
    def _hold_a_word(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for trigger in value:
            if not re.search(r"\w", trigger):
                raise ValueError(f"the trigger {trigger!r} has no letter and no digit")
        return value

    @model_validator(mode="before")
    @classmethod
    def _without_nothing(cls, data: Any) -> Any:
        """A field that is there without a value is not there."""
        if isinstance(data, Mapping):
            return {name: value for name, value in data.items() if value is not None}
        return data

    @field_validator("inputs")
    @classmethod
    def _each_once(cls, value: tuple[SkillInput, ...]) -> tuple[SkillInput, ...]:
        names = [one.name for one in value]
        if len(set(names)) < len(names):
            raise ValueError("two inputs have one name")
        return value


@dataclass(frozen=True)
class Skill:
    """One skill, ready to be told.

    description: one line for who chooses among many. source: the file, from the top of its
    repository, with the repository's name before it where it is another one. commands: names by
    which a person can ask for it after a slash. triggers: words and phrases. globs: files.
    """

    name: str
    description: str
    body: str
    source: str
    origin: Origin
    kind: Kind
    commands: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    inputs: tuple[SkillInput, ...] = ()
