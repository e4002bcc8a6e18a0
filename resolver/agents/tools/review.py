"""The tools of the reviewer: `review_comment` and `submit_review`."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from resolver.agents.tools.base import Arguments, Line, OptionalText, Tool, normalize_path, word
from resolver.events import actions as a
from resolver.events.base import ActionBase

MAX_COMMENT_LINES = 300
"""Maximum number of lines that one comment covers."""


def _normalize_suggestion(suggestion: str | None) -> str | None:
    """Return the suggestion without its last newline, None if it is blank.

    A suggestion can't delete lines that way: the comment has to say so in words.
    """
    if suggestion is None or not suggestion.strip():
        return None
    return suggestion.removesuffix("\n")


class RemarkArguments(Arguments):
    """`review_comment`."""

    action_types = (a.ReviewComment,)
    non_blank = ("body",)

    path: Annotated[str, Field(min_length=1), AfterValidator(normalize_path)] = Field(
        description="The file, from the repository's root."
    )
    line: Annotated[int, Field(ge=1)] = Field(
        description="The line it is about, as the diff numbers it; the last one of several."
    )
    body: str = Field(description="The comment, in markdown: what is wrong, when, and why.")
    start_line: Line = Field(
        default=None, description="The first line, if the comment is about several."
    )
    side: Annotated[Literal["RIGHT", "LEFT"], word("RIGHT")] = Field(
        default="RIGHT", description="LEFT for a line that the pull request removes."
    )
    suggestion: Annotated[OptionalText, AfterValidator(_normalize_suggestion)] = Field(
        default=None,
        description="The whole new text of exactly the lines start_line to line, indented as in "
        "the file, without diff signs or a fence. Leave it out if you propose no text.",
    )
    severity: Annotated[Literal["high", "medium", "low"], word("medium")] = Field(
        default="medium",
        description="high: a bug, a security hole, lost data. low: style, naming, a proposal.",
    )

    @model_validator(mode="after")
    def _check_lines(self) -> "RemarkArguments":
        first_line = self.start_line or self.line
        if first_line > self.line:
            raise ValueError(f"start_line {first_line} is after line {self.line}")
        if self.line - first_line >= MAX_COMMENT_LINES:
            raise ValueError(f"a comment is about at most {MAX_COMMENT_LINES} lines")
        return self

    def action(self) -> ActionBase:
        is_range = self.start_line and self.start_line < self.line
        start_line = self.start_line if is_range else None
        return super().action().model_copy(update={"start_line": start_line})


class SubmitArguments(Arguments):
    """`submit_review`."""

    action_types = (a.Finish,)
    renamed: ClassVar = {"summary": "message"}
    non_blank = ("summary",)

    summary: str = Field(
        description="The review as a whole, in markdown: what the pull request does, whether it "
        "does it, what matters most. It does not repeat the comments."
    )
    verdict: Annotated[Literal["comment", "approve", "request_changes"], word("comment")] = Field(
        default="comment", description="What you would do as a maintainer."
    )
    verification: str = Field(default="", description="What you ran, and what it gave.")
    remaining: str = Field(default="", description="What you did not check.")


TOOLS = (
    Tool(name="review_comment", arguments=RemarkArguments, is_general=False),
    Tool(name="submit_review", arguments=SubmitArguments, is_general=False),
)
