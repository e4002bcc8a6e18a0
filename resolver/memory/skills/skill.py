"""The `Skill` value, and the frontmatter of skill files in both existing formats: SKILL.md and
microagents.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from resolver.memory.frontmatter import split_list, to_single_line

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


def find_trigger(trigger: str, text: str) -> str | None:
    """Return the first match of the trigger as the text spells it, or None.

    A trigger matches whole words, in any case; the words of a phrase may be separated by any white
    space. Letters of other scripts count as word boundaries, since many don't separate words by
    spaces: `docker` matches in `dockerの設定`.
    """
    words = r"\s+".join(re.escape(word) for word in trigger.split())
    match = re.search(rf"(?<![A-Za-z0-9_]){words}(?![A-Za-z0-9_])", text, re.IGNORECASE)
    return " ".join(match[0].split()) if match else None


def _to_lower(value: Any) -> Any:
    return value.lower() or None if isinstance(value, str) else value


Trigger = Annotated[
    str, BeforeValidator(to_single_line), Field(min_length=1, max_length=MAX_TRIGGER_LENGTH)
]
TextList = Annotated[
    tuple[Trigger, ...], BeforeValidator(split_list), Field(max_length=MAX_TRIGGERS)
]


class SkillHead(BaseModel):
    """The frontmatter of a skill file. All fields are optional; the path gives a missing name.

    Unknown fields, which other programs may use, are ignored.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str | None = Field(default=None, max_length=MAX_NAME_LENGTH)
    description: Annotated[str | None, BeforeValidator(to_single_line)] = Field(
        default=None, max_length=MAX_DESCRIPTION_LENGTH
    )
    type: Annotated[Literal["repo", "knowledge", "task"] | None, BeforeValidator(_to_lower)] = None
    triggers: TextList = ()
    globs: TextList = ()
    paths: TextList = ()

    @field_validator("triggers")
    @classmethod
    def _check_triggers(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for trigger in value:
            if not re.search(r"\w", trigger):
                raise ValueError(f"the trigger {trigger!r} has no letter and no digit")
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
