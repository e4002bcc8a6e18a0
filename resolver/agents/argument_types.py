"""Types of tool arguments. Each accepts the variants that models write and normalizes them.

The argument `threads` of `finish`, the answers to review threads, has its form in the tag dialect
here too.
"""

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.models.pull_request import ThreadAnswer
from resolver.models.run import Declined, PlanItem

MAX_TIMEOUT = 3600.0
"""Maximum timeout that a model may ask for, in seconds."""


def _none_if_blank(value: Any) -> Any:
    blank = isinstance(value, str) and value.strip().lower() in {"", "null", "none"}
    return None if blank else value


def _parse_line_range(value: Any) -> Any:
    """Parse a line range from a list, or from text like "[1, 40]", "1,40" or "1-40"."""
    value = _none_if_blank(value)
    if not isinstance(value, str):
        return value
    parts = value.strip().strip("[]()").split("," if "," in value else "-", 1)
    return [part.strip() for part in parts]


def partial_to_false(value: Any) -> Any:
    """Return False for "partial", which models write for `task_completed`; else the value."""
    return False if isinstance(value, str) and value.strip().lower() == "partial" else value


def _normalize_reason(value: Any) -> Any:
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    reason = value.strip().lower().replace(" ", "_").replace("-", "_")
    return "" if reason in {"none", "null"} else reason


Reason = Annotated[
    Declined,
    BeforeValidator(_normalize_reason),
    # Some providers refuse an empty string in an enum.
    WithJsonSchema({"type": "string", "enum": [word for word in get_args(Declined) if word]}),
]
Seconds = Annotated[
    Annotated[float, Field(gt=0, le=MAX_TIMEOUT, allow_inf_nan=False)] | None,
    BeforeValidator(_none_if_blank),
    WithJsonSchema({"type": "number"}),
]
Lines = Annotated[
    tuple[int, int] | None,
    BeforeValidator(_parse_line_range),
    WithJsonSchema({"type": "array", "items": {"type": "integer"}}),
]
Line = Annotated[
    Annotated[int, Field(ge=0)] | None,
    BeforeValidator(_none_if_blank),
    WithJsonSchema({"type": "integer"}),
]
_PLAN_LINE = re.compile(r"(?:(?:[-*]|\d+[.)])\s+)?\[([ xX>~-])\]\s+(.*)")
_CHECKBOX_STATUSES = {" ": "todo", "x": "done", "X": "done"}
_STATUSES = {"pending": "todo", "in_progress": "doing", "completed": "done"}
"""Synonyms of statuses that models use."""

MAX_PLAN_ITEMS = 50
"""Maximum number of items of a plan."""


def _parse_plan(value: Any) -> Any:
    """Parse a plan from a list of objects or titles, or from text.

    Text has one item per line, like `[x] title`.
    """
    if isinstance(value, str):
        value = parse_json_list(value) or [
            _parse_plan_line(line) for line in value.splitlines() if line.strip()
        ]
    if not isinstance(value, list):
        return value
    return [_normalize_plan_item(item) for item in value]


def parse_json_list(text: str) -> list[Any]:
    """Return the list that the text is as JSON, [] if it is not a JSON list."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return value if isinstance(value, list) else []


def _parse_plan_line(line: str) -> dict[str, str]:
    match = _PLAN_LINE.fullmatch(line.strip())
    if match is None:
        return {"title": line}
    return {"title": match[2], "status": _CHECKBOX_STATUSES.get(match[1], "doing")}


def _normalize_plan_item(item: Any) -> Any:
    if isinstance(item, str):
        item = {"title": item}
    if not isinstance(item, dict) or not isinstance(item.get("title"), str):
        return item
    title = " ".join(item["title"].split())
    if not title:
        raise ValueError("an item has no title")
    status = item.get("status", "todo")
    normalized = _STATUSES.get(status, status) if isinstance(status, str) else status
    return {**item, "title": title, "status": normalized}


Items = Annotated[
    Annotated[tuple[PlanItem, ...], Field(max_length=MAX_PLAN_ITEMS)],
    BeforeValidator(_parse_plan),
    WithJsonSchema(
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "title": {"type": "string"},
                    "status": {"type": "string", "enum": ["todo", "doing", "done"]},
                },
                "required": ["title", "status"],
            },
        }
    ),
]


def _empty_if_none(value: Any) -> Any:
    return "" if value is None else value


TextOrEmpty = Annotated[str, BeforeValidator(_empty_if_none)]
OptionalText = Annotated[str | None, WithJsonSchema({"type": "string"})]


class Arguments(BaseModel):
    """Arguments of one tool."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    def action(self) -> ActionBase:
        """Return the action that these arguments ask for."""
        raise NotImplementedError


