"""What GitHub's GraphQL API says of new titles: a timeline's RENAMED_TITLE_EVENTs."""

from pydantic import BaseModel, ConfigDict, Field


class Answer(BaseModel):
    """A part of an answer, read by its own names for fields."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class Renamed(Answer):
    """One new title. before: what it was called until then."""

    before: str = Field(alias="previousTitle")


class Renames(Answer):
    """Those that were asked for, oldest first."""

    nodes: list[Renamed] = []
