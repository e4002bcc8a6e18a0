"""The tools of the reviewer: a comment on lines of the diff, and the end of the review."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from resolver.agents.argument_types import Arguments, Line, OptionalText
from resolver.events import actions as a
from resolver.events.base import ActionBase

MOST_LINES = 300
"""Maximum number of lines that one comment covers."""

_SEVERITIES = {
    "critical": "high", "blocker": "high", "major": "high", "error": "high", "bug": "high",
    "moderate": "medium", "warning": "medium", "minor": "low", "nit": "low", "info": "low",
    "style": "low", "trivial": "low", "suggestion": "low",
}  # fmt: skip
"""Synonyms of severities that models use."""

_SIDES = {"old": "LEFT", "before": "LEFT", "left": "LEFT", "new": "RIGHT", "after": "RIGHT"}
_VERDICTS = {"approved": "approve", "changes_requested": "request_changes", "commented": "comment"}


def _severity(value: Any) -> Any:
    word = value.strip().lower() if isinstance(value, str) else value
    return _SEVERITIES.get(word, word or "medium") if isinstance(word, str) else value


def _side(value: Any) -> Any:
    word = value.strip() if isinstance(value, str) else value
    if not isinstance(word, str):
        return value
    return _SIDES.get(word.lower(), word.upper() or "RIGHT")


def _verdict(value: Any) -> Any:
    word = value.strip().lower().replace(" ", "_") if isinstance(value, str) else value
    return _VERDICTS.get(word, word or "comment") if isinstance(word, str) else value


class RemarkArguments(Arguments):
    """`review_comment`."""

    path: str = Field(min_length=1, description="The file, from the repository's root.")
    line: Annotated[int, Field(ge=1)] = Field(
        description="The line it is about, as the diff numbers it; the last one of several."
    )
    body: str = Field(description="The comment, in markdown: what is wrong, when, and why.")
    start_line: Line = Field(default=None, description="The first line, when it is about several.")
    side: Annotated[Literal["RIGHT", "LEFT"], BeforeValidator(_side)] = Field(
        default="RIGHT", description="LEFT for a line that the pull request takes out."
    )
    suggestion: OptionalText = Field(
        default=None,
        description="The whole new text of exactly the lines start_line to line, indented as in "
        "the file, without diff signs or a fence. Leave it out where you propose no text.",
    )
    severity: Annotated[Literal["high", "medium", "low"], BeforeValidator(_severity)] = Field(
        default="medium",
        description="high: a bug, a security hole, lost data. low: style, naming, a wish.",
    )

    @model_validator(mode="after")
    def _is_a_range(self) -> "RemarkArguments":
        if not self.body.strip():
            raise ValueError("body is empty")
        first = self.start_line or self.line
        if first > self.line:
            raise ValueError(f"start_line {first} is after line {self.line}")
        if self.line - first >= MOST_LINES:
            raise ValueError(f"a comment is about at most {MOST_LINES} lines")
        return self

    def action(self) -> ActionBase:
        start = self.start_line if self.start_line and self.start_line < self.line else None
        return a.ReviewComment(
            path=_plain(self.path),
            line=self.line,
            start_line=start,
            side=self.side,
            body=self.body,
            suggestion=_lines(self.suggestion),
            severity=self.severity,
        )


class SubmitArguments(Arguments):
    """`submit_review`."""

    summary: str = Field(
        description="The review as a whole, in markdown: what the pull request does, whether it "
        "does it, what matters most. It does not repeat the comments."
    )
    verdict: Annotated[
        Literal["comment", "approve", "request_changes"], BeforeValidator(_verdict)
    ] = Field(default="comment", description="What you would do as a maintainer.")
    verification: str = Field(default="", description="What you ran, and what it gave.")
    remaining: str = Field(default="", description="What you did not check.")

    @model_validator(mode="after")
    def _says_something(self) -> "SubmitArguments":
        if not self.summary.strip():
            raise ValueError("summary is empty")
        return self

    def action(self) -> ActionBase:
        return a.Finish(
            message=self.summary,
            verdict=self.verdict,
            verification=self.verification,
            remaining=self.remaining,
        )


def _plain(path: str) -> str:
    """Return the path without a leading `./`, as git writes it.

    The prefixes `a/` and `b/` of diffs are not removed: the diff that the agent gets has none.
    """
    return path.strip().removeprefix("./")


def _lines(suggestion: str | None) -> str | None:
    """Return the suggestion without its last newline, None if it is blank.

    A suggestion can't delete lines that way: the comment has to say so in words.
    """
    if suggestion is None or not suggestion.strip():
        return None
    return suggestion.removesuffix("\n")