MAX_ANSWER_LENGTH = 4_000
"""Maximum length of an answer, in characters. It is one reply in a review thread, not a report."""

MAX_ANSWERS = 60
"""Maximum number of answers."""

_THREAD_ID = re.compile(r"\[?\s*[Tt]?(\d{1,3})\s*\]?")
_STATUS_WORDS = {True: "addressed", False: "answered"}
_ANSWER_LINE = re.compile(
    r"[ \t]*(?:[-*]\s+)?\[?([Tt]\d{1,3})\]?\s+(addressed|answered)\s*:[ \t]*(.*)"
)


def _parse_answers(value: Any) -> Any:
    """Parse answers from objects, from an object keyed by id, or from text.

    Lines of text look like `T1 addressed: words`.
    """
    if isinstance(value, str):
        value = parse_json_list(value) or _parse_answer_lines(value)
    if isinstance(value, dict):
        value = [_keyed_answer(id, answer) for id, answer in value.items()]
    if not isinstance(value, list | tuple):
        return () if value is None else value
    return [_normalize_answer(item) for item in value]


def _parse_answer_lines(text: str) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = []
    for line in text.strip().splitlines():
        match = _ANSWER_LINE.fullmatch(line)
        if match:
            addressed = match[2] == _STATUS_WORDS[True]
            answers.append({"id": match[1], "addressed": addressed, "answer": match[3]})
        elif answers:
            answers[-1]["answer"] += f"\n{line}"
        elif line.strip():
            raise ValueError(f"{line[:100]!r} is not an answer: write `T1 addressed: words`")
    return [{**answer, "answer": answer["answer"].strip()} for answer in answers]


def _keyed_answer(id: str, answer: Any) -> Any:
    return {"id": id, **answer} if isinstance(answer, dict) else {"id": id, "answer": answer}


def _normalize_answer(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    item = {key: value for key, value in item.items() if value is not None}
    match = _THREAD_ID.fullmatch(str(item.get("id", "")).strip())
    return {**item, "id": f"T{int(match[1])}"} if match else item


class _ValidatedAnswer(BaseModel):
    """One validated answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(max_length=20)
    addressed: bool = False
    answer: str = Field(default="", max_length=MAX_ANSWER_LENGTH)


Answers = Annotated[
    Annotated[tuple[_ValidatedAnswer, ...], Field(max_length=MAX_ANSWERS)],
    BeforeValidator(_parse_answers),
    WithJsonSchema(
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "addressed": {"type": "boolean"},
                    "answer": {"type": "string"},
                },
                "required": ["id", "addressed", "answer"],
            },
        }
    ),
]


def build_thread_answers(answers: Sequence[_ValidatedAnswer]) -> tuple[ThreadAnswer, ...]:
    """Return the answers as values of an event. The last of several for one thread wins."""
    by_id = {answer.id: ThreadAnswer(**answer.model_dump()) for answer in answers}
    return tuple(by_id.values())


def write_answers(answers: Sequence[ThreadAnswer]) -> str:
    """Return the answers as text, with lines like `T1 addressed: words`.

    They are returned as JSON if the text would not be parsed to the same answers.
    """
    lines = "\n".join(
        f"{answer.id} {_STATUS_WORDS[answer.addressed]}: {answer.answer}" for answer in answers
    )
    fields = [
        {"id": answer.id, "addressed": answer.addressed, "answer": answer.answer}
        for answer in answers
    ]
    try:
        parsed = _parse_answers(lines)
    except ValueError:
        parsed = []
    return lines if parsed == fields else json.dumps(fields)


def correct_thread_answers(action: ActionBase, labels: Sequence[str]) -> ActionBase:
    """Return the action, after checking the review threads that a `Finish` answers.

    labels: labels of those threads. If there are none, answers that the model made up are removed;
    otherwise answers to unknown threads turn the action into an `Invalid` with the reason.
    """
    if not isinstance(action, a.Finish) or not action.threads:
        return action
    if not labels:
        return action.model_copy(update={"threads": ()})
    unknown = [answer.id for answer in action.threads if answer.id not in labels]
    if not unknown:
        return action
    reason = render("agent/unknown_threads.md.j2", unknown=unknown, labels=labels).strip()
    return a.Invalid(
        reason=reason, thought=action.thought, tool_call=action.tool_call, reply=action.reply
    )
