"""What the agent is told of what stands around the issue: its form, failed checks, pictures, other
issues; and the room that all parts of a task share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from resolver.agents.pull_prompt import who
from resolver.memory.text import cut_middle
from resolver.model import Task
from resolver.surroundings import FailedCheck, Form, Picture, Reference

ROOM = 200_000
"""Characters of a whole task, about: what matters most takes its part first."""

LEAST = 400
"""Characters that a part gets in any case: there are few parts."""

MOST_OF_FORM = 6_000
MOST_OF_FIELD = 400
MOST_OF_CHECK = 12_000
MOST_OF_REFERENCE = 3_000
MOST_REFERENCES = 18_000
MOST_LINE = 300


@dataclass
class Room:
    """left: characters that are not taken yet."""

    left: int = ROOM

    def cut(self, text: str, most: int) -> str:
        """The text, cut to `most` characters or to what is left."""
        told = cut_middle(text, min(most, max(self.left, LEAST)))
        self.left -= len(told)
        return told


def fit_pull(pull: dict[str, Any] | None, room: Room) -> dict[str, Any] | None:
    """The values of a pull request within the room: what it changes first, its commits last."""
    if pull is None:
        return None
    fitted = {**pull, "diff": room.cut(pull["diff"], len(pull["diff"]))}
    for name in ("threads", "closes", "reviews"):
        fitted[name] = [
            {**each, "body": room.cut(each["body"], len(each["body"]))} for each in pull[name]
        ]
    return {**fitted, "commits": room.cut(pull["commits"], len(pull["commits"]))}


def told_checks(checks: Sequence[FailedCheck], room: Room) -> list[dict[str, str]]:
    """One block for each check that failed."""
    return [
        {"head": _check_head(check), "body": room.cut(_check_body(check), MOST_OF_CHECK)}
        for check in checks
    ]


def _check_head(check: FailedCheck) -> str:
    step = f", in its step {line(check.step)}" if check.step else ""
    return f"failed check {line(check.name)}: {line(check.conclusion)}{step}"


def _check_body(check: FailedCheck) -> str:
    notes = "\n".join(
        f"{line(note.path)}:{note.line}: {line(note.level)}: {note.message.strip()}"
        for note in check.annotations
    )
    log = f"The end of its log:\n{check.log}" if check.log else ""
    parts = (check.summary.strip(), notes, log)
    return "\n\n".join(part for part in parts if part) or "(it says nothing)"


def told_pictures(pictures: Sequence[Picture]) -> str:
    """A line for each picture."""
    return "\n".join(_picture(picture) for picture in pictures)


def _picture(picture: Picture) -> str:
    what = f"{picture.kind.upper()}, {picture.width} x {picture.height}"
    if picture.why_not:
        host = f" on {line(picture.host)}" if picture.host else ""
        what = f"not fetched: {line(picture.why_not)}; it lies{host or ' nowhere'}"
    alt = f". Its alternative text, not visible on the page: {line(picture.alt)}"
    return f"picture {picture.number}, {line(picture.where)}: {what}{alt if picture.alt else ''}"


def told_references(references: Sequence[Reference], room: Room) -> list[dict[str, str]]:
    """One block for each issue or pull request that belongs here."""
    part = Room(min(room.left, MOST_REFERENCES))
    told = [
        {"head": _reference_head(each), "body": part.cut(_reference_body(each), MOST_OF_REFERENCE)}
        for each in references
    ]
    room.left -= min(room.left, MOST_REFERENCES) - part.left
    return told


def _reference_head(reference: Reference) -> str:
    kind = "pull request" if reference.is_pull_request else "issue"
    by = who(reference.author, reference.association)
    known = f"{line(reference.relation)}, {line(reference.state)}"
    return f"{kind} #{reference.number}, {known}, by {by}"


def _reference_body(reference: Reference) -> str:
    late = "(its text was edited after the request)" if reference.is_late else "(no text)"
    return f"{reference.title}\n\n{reference.body.strip() or late}"


def told_facts(task: Task) -> str:
    """Labels, type, milestone and who is assigned, in one line each."""
    facts = (
        ("Labels", ", ".join(map(line, task.labels))),
        ("Type", line(task.issue_type)),
        ("Milestone", line(task.milestone)),
        ("Assigned to", ", ".join(map(line, task.assignees))),
    )
    return "\n".join(f"{name}: {value}" for name, value in facts if value)


def told_form(form: Form | None, room: Room) -> str:
    """What the form asks for, a line each; "" where none is known."""
    if form is None:
        return ""
    notes = {"given": "", "empty": " [left empty]", "missing": " [its heading is not there]"}
    lines = [
        f"- {line(each.label)}{notes[each.answer]}"
        + (f" -- {cut_middle(each.description, MOST_OF_FIELD)}" if each.description else "")
        for each in form.fields
    ]
    head = f"{line(form.name)} ({line(form.path)})"
    return room.cut("\n".join([head, *lines]), MOST_OF_FORM)


def line(text: str) -> str:
    """On one line, cut."""
    return cut_middle(" ".join(text.split()), MOST_LINE)
