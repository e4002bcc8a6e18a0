"""The argument `threads` of `finish`: answers to review threads, in either dialect."""

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from resolver.agents.argument_types import json_list
from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.models.pull_request import ThreadAnswer

LONGEST_ANSWER = 4_000
"""Maximum length of an answer, in characters. It is one reply in a review thread, not a report."""

MOST_ANSWERS = 60
"""Maximum number of answers."""

_ID = re.compile(r"\[?\s*[Tt]?(\d{1,3})\s*\]?")
_WORD_OF = {True: "addressed", False: "answered"}
_LINE = re.compile(r"[ \t]*(?:[-*]\s+)?\[?([Tt]\d{1,3})\]?\s+(addressed|answered)\s*:[ \t]*(.*)")


def _answers(value: Any) -> Any:
    """Parse answers from objects, from an object keyed by id, or from text.

    Lines of text look like `T1 addressed: words`.
    """
    if isinstance(value, str):
        value = json_list(value) or _written(value)
    if isinstance(value, dict):
        value = [_named(id, said) for id, said in value.items()]
    if not isinstance(value, list | tuple):
        return () if value is None else value
    return [_answer(item) for item in value]


def _written(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for line in text.strip().splitlines():
        begins = _LINE.fullmatch(line)
        if begins:
            done = begins[2] == _WORD_OF[True]
            found.append({"id": begins[1], "addressed": done, "answer": begins[3]})
        elif found:
            found[-1]["answer"] += f"\n{line}"
        elif line.strip():
            raise ValueError(f"{line[:100]!r} is no answer: write `T1 addressed: words`")
    return [{**each, "answer": each["answer"].strip()} for each in found]


def _named(id: str, said: Any) -> Any:
    return {"id": id, **said} if isinstance(said, dict) else {"id": id, "answer": said}


def _answer(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    item = {key: value for key, value in item.items() if value is not None}
    found = _ID.fullmatch(str(item.get("id", "")).strip())
    return {**item, "id": f"T{int(found[1])}"} if found else item


class _Said(BaseModel):
    """One validated answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(max_length=20)
    addressed: bool = False
    answer: str = Field(default="", max_length=LONGEST_ANSWER)


Answers = Annotated[
    Annotated[tuple[_Said, ...], Field(max_length=MOST_ANSWERS)],
    BeforeValidator(_answers),
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


def answers_of(said: Sequence[_Said]) -> tuple[ThreadAnswer, ...]:
    """Return the answers as values of an event. The last of several for one thread wins."""
    by_id = {each.id: ThreadAnswer(**each.model_dump()) for each in said}
    return tuple(by_id.values())


def write_answers(answers: Sequence[ThreadAnswer]) -> str:
    """Return the answers as text, with lines like `T1 addressed: words`.

    They are returned as JSON if the text would not be parsed to the same answers.
    """
    lines = "\n".join(f"{x.id} {_WORD_OF[x.addressed]}: {x.answer}" for x in answers)
    fields = [{"id": x.id, "addressed": x.addressed, "answer": x.answer} for x in answers]
    try:
        again = _answers(lines)
    except ValueError:
        again = []
    return lines if again == fields else json.dumps(fields)


def correct_thread_answers(action: ActionBase, labels: Sequence[str]) -> ActionBase:
    """Return the action, after checking the review threads that a `Finish` answers.

    labels: labels of those threads. If there are none, answers that the model made up are removed;
    otherwise answers to unknown threads turn the action into an `Invalid` with the reason.
    """
    if not isinstance(action, a.Finish) or not action.threads:
        return action
    if not labels:
        return action.model_copy(update={"threads": ()})
    unknown = [each.id for each in action.threads if each.id not in labels]
    if not unknown:
        return action
    reason = render("agent/unknown_threads.md.j2", unknown=unknown, labels=labels).strip()
    return a.Invalid(
        reason=reason, thought=action.thought, tool_call=action.tool_call, reply=action.reply
    )
