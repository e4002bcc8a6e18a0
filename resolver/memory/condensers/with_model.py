"""What condensers ask a model: notes about the turns that are left out, or
which turns are still needed.

A failed call of the condenser's model does not stop the run: it is logged as a warning, and the
summary is written from the log alone.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from resolver.config.templates import render
from resolver.errors import LimitReached, ModelError
from resolver.events.lifecycle import Condensation
from resolver.events.observations import CmdOutput, ErrorObservation
from resolver.llm.base import ChatMessage, Model, ToolSpec
from resolver.memory.condensers.rules import forget, middle_turns, select_turns
from resolver.memory.condensers.view import CondenserView
from resolver.memory.turns import Turn, action_text, observation_text
from resolver.models.run import Completion
from resolver.models.truncate import marker_for, truncate_middle

MAX_QUESTION_LENGTH = 200_000
"""Maximum characters of a question."""

MIN_RESULT_LENGTH = 200
"""Minimum characters shown of each result, however many there are."""

MAX_EXCERPT_LENGTH = 1_500
"""Maximum characters of one action, and of the text of one reply."""


FAILED, UNUSABLE = "condenser", "condenser_reply"
"""Codes of the warnings in the log: a call gave no reply; a reply was unusable."""

_FALLBACK_WARNING = "the condenser's model gave no usable answer, so only the log is summarized"


class SummaryClient:
    """Asks the condenser's model.

    model: logs its replies before `complete` returns.
    warn: called with a code (`FAILED` or `UNUSABLE`) and a sentence if there was no usable answer.
    """

    def __init__(self, model: Model, warn: Callable[[str, str], None]) -> None:
        self._model = model
        self._warn = warn

    @property
    def calls_tools(self) -> bool:
        """True if the model supports native tool calls."""
        return self._model.supports_tools

    def ask(
        self, view: CondenserView, question: str, tool: ToolSpec | None = None
    ) -> Completion | None:
        """Return the model's reply to the question; None if the call failed.

        A reply that is already in the log, because the process that asked was killed, is taken from
        there.

        tool: a tool for the model to call, if it supports tools.
        """
        recorded = view.log.next_reply()
        if recorded is not None:
            return recorded
        messages: list[ChatMessage] = [
            {"role": "system", "content": render("memory/condenser.md.j2").strip()},
            {"role": "user", "content": question},
        ]
        tools = [tool] if tool is not None and self.calls_tools else None
        try:
            completion = self._model.complete(messages, tools)
        except (ModelError, LimitReached) as error:
            self._warn(FAILED, f"{_FALLBACK_WARNING}: {error.what}")
            return None
        # mark the reply, which is in the log now, as read
        view.log.next_reply()
        return completion

    def refuse(self, reason: str) -> None:
        """Log that the model's reply was not used, and why."""
        self._warn(UNUSABLE, f"{_FALLBACK_WARNING}: {reason}")


