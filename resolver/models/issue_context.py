"""Models of what belongs to an issue or pull request besides its conversation.

These are the issues it refers to, its pictures, and the checks that failed on its commit. Created
by `resolver.github.context`, stored in the log as parts of the Task, used by the prompts and the
memory.
"""

from typing import Literal

from pydantic import Field

from resolver.models.base import LoggedModel

Relation = Literal["closed by it", "closes it", "mentioned"]
"""How an issue or pull request is related to the one that is worked on."""


class Reference(LoggedModel):
    """Another issue or pull request of the same repository, as of the request."""

    number: int = Field(description="Number of the issue or pull request.")
    is_pull_request: bool = Field(default=False, description="True when it is a pull request.")
    relation: Relation = Field(description="Its relation to the one that is worked on.")
    state: str = Field(description="open, closed or merged.")
    title: str = Field(description="Its title, cleaned.")
    author: str = Field(description="Login of the person who opened it.")
    association: str = Field(
        default="NONE", description="The author's author_association; not a permission."
    )
    body: str = Field(default="", description="Beginning of its text, cleaned.")
    is_late: bool = Field(
        default=False,
        description="True when its text was edited after the request; the text is then left out.",
    )


class Picture(LoggedModel):
    """A picture in a text. The text contains `[picture N]` in its place."""

    number: int = Field(description="Number of the picture, from 1, in the order of the texts.")
    where: str = Field(description="The text that it is in, for a person.")
    author: str = Field(default="", description="Login of the text's author.")
    alt: str = Field(
        default="", description="Its alternative text, truncated; readers of the page don't see it."
    )
    host: str = Field(default="", description="Host that serves it.")
    kind: Literal["", "png", "jpeg", "gif", "webp"] = Field(
        default="", description="Format by its content; empty when it was not fetched."
    )
    width: int = Field(default=0, description="Width in pixels, as the file's header says.")
    height: int = Field(default=0, description="Height in pixels, as the file's header says.")
    why_not: str = Field(default="", description="Why it was not fetched; empty when it was.")
    data: str = Field(default="", repr=False, description="The picture as a data: URL.")


class Annotation(LoggedModel):
    """A message of a check about lines of a file."""

    path: str = Field(description="Path from the repository's root.")
    line: int = Field(description="First line, counted from 1.")
    level: str = Field(default="", description="failure, warning or notice.")
    message: str = Field(description="The message, truncated.")


class FailedCheck(LoggedModel):
    """A failed check run or commit status.

    Its texts come from the project's tools, and from any code that they ran.
    """

    name: str = Field(description="Name of the check run, or context of the commit status.")
    conclusion: str = Field(description="failure, timed_out, action_required, error, ...")
    url: str = Field(default="", description="Address of its page.")
    step: str = Field(default="", description="Step of the job that failed.")
    summary: str = Field(default="", description="Its summary of itself, truncated.")
    annotations: tuple[Annotation, ...] = Field(
        default=(), description="Its messages about lines of code."
    )
    log: str = Field(default="", description="Parts of the job's log about the failure.")
