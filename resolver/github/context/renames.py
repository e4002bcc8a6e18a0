"""What GitHub's GraphQL API says of new titles: a timeline's RENAMED_TITLE_EVENTs."""

from pydantic import BaseModel, ConfigDict, Field


class RenamesAnswer(BaseModel):
    """A part of an answer, read by its own names for fields."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class RenameEvent(RenamesAnswer):
    """One new title. before: what it was called until then."""

    before: str = Field(alias="previousTitle")


class Renames(RenamesAnswer):
    """Those that were asked for, oldest first."""

    nodes: list[RenameEvent] = []
