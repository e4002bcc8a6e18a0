"""The nouns of what stands around an issue or pull request: the form it was written with, what it
refers to, its pictures, and the checks that failed on its commit.

Made in `resolver.github`, kept in the log as parts of the Task, read by the prompts and the memory.
"""

from typing import Literal

from pydantic import Field

from resolver.models.base import LoggedModel


class FormField(LoggedModel):
    """What a form asks for below one of its headings, and whether the description says it."""

    label: str = Field(description="Its heading.")
    description: str = Field(default="", description="What it asks for, cut.")
    answer: Literal["given", "empty", "missing"] = Field(
        default="given",
        description="Whether something stands below it: empty when that is what the form itself "
        "says, missing when the heading is not there.",
    )


class Form(LoggedModel):
    """The issue template that a description was written with. Its words are the repository's, as
    the default branch has them."""

    name: str = Field(description="As people see it when they choose one.")
    path: str = Field(description="Its file, from the repository's root.")
    fields: tuple[FormField, ...] = Field(default=(), description="What it asks for, in order.")


class Reference(LoggedModel):
    """Another issue or pull request of the same repository, as it was at the request."""

    number: int = Field(description="Its number.")
    is_pull_request: bool = Field(default=False, description="Whether it is a pull request.")
    relation: str = Field(
        description="How it belongs here: mentioned, mentions it, closes it, closed by it."
    )
    state: str = Field(description="open, closed or merged.")
    title: str = Field(description="Its title, cleaned.")
    author: str = Field(description="Login of who opened it.")
    association: str = Field(
        default="NONE", description="The author's author_association; not a permission."
    )
    body: str = Field(default="", description="The beginning of its text, cleaned.")
    is_late: bool = Field(
        default=False, description="Whether its text was edited after the request: it is not here."
    )


class Picture(LoggedModel):
    """A picture that somebody put into a text. The text says `[picture N]` in its place."""

    number: int = Field(description="From 1, in the order of the texts.")
    where: str = Field(description="In which text it stands, for a person.")
    author: str = Field(default="", description="Login of who put it there.")
    alt: str = Field(
        default="", description="Its alternative text, cut; readers of the page don't see it."
    )
    host: str = Field(default="", description="Name of the host it lies on.")
    kind: Literal["", "png", "jpeg", "gif", "webp"] = Field(
        default="", description="By its content; empty when it was not fetched."
    )
    width: int = Field(default=0, description="Pixels, as the file's head says.")
    height: int = Field(default=0, description="Pixels, as the file's head says.")
    why_not: str = Field(default="", description="Why it was not fetched; empty when it was.")
    data: str = Field(default="", repr=False, description="The picture as a data: URL.")


class Annotation(LoggedModel):
    """What a check says about lines of a file."""

    path: str = Field(description="From the repository's root.")
    line: int = Field(description="First line, from 1.")
    level: str = Field(default="", description="failure, warning or notice.")
    message: str = Field(description="The words, cut.")


class FailedCheck(LoggedModel):
    """A check run or commit status that says no. Its words are the project's tools', and of
    whatever code they ran."""

    name: str = Field(description="Its name, or a status's context.")
    conclusion: str = Field(description="failure, timed_out, action_required, error, ...")
    url: str = Field(default="", description="Its page.")
    step: str = Field(default="", description="The step of the job that failed.")
    summary: str = Field(default="", description="What it says of itself, cut.")
    annotations: tuple[Annotation, ...] = Field(default=(), description="What it says of lines.")
    log: str = Field(default="", description="The parts of the job's log about the failure.")
