"""Template values for the context of an issue, and the character budget of a task prompt.

The context consists of the issue form, failed checks, pictures and referenced issues. All parts of
the prompt share the budget.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from resolver.agents.pull_request_prompt import who
from resolver.memory.text import truncate_middle
from resolver.models.issue_context import FailedCheck, Form, Picture, Reference
from resolver.models.run import Task

ROOM = 200_000
"""Approximate maximum length of a task prompt, in characters.

The most important parts take their share first.
"""

LEAST = 400
"""Minimum number of characters that a part gets, even if the budget is used up."""

# Maximum lengths of single parts and of all references together, in characters.
MOST_OF_FORM = 6_000
MOST_OF_FIELD = 400
MOST_OF_CHECK = 12_000
MOST_OF_REFERENCE = 3_000
MOST_REFERENCES = 18_000
MOST_LINE = 300


@dataclass
class PromptRoom:
    """The character budget of a prompt.

    left: characters that are not used yet.
    """

    left: int = ROOM

    def cut(self, text: str, most: int) -> str:
        """Return the text truncated to `most` characters or to what is left of the budget.

        The length of the result is subtracted from `left`. A text always gets LEAST characters, so
        that `left` can become negative.
        """
        told = truncate_middle(text, min(most, max(self.left, LEAST)))
        self.left -= len(told)
        return told


def fit_pull(pull: dict[str, Any] | None, room: PromptRoom) -> dict[str, Any] | None:
    """Return the values of a pull request truncated to the budget, with the diff first."""
    if pull is None:
        return None
    fitted = {**pull, "diff": room.cut(pull["diff"], len(pull["diff"]))}
    for name in ("threads", "closes", "reviews"):
        fitted[name] = [
            {**each, "body": room.cut(each["body"], len(each["body"]))} for each in pull[name]
        ]
    return {**fitted, "commits": room.cut(pull["commits"], len(pull["commits"]))}


def render_failed_checks(checks: Sequence[FailedCheck], room: PromptRoom) -> list[dict[str, str]]:
    """Return one block for each failed check."""
    return [
        {"head": _check_head(check), "body": room.cut(_check_body(check), MOST_OF_CHECK)}
        for check in checks
    ]


def _check_head(check: FailedCheck) -> str:
    step = f", in its step {format_line(check.step)}" if check.step else ""
    return f"failed check {format_line(check.name)}: {format_line(check.conclusion)}{step}"


def _check_body(check: FailedCheck) -> str:
    notes = "\n".join(
        f"{format_line(note.path)}:{note.line}: {format_line(note.level)}: {note.message.strip()}"
        for note in check.annotations
    )
    log = f"The end of its log:\n{check.log}" if check.log else ""
    parts = (check.summary.strip(), notes, log)
    return "\n\n".join(part for part in parts if part) or "(it says nothing)"


def render_pictures(pictures: Sequence[Picture]) -> str:
    """Return one line for each picture."""
    return "\n".join(_picture(picture) for picture in pictures)


def _picture(picture: Picture) -> str:
    what = f"{picture.kind.upper()}, {picture.width} x {picture.height}"
    if picture.why_not:
        host = f" on {format_line(picture.host)}" if picture.host else ""
        what = f"not fetched: {format_line(picture.why_not)}; it lies{host or ' nowhere'}"
    alt = f". Its alternative text, not visible on the page: {format_line(picture.alt)}"
    shown = alt if picture.alt else ""
    return f"picture {picture.number}, {format_line(picture.where)}: {what}{shown}"


def render_references(references: Sequence[Reference], room: PromptRoom) -> list[dict[str, str]]:
    """Return one block for each referenced issue or pull request."""
    part = PromptRoom(min(room.left, MOST_REFERENCES))
    told = [
        {"head": _reference_head(each), "body": part.cut(_reference_body(each), MOST_OF_REFERENCE)}
        for each in references
    ]
    room.left -= min(room.left, MOST_REFERENCES) - part.left
    return told


def _reference_head(reference: Reference) -> str:
    kind = "pull request" if reference.is_pull_request else "issue"
    by = who(reference.author, reference.association)
    known = f"{format_line(reference.relation)}, {format_line(reference.state)}"
    return f"{kind} #{reference.number}, {known}, by {by}"


def _reference_body(reference: Reference) -> str:
    late = "(its text was edited after the request)" if reference.is_late else "(no text)"
    return f"{reference.title}\n\n{reference.body.strip() or late}"


def render_facts(task: Task) -> str:
    """Return labels, type, milestone and assignees, one line each."""
    facts = (
        ("Labels", ", ".join(map(format_line, task.labels))),
        ("Type", format_line(task.issue_type)),
        ("Milestone", format_line(task.milestone)),
        ("Assigned to", ", ".join(map(format_line, task.assignees))),
    )
    return "\n".join(f"{name}: {value}" for name, value in facts if value)


def render_form(form: Form | None, room: PromptRoom) -> str:
    """Return the fields of the issue form, one line each; "" if the form is unknown."""
    if form is None:
        return ""
    notes = {"given": "", "empty": " [left empty]", "missing": " [its heading is not there]"}
    lines = [
        f"- {format_line(each.label)}{notes[each.answer]}"
        + (f" -- {truncate_middle(each.description, MOST_OF_FIELD)}" if each.description else "")
        for each in form.fields
    ]
    head = f"{format_line(form.name)} ({format_line(form.path)})"
    return room.cut("\n".join([head, *lines]), MOST_OF_FORM)


def format_line(text: str) -> str:
    """Return the text on one line, truncated."""
    return truncate_middle(" ".join(text.split()), MOST_LINE)
