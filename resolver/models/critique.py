"""The opinion of a model on a change. It is shown to people and decides nothing."""

from typing import Literal

from pydantic import Field

from resolver.models.base import LoggedModel

CritiqueAnswer = Literal["yes", "partly", "no", "unclear"]
"""The opinion of a model on whether the change does what the issue asks."""


class UnrelatedFile(LoggedModel):
    """A changed file with a part that seems to have nothing to do with the issue."""

    path: str = Field(description="The changed file.")
    reason: str = Field(default="", description="Why it seems unrelated, in the model's words.")


class Critique(LoggedModel):
    """The opinion of a model on a change, in the form of `critique` in outcome.json."""

    model: str = Field(description="Name of the model.")
    addresses_issue: CritiqueAnswer = Field(
        description="Whether the change does what the issue asks."
    )
    reason: str = Field(default="", description="Why, in the model's words.")
    unrelated: tuple[UnrelatedFile, ...] = Field(
        default=(), description="Changed files that seem unrelated to the issue."
    )
    cost: float | None = Field(
        default=None, description="Cost of the opinion in US dollars; null if it is unknown."
    )
