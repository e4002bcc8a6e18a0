"""Notes that a model writes about the turns that are left out, as free text or in fields."""

import json
from collections.abc import Sequence
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from resolver.config.templates import render
from resolver.llm.base import ToolSpec
from resolver.memory.condensers.model_call import Asker, record_of
from resolver.memory.condensers.view import CondenserView
from resolver.memory.text import marker_for, truncate_middle
from resolver.memory.turns import Turn
from resolver.models.run import Completion

LONGEST = 6_000
"""Maximum characters of notes that are kept."""

MOST_ASKED = 4_000
"""Maximum characters of the user's messages that are quoted to the model."""

TOOL = "note_state"


class Writer(Protocol):
    """Writes notes about turns that are about to be forgotten."""

    def write(self, view: CondenserView, turns: Sequence[Turn]) -> str:
        """Return notes on the given turns and on everything that was forgotten before them.

        Empty if the model gave no usable answer. A warning has been logged in that case.
        """
        ...


class FreeNotes:
    """Writes notes as free text in the model's own form."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    def write(self, view: CondenserView, turns: Sequence[Turn]) -> str:
        """See `Writer`."""
        question = render(
            "memory/summarize.md.j2", **shown_to_model(view, record_of(turns), view.notes)
        )
        completion = self._asker.ask(view, question)
        if completion is None:
            return ""
        if not completion.text.strip():
            self._asker.refuse("its reply was empty")
        return truncate_middle(completion.text.strip(), LONGEST)


class WorkState(BaseModel):
    """The fields that the model is asked to fill in."""

    model_config = ConfigDict(frozen=True)

    findings: tuple[str, ...] = Field(
        default=(), description="what was found out, with paths, names and line numbers"
    )
    cause: tuple[str, ...] = Field(default=(), description="what causes the problem, and why")
    tried: tuple[str, ...] = Field(
        default=(), description="what was tried and did not work, and why"
    )
    decisions: tuple[str, ...] = Field(default=(), description="what was decided, with the reason")
    done: tuple[str, ...] = Field(default=(), description="what is done")
    next_steps: tuple[str, ...] = Field(default=(), description="what is under way or comes next")
    open_questions: tuple[str, ...] = Field(default=(), description="what is not known yet")


class FieldNotes:
    """Writes notes in fixed fields, so that the model leaves no aspect out.

    The model answers with a tool call if it supports tools, otherwise with JSON in its text.
    """

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    def write(self, view: CondenserView, turns: Sequence[Turn]) -> str:
        """See `Writer`."""
        fields = [(name, field.description) for name, field in WorkState.model_fields.items()]
        question = render(
            "memory/structured.md.j2",
            **shown_to_model(view, record_of(turns), view.notes),
            tool=self._asker.calls_tools,
            tool_name=TOOL,
            fields=fields,
        )
        completion = self._asker.ask(view, question, _tool())
        if completion is None:
            return ""
        try:
            state = WorkState.model_validate(_object_in(completion), extra="ignore")
        except (ValueError, ValidationError) as error:
            self._asker.refuse(f"its reply has not the form asked for: {str(error)[:200]}")
            return ""
        parts = [
            (name.replace("_", " ").capitalize(), [item[:400] for item in items[:12]])
            for name, items in state.model_dump().items()
        ]
        told = render("memory/structured_notes.md.j2", parts=parts).strip()
        if not told:
            self._asker.refuse("its reply was empty")
        return truncate_middle(told, LONGEST)


def shown_to_model(view: CondenserView, record: str, notes: str) -> dict[str, str]:
    """Return the texts that a question quotes, and the marker that delimits them."""
    asked = _words_of_user(view)
    marker = marker_for(asked + notes + record)
    return {"asked": asked, "notes": notes, "record": record, "marker": marker}


def _words_of_user(view: CondenserView) -> str:
    """Return the user's messages. If they are too long: the first, which states the task, and the
    last, both truncated."""
    words = view.log.user_words
    if len("\n\n".join(words)) <= MOST_ASKED:
        return "\n\n".join(words)
    share = MOST_ASKED // 4
    return "\n\n".join(
        [truncate_middle(words[0], 3 * share), *(truncate_middle(w, share) for w in words[-1:])]
    )


def _tool() -> ToolSpec:
    properties: dict[str, Any] = {
        name: {"type": "array", "items": {"type": "string"}, "description": field.description}
        for name, field in WorkState.model_fields.items()
    }
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    function = {"name": TOOL, "description": "Notes the state of the work.", "parameters": schema}
    return {"type": "function", "function": function}


def _object_in(completion: Completion) -> dict[str, Any]:
    """Return the fields from the tool call or from the JSON object in the text.

    Raises ValueError if there is no JSON object.
    """
    call = next((call for call in completion.tool_calls if call.name == TOOL), None)
    text = call.arguments if call else completion.text
    begin, end = text.find("{"), text.rfind("}") + 1
    try:
        data = json.loads(text[begin:end]) if 0 <= begin < end else None
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(data, dict):
        raise ValueError("there is no JSON object in it")
    return data
