"""The tools that a model can call: validated arguments, and the action that each call becomes.

Both dialects use these models, and the JSON schemas offered to a model are generated from them. The
tools of LocAgent are in `code_arguments.py`.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from resolver.agents.argument_types import (
    Answers,
    Arguments,
    Items,
    Line,
    Lines,
    OptionalText,
    Reason,
    Seconds,
    TextOrEmpty,
    build_thread_answers,
    partial_to_false,
)
from resolver.agents.code_arguments import ExploreArguments, PlacesArguments, SearchArguments
from resolver.events import actions as a
from resolver.events.base import ActionBase

MAX_NOTE_LENGTH = 300
"""Maximum length of a note, in characters."""


class RecallArguments(Arguments):
    """`recall`."""

    query: TextOrEmpty = Field(
        description="The name of a skill, or words of what you want to know; empty for a list."
    )

    def action(self) -> ActionBase:
        return a.Recall(query=self.query.strip())


class RememberArguments(Arguments):
    """`remember`."""

    note: str = Field(
        description=f"One fact in a sentence or two, at most {MAX_NOTE_LENGTH} characters. It is "
        "read by somebody who knows nothing of this run."
    )

    @field_validator("note")
    @classmethod
    def _check_note(cls, note: str) -> str:
        note = " ".join(note.split())
        if not note:
            raise ValueError("note is empty")
        if len(note) > MAX_NOTE_LENGTH:
            raise ValueError(f"note has {len(note)} characters; say it in {MAX_NOTE_LENGTH}")
        return note

    def action(self) -> ActionBase:
        return a.Remember(note=self.note)


MAX_COMMENT_LINES = 300
"""Maximum number of lines that one comment covers."""

_SEVERITIES = {
    "critical": "high", "blocker": "high", "major": "high", "error": "high", "bug": "high",
    "moderate": "medium", "warning": "medium", "minor": "low", "nit": "low", "info": "low",
    "style": "low", "trivial": "low", "suggestion": "low",
}  # fmt: skip
"""Synonyms of severities that models use."""

_SIDES = {"old": "LEFT", "before": "LEFT", "left": "LEFT", "new": "RIGHT", "after": "RIGHT"}
_VERDICTS = {"approved": "approve", "changes_requested": "request_changes", "commented": "comment"}


def _normalize_severity(value: Any) -> Any:
    severity = value.strip().lower() if isinstance(value, str) else value
    return _SEVERITIES.get(severity, severity or "medium") if isinstance(severity, str) else value


def _normalize_side(value: Any) -> Any:
    side = value.strip() if isinstance(value, str) else value
    if not isinstance(side, str):
        return value
    return _SIDES.get(side.lower(), side.upper() or "RIGHT")


def _normalize_verdict(value: Any) -> Any:
    verdict = value.strip().lower().replace(" ", "_") if isinstance(value, str) else value
    return _VERDICTS.get(verdict, verdict or "comment") if isinstance(verdict, str) else value


class RemarkArguments(Arguments):
    """`review_comment`."""

    path: str = Field(min_length=1, description="The file, from the repository's root.")
    line: Annotated[int, Field(ge=1)] = Field(
        description="The line it is about, as the diff numbers it; the last one of several."
    )
    body: str = Field(description="The comment, in markdown: what is wrong, when, and why.")
    start_line: Line = Field(
        default=None, description="The first line, if the comment is about several."
    )
    side: Annotated[Literal["RIGHT", "LEFT"], BeforeValidator(_normalize_side)] = Field(
        default="RIGHT", description="LEFT for a line that the pull request removes."
    )
    suggestion: OptionalText = Field(
        default=None,
        description="The whole new text of exactly the lines start_line to line, indented as in "
        "the file, without diff signs or a fence. Leave it out if you propose no text.",
    )
    severity: Annotated[Literal["high", "medium", "low"], BeforeValidator(_normalize_severity)] = (
        Field(
            default="medium",
            description="high: a bug, a security hole, lost data. low: style, naming, a proposal.",
        )
    )

    @model_validator(mode="after")
    def _check_lines(self) -> "RemarkArguments":
        if not self.body.strip():
            raise ValueError("body is empty")
        first_line = self.start_line or self.line
        if first_line > self.line:
            raise ValueError(f"start_line {first_line} is after line {self.line}")
        if self.line - first_line >= MAX_COMMENT_LINES:
            raise ValueError(f"a comment is about at most {MAX_COMMENT_LINES} lines")
        return self

    def action(self) -> ActionBase:
        start_line = self.start_line if self.start_line and self.start_line < self.line else None
        return a.ReviewComment(
            path=_normalize_path(self.path),
            line=self.line,
            start_line=start_line,
            side=self.side,
            body=self.body,
            suggestion=_normalize_suggestion(self.suggestion),
            severity=self.severity,
        )


class SubmitArguments(Arguments):
    """`submit_review`."""

    summary: str = Field(
        description="The review as a whole, in markdown: what the pull request does, whether it "
        "does it, what matters most. It does not repeat the comments."
    )
    verdict: Annotated[
        Literal["comment", "approve", "request_changes"], BeforeValidator(_normalize_verdict)
    ] = Field(default="comment", description="What you would do as a maintainer.")
    verification: str = Field(default="", description="What you ran, and what it gave.")
    remaining: str = Field(default="", description="What you did not check.")

    @model_validator(mode="after")
    def _check_summary(self) -> "SubmitArguments":
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


def _normalize_path(path: str) -> str:
    """Return the path without a leading `./`, as git writes it.

    The prefixes `a/` and `b/` of diffs are not removed: the diff that the agent gets has none.
    """
    return path.strip().removeprefix("./")


def _normalize_suggestion(suggestion: str | None) -> str | None:
    """Return the suggestion without its last newline, None if it is blank.

    A suggestion can't delete lines that way: the comment has to say so in words.
    """
    if suggestion is None or not suggestion.strip():
        return None
    return suggestion.removesuffix("\n")


class BashArguments(Arguments):
    """`execute_bash`."""

    command: str = Field(
        description="The command, or with is_input what to send to the running program."
    )
    timeout: Seconds = Field(
        default=None, description="Seconds until the command is left to itself; at most 3600."
    )
    is_input: bool = Field(
        default=False,
        description="Send `command` to the program that is still running instead of running it.",
    )

    @model_validator(mode="after")
    def _check_not_empty(self) -> "BashArguments":
        if not self.is_input and not self.command.strip():
            raise ValueError("command is empty; only with is_input it may be, to wait for output")
        return self

    def action(self) -> ActionBase:
        return a.CmdRun(command=self.command, timeout=self.timeout, is_input=self.is_input)


class CellArguments(Arguments):
    """`execute_ipython_cell`."""

    code: str = Field(description="Python code of the cell; IPython magics work.")

    @model_validator(mode="after")
    def _check_not_empty(self) -> "CellArguments":
        if not self.code.strip():
            raise ValueError("code is empty")
        return self

    def action(self) -> ActionBase:
        return a.IPythonRunCell(code=self.code)


_REQUIRED_EDITOR_ARGUMENTS = {
    "view": (),
    "create": ("file_text",),
    "str_replace": ("old_str",),
    "insert": ("insert_line", "new_str"),
    "undo_edit": (),
}
_OPTIONAL_EDITOR_ARGUMENTS = {"view": ("view_range",), "str_replace": ("new_str",)}


class EditorArguments(Arguments):
    """`str_replace_editor`. Which of the texts a command takes is in the two tables above."""

    command: Literal["view", "create", "str_replace", "insert", "undo_edit"] = Field(
        description="What to do."
    )
    path: str = Field(
        min_length=1, description="File or directory; absolute, or from the repository's root."
    )
    file_text: OptionalText = Field(default=None, description="create: the whole file.")
    old_str: OptionalText = Field(
        default=None, description="str_replace: the text to replace; must occur exactly once."
    )
    new_str: OptionalText = Field(
        default=None,
        description="str_replace: what comes in its place, empty to delete. "
        "insert: the lines to insert.",
    )
    insert_line: Line = Field(
        default=None, description="insert: the line to insert after; 0 is the top of the file."
    )
    view_range: Lines = Field(
        default=None,
        description="view: first and last line, e.g. [10, 40]; -1 as last means to the end.",
    )

    @model_validator(mode="after")
    def _check_command(self) -> "EditorArguments":
        required, optional = (
            _REQUIRED_EDITOR_ARGUMENTS[self.command],
            _OPTIONAL_EDITOR_ARGUMENTS.get(self.command, ()),
        )
        missing = [n for n in required if getattr(self, n) is None]
        if missing:
            raise ValueError(f"{self.command} needs {' and '.join(missing)}")
        names = ("file_text", "old_str", "new_str", "insert_line", "view_range")
        # Models often send all arguments and leave those that don't apply empty. Only a value that
        # does not apply is an error.
        extra = [
            n
            for n in names
            if n not in (*required, *optional) and getattr(self, n) not in (None, "")
        ]
        if extra:
            raise ValueError(f"{self.command} does not take {' or '.join(extra)}")
        if self.command == "str_replace" and not self.old_str:
            raise ValueError("old_str is empty; use insert to add lines, create for a new file")
        return self

    def action(self) -> ActionBase:
        match self.command:
            case "view":
                return a.FileRead(path=self.path, view_range=self.view_range)
            case "create":
                return a.FileWrite(path=self.path, content=self.file_text or "")
            case "str_replace":
                return a.FileEdit(
                    command="str_replace",
                    path=self.path,
                    old_str=self.old_str,
                    new_str=self.new_str or "",
                )
            case "insert":
                return a.FileEdit(
                    command="insert",
                    path=self.path,
                    new_str=self.new_str,
                    insert_line=self.insert_line,
                )
            case "undo_edit":
                return a.FileEdit(command="undo_edit", path=self.path)


class BrowserArguments(Arguments):
    """`browser`."""

    code: str = Field(description="One or more action calls, one a line.")

    @model_validator(mode="after")
    def _check_not_empty(self) -> "BrowserArguments":
        if not self.code.strip():
            raise ValueError("code is empty")
        return self

    def action(self) -> ActionBase:
        return a.BrowseInteractive(code=self.code)


class ThinkArguments(Arguments):
    """`think`."""

    thought: str = Field(description="The thought.")

    def action(self) -> ActionBase:
        return a.Think(content=self.thought)


class FinishArguments(Arguments):
    """`finish`."""

    message: str = Field(description="A title in one line; then, if needed, a short summary.")
    task_completed: Annotated[bool, BeforeValidator(partial_to_false)] = Field(
        default=True, description="false when the issue is not, or only partly, resolved."
    )
    reason: Reason = Field(
        default="",
        description="Only where you leave everything as it was: cannot_reproduce, already_fixed, "
        "needs_answer (the message is then your question) or not_wanted.",
    )
    cause: TextOrEmpty = Field(default="", description="What was wrong.")
    change: TextOrEmpty = Field(
        default="", description="What changed, and why it is the right change."
    )
    verification: TextOrEmpty = Field(
        default="", description="The commands you ran and what they gave, before and after."
    )
    remaining: TextOrEmpty = Field(
        default="", description="Decisions you took, doubts, what you did not check."
    )
    threads: Answers = Field(
        default=(),
        description="For each conversation that you were asked about: its id, whether you did what "
        "is asked there, and what to tell the person, in one or two sentences.",
    )
    pull_request_title: TextOrEmpty = Field(
        default="",
        description="Only where your change is added to a pull request: a new title for it, if the "
        "one it has does not cover the whole any more.",
    )

    def action(self) -> ActionBase:
        sections = self.model_dump(exclude={"threads", "reason", "cause", "task_completed"})
        return a.Finish(
            task_completed=self.task_completed and not self.reason,
            declined=self.reason,
            root_cause=self.cause,
            threads=build_thread_answers(self.threads),
            **sections,
        )


class PlanArguments(Arguments):
    """`plan`."""

    items: Items = Field(description="The whole plan, in order, each time.")

    def action(self) -> ActionBase:
        return a.PlanUpdate(items=self.items)


class DelegateArguments(Arguments):
    """`delegate`."""

    agent: str = Field(default="CodeActAgent", min_length=1, description="Name of the agent.")
    task: str = Field(
        description="All it has to know: what to do, where, and what to report. It sees nothing "
        "of this conversation."
    )

    @model_validator(mode="after")
    def _check_not_empty(self) -> "DelegateArguments":
        if not self.task.strip():
            raise ValueError("task is empty")
        return self

    def action(self) -> ActionBase:
        return a.Delegate(agent=self.agent, task=self.task)


TOOLS: dict[str, type[Arguments]] = {
    "execute_bash": BashArguments,
    "execute_ipython_cell": CellArguments,
    "str_replace_editor": EditorArguments,
    "think": ThinkArguments,
    "plan": PlanArguments,
    "delegate": DelegateArguments,
    "browser": BrowserArguments,
    "recall": RecallArguments,
    "remember": RememberArguments,
    "finish": FinishArguments,
    "search_code": SearchArguments,
    "explore_code": ExploreArguments,
    "report_places": PlacesArguments,
    "review_comment": RemarkArguments,
    "submit_review": SubmitArguments,
}
"""All tools by name. A tool is offered only if the run can execute it."""
