"""The `Skill` value, and the frontmatter of skill files in both existing formats: SKILL.md and
microagents.

The inputs of a task skill, given by a command such as `/release-notes since=v1.2`, are parsed,
checked and inserted into the skill's text.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from resolver.config.templates import render
from resolver.errors import Refused

Kind = Literal["always", "knowledge", "task"]
"""When a skill is loaded. always: when a run begins. knowledge: when a trigger matches, or when the
agent asks for it. task: when a person asks for it by its name after a slash, or the agent does."""

MAX_NAME_LENGTH = 80
MAX_DESCRIPTION_LENGTH = 1_024
MAX_TRIGGERS = 50
MAX_TRIGGER_LENGTH = 100


class Origin(StrEnum):
    """The maintainer of a skill. Of two skills with one name, the first in this order is used."""

    REPOSITORY = "repository"
    ORGANIZATION = "organization"
    SHIPPED = "shipped"


def to_skill_name(text: str) -> str:
    """Return the text as a skill name: lower case, with `-` for everything except letters, digits,
    `.` and `-`. "" if nothing is left."""
    return re.sub(r"[^a-z0-9.-]+", "-", text.lower()).strip("-.")[:MAX_NAME_LENGTH]


def _split_list(value: Any) -> Any:
    """Split text at its commas; leave a list as it is. None becomes an empty tuple."""
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _to_lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _to_single_line(value: Any) -> Any:
    return " ".join(value.split()) if isinstance(value, str) else value


Trigger = Annotated[
    str, BeforeValidator(_to_single_line), Field(min_length=1, max_length=MAX_TRIGGER_LENGTH)
]
TextList = Annotated[
    tuple[Trigger, ...], BeforeValidator(_split_list), Field(max_length=MAX_TRIGGERS)
]


class SkillFileHead(BaseModel):
    """Base of the frontmatter models. Unknown fields, which other programs may use, are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class SkillInput(SkillFileHead):
    """Represents an input of a task skill. It is required if it has no default, unless `required`
    says otherwise."""

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", max_length=MAX_NAME_LENGTH)
    description: Annotated[str, BeforeValidator(_to_single_line)] = ""
    required: bool | None = None
    default: str | None = None

    @property
    def is_required(self) -> bool:
        return self.default is None if self.required is None else self.required


class SkillHead(SkillFileHead):
    """The frontmatter of a skill file. All fields are optional; the path gives a missing name."""

    name: str = Field(default="", max_length=MAX_NAME_LENGTH)
    description: Annotated[str, BeforeValidator(_to_single_line)] = Field(
        default="", max_length=MAX_DESCRIPTION_LENGTH
    )
    type: Annotated[Literal["", "repo", "knowledge", "task"], BeforeValidator(_to_lower)] = ""
    triggers: TextList = ()
    globs: TextList = ()
    paths: TextList = ()
    inputs: tuple[SkillInput, ...] = Field(default=(), max_length=20)

    @field_validator("triggers")
    @classmethod
    def _check_triggers(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for trigger in value:
            if not re.search(r"\w", trigger):
                raise ValueError(f"the trigger {trigger!r} has no letter and no digit")
        return value

    @model_validator(mode="before")
    @classmethod
    def _drop_missing(cls, data: Any) -> Any:
        """Remove fields without a value, so that they get their defaults."""
        if isinstance(data, Mapping):
            return {name: value for name, value in data.items() if value != ""}
        return data

    @field_validator("inputs")
    @classmethod
    def _check_unique(cls, value: tuple[SkillInput, ...]) -> tuple[SkillInput, ...]:
        names = [skill_input.name for skill_input in value]
        if len(set(names)) < len(names):
            raise ValueError("two inputs have one name")
        return value


@dataclass(frozen=True)
class Skill:
    """Represents a skill that is ready to be loaded.

    description: one line that helps to choose among many skills.
    source: path of the file in its repository, with the repository's name before it if it is not
        the run's own repository.
    commands: names by which a person can ask for it after a slash.
    triggers: words and phrases that load it.
    globs: patterns of the files whose change loads it.
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


MAX_VALUE_LENGTH = 2_000

_ASSIGNMENT = re.compile(r"""(?<!\S)([A-Za-z_][\w-]*)=("[^"]*"|'[^']*'|\S*)""")
_PLACEHOLDER = re.compile(r"\$\{\s*([A-Za-z_][\w-]*)\s*\}|\{\{\s*([A-Za-z_][\w-]*)\s*\}\}")


def fill_task_skill(skill: Skill, arguments: str) -> str:
    """Return the skill's text with `${name}` and `{{ name }}` replaced by the person's values.

    arguments: the text after the skill's name. `name=value` sets an input, quotes allow spaces in a
        value; other text is ignored here.

    Values are inserted literally: a placeholder inside a value is not replaced. Raises Refused with
    the problems and a list of all inputs if one is missing, unknown or invalid.
    """
    values = _parse_values(skill, arguments)

    def replace_placeholder(match: re.Match[str]) -> str:
        return values.get(match[1] or match[2], match[0])

    return _PLACEHOLDER.sub(replace_placeholder, skill.body)


def _parse_values(skill: Skill, arguments: str) -> Mapping[str, str]:
    inputs = {skill_input.name: skill_input for skill_input in skill.inputs}
    if not inputs:
        return {}
    assigned = {match[1]: _unquote(match[2]) for match in _ASSIGNMENT.finditer(arguments)}
    problems = [f"there is no input `{name}`" for name in assigned if name not in inputs]
    values: dict[str, str] = {}
    for name, skill_input in inputs.items():
        if name in assigned:
            values[name] = assigned[name]
            # without quoting the value, since it may contain anything
            if len(values[name]) > MAX_VALUE_LENGTH:
                problems.append(f"`{name}` has more than {MAX_VALUE_LENGTH} characters")
            elif not values[name] and skill_input.is_required:
                problems.append(f"`{name}` is empty")
        elif skill_input.is_required:
            problems.append(f"`{name}` is missing")
        else:
            values[name] = skill_input.default or ""
    if problems:
        what = render("run/skill_inputs.md.j2", skill=skill, problems=problems).strip()
        raise Refused(what, f"Ask again with its inputs: `/{skill.name} {_example(skill)}`.")
    return values


def _unquote(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return " ".join((value[1:-1] if is_quoted else value).split())


def _example(skill: Skill) -> str:
    required = [skill_input for skill_input in skill.inputs if skill_input.is_required] or list(
        skill.inputs[:1]
    )
    return " ".join(f"{skill_input.name}=..." for skill_input in required)
