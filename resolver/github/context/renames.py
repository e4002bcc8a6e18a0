"""Models of title changes in GitHub's GraphQL API: RENAMED_TITLE_EVENT items of a timeline."""

from pydantic import BaseModel, ConfigDict, Field


class RenamesAnswer(BaseModel):
    """Base class for parts of an answer, which can be created by field name as well as by alias."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class RenameEvent(RenamesAnswer):
    """One change of a title. before: the title before it."""

    before: str = Field(alias="previousTitle")


class Renames(RenamesAnswer):
    """The requested title changes, oldest first."""

    nodes: list[RenameEvent] = []
