"""Notes that a model writes about what is left out, in free words or in fields."""

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
"""Characters of notes that are kept."""

MOST_ASKED = 4_000
"""Characters of the user's words that the model is told."""

TOOL = "note_state"


class Writer(Protocol):
    """Writes notes."""

    def write(self, view: CondenserView, turns: Sequence[Turn]) -> str:
        """Notes on the turns that are going to be forgotten and on all that was before; empty when
        the model gave none, which has been told then."""
        ...


class FreeNotes:
    """Notes in the model's own form."""

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
    """What a model is asked to note."""

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
    """Notes in fields, so that none is forgotten; by a tool call where the model can."""

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
    """What a question quotes, and the marker that fences it in."""
    asked = _words_of_user(view)
    marker = marker_for(asked + notes + record)
    return {"asked": asked, "notes": notes, "record": record, "marker": marker}


def _words_of_user(view: CondenserView) -> str:
    """What people asked for, shortened: the beginning, where the task stands, and the latest."""
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
    """The fields of the call, or of the JSON object in the text. Raises ValueError."""
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