def render_turns(turns: Sequence[Turn], max_length: int = MAX_QUESTION_LENGTH) -> str:
    """Return the turns as text for a model to read, numbered from 1.

    The text has about `max_length` characters.
    """
    results = sum(len(turn.results) for turn in turns)
    max_result_length = max(MIN_RESULT_LENGTH, min(4_000, max_length // (2 * max(1, results))))
    steps = []
    for turn in turns:
        reply_text = turn.reply.completion.text.strip() if turn.reply else ""
        action_results = []
        for action in turn.actions:
            result = turn.results.get(action.id)
            shown_result = (
                observation_text(result, max_result_length) if result is not None else "[no result]"
            )
            action_results.append(
                (truncate_middle(action_text(action), MAX_EXCERPT_LENGTH), shown_result)
            )
        steps.append(
            {"said": truncate_middle(reply_text, MAX_EXCERPT_LENGTH), "done": action_results}
        )
    return truncate_middle(render("memory/record.md.j2", steps=steps).strip(), max_length)


def _describe_turn(turn: Turn) -> str:
    parts = []
    for action in turn.actions[:4]:
        result = turn.results.get(action.id)
        match result:
            case CmdOutput(exit_code=code):
                ending = f"exit code {code}"
            case ErrorObservation():
                ending = "error"
            case _:
                ending = f"{len(result.content)} characters" if result is not None else "no result"
        parts.append(f"{' '.join(action_text(action).split())[:160]} -> {ending}")
    reply_text = " ".join(turn.reply.completion.text.split())[:160] if turn.reply else ""
    return "; ".join([*([f"said: {reply_text}"] if reply_text else []), *parts])


MAX_NOTES_LENGTH = 6_000
"""Maximum characters of notes that are kept."""

MAX_USER_MESSAGES_LENGTH = 4_000
"""Maximum characters of the user's messages that are quoted to the model."""

NOTES_TOOL = "note_state"


@dataclass(frozen=True)
class FreeTextNotes:
    """Asks for notes as free text in the model's own form. A `NoteWriter`."""

    client: SummaryClient

    def __call__(self, view: CondenserView, turns: Sequence[Turn]) -> str | None:
        """Return the notes; None if there is no usable reply."""
        record = _quote(view, render_turns(turns), view.notes)
        completion = self.client.ask(view, render("memory/summarize.md.j2", **record))
        if completion is None:
            return None
        if not completion.text.strip():
            self.client.refuse("its reply was empty")
        return truncate_middle(completion.text.strip(), MAX_NOTES_LENGTH) or None


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


@dataclass(frozen=True)
class StructuredNotes:
    """Asks for notes in fixed fields, so that the model leaves no aspect out. A `NoteWriter`.

    The model answers with a tool call if it supports tools, otherwise with JSON in its text.
    """

    client: SummaryClient

    def __call__(self, view: CondenserView, turns: Sequence[Turn]) -> str | None:
        """Return the notes; None if there is no usable reply."""
        fields = [(name, field.description) for name, field in WorkState.model_fields.items()]
        question = render(
            "memory/structured.md.j2",
            **_quote(view, render_turns(turns), view.notes),
            tool=self.client.calls_tools,
            tool_name=NOTES_TOOL,
            fields=fields,
        )
        completion = self.client.ask(view, question, _notes_tool())
        if completion is None:
            return None
        try:
            state = WorkState.model_validate(_parse_object(completion), extra="ignore")
        except (ValueError, ValidationError) as error:
            self.client.refuse(f"its reply has not the form asked for: {str(error)[:200]}")
            return None
        parts = [
            (name.replace("_", " ").capitalize(), [item[:400] for item in items[:12]])
            for name, items in state.model_dump().items()
        ]
        notes = render("memory/structured_notes.md.j2", parts=parts).strip()
        if not notes:
            self.client.refuse("its reply was empty")
        return truncate_middle(notes, MAX_NOTES_LENGTH) or None


_STEP_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class LLMAttention:
    """Forgets the turns that the condenser's model does not name first, then those that it ranks as
    least important. If the model fails, the oldest turns are forgotten first."""

    client: SummaryClient
    keep_first: int = 2
    keep_last: int = 12

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        if view.target is None or view.size <= view.target:
            return None
        candidates = middle_turns(view, self.keep_first, self.keep_last)
        if not select_turns(view, candidates):
            return None
        return forget(view, select_turns(view, self._least_needed_first(view, candidates)))

    def _least_needed_first(self, view: CondenserView, turns: Sequence[Turn]) -> list[Turn]:
        lines = "\n".join(f"{n}. {_describe_turn(turn)}" for n, turn in enumerate(turns, start=1))
        question = render(
            "memory/attention.md.j2",
            **_quote(view, lines, notes=""),
            count=len(turns),
            keep=max(1, len(turns) // 2),
        )
        completion = self.client.ask(view, question)
        if completion is None:
            return list(turns)
        numbers = [int(text) - 1 for text in _STEP_NUMBER.findall(completion.text[:20_000])]
        needed = list(dict.fromkeys(n for n in numbers if 0 <= n < len(turns)))
        if not needed:
            self.client.refuse("its reply names none of the steps")
        others = [turn for number, turn in enumerate(turns) if number not in set(needed)]
        return [*others, *(turns[number] for number in reversed(needed))]


def _quote(view: CondenserView, record: str, notes: str) -> dict[str, str]:
    """Return the texts that a question quotes, and the marker that delimits them."""
    user_messages = _user_messages(view)
    marker = marker_for(user_messages + notes + record)
    return {"asked": user_messages, "notes": notes, "record": record, "marker": marker}


def _user_messages(view: CondenserView) -> str:
    """Return the user's messages. If they are too long: the first, which states the task, and the
    last, both truncated."""
    messages = view.log.user_messages
    if len("\n\n".join(messages)) <= MAX_USER_MESSAGES_LENGTH:
        return "\n\n".join(messages)
    share = MAX_USER_MESSAGES_LENGTH // 4
    return "\n\n".join(
        [
            truncate_middle(messages[0], 3 * share),
            *(truncate_middle(message, share) for message in messages[-1:]),
        ]
    )


def _notes_tool() -> ToolSpec:
    properties: dict[str, Any] = {
        name: {"type": "array", "items": {"type": "string"}, "description": field.description}
        for name, field in WorkState.model_fields.items()
    }
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    function = {
        "name": NOTES_TOOL,
        "description": "Notes the state of the work.",
        "parameters": schema,
    }
    return {"type": "function", "function": function}


def _parse_object(completion: Completion) -> dict[str, Any]:
    """Return the fields from the tool call or from the JSON object in the text.

    Raises ValueError if there is no JSON object.
    """
    call = next((call for call in completion.tool_calls if call.name == NOTES_TOOL), None)
    text = call.arguments if call else completion.text
    start, end = text.find("{"), text.rfind("}") + 1
    try:
        data = json.loads(text[start:end]) if 0 <= start < end else None
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(data, dict):
        raise ValueError("there is no JSON object in it")
    return data
