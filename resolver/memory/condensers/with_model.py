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

from pydantic import BaseModel, ConfigDict, Field

from resolver.config.templates import render
from resolver.errors import LimitReached, ModelError
from resolver.events.lifecycle import Condensation
from resolver.llm.base import ChatMessage, Model
from resolver.memory.condensers.rules import forget, middle_and_ends, select_turns
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


SERVICE = "condenser"
"""Name of the service in the log whose model writes summaries for condensers."""

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

    def ask(self, question: str) -> Completion | None:
        """Return the model's reply to the question; None if the call failed."""
        messages: list[ChatMessage] = [
            {"role": "system", "content": render("memory/condenser.md.j2").strip()},
            {"role": "user", "content": question},
        ]
        try:
            return self._model.complete(messages)
        except (ModelError, LimitReached) as error:
            self._warn(FAILED, f"{_FALLBACK_WARNING}: {error.what}")
            return None

    def refuse(self, reason: str) -> None:
        """Log that the model's reply was not used, and why."""
        self._warn(UNUSABLE, f"{_FALLBACK_WARNING}: {reason}")


def render_turns(turns: Sequence[Turn], max_length: int = MAX_QUESTION_LENGTH) -> str:
    """Return the turns as text for a model to read, numbered from 1.

    The text has about `max_length` characters.
    """
    results = sum(len(turn.results) for turn in turns)
    max_result_length = max(MIN_RESULT_LENGTH, min(4_000, max_length // (2 * max(1, results))))
    record = render(
        "memory/record.md.j2",
        turns=turns,
        action_text=action_text,
        result_text=lambda result: observation_text(result, max_result_length),
        cut=lambda text: truncate_middle(text, MAX_EXCERPT_LENGTH),
    )
    return truncate_middle(record.strip(), max_length)


MAX_NOTES_LENGTH = 6_000
"""Maximum characters of notes that are kept."""

MAX_USER_MESSAGES_LENGTH = 4_000
"""Maximum characters of the user's messages that are quoted to the model."""


def write_notes(client: SummaryClient, view: CondenserView, turns: Sequence[Turn]) -> str | None:
    """Return notes as free text in the model's own form; None if there is no usable reply."""
    question = render("memory/summarize.md.j2", **_quote_work(view, turns))
    completion = client.ask(question)
    return _accept_notes(client, completion.text) if completion else None


def _quote_work(view: CondenserView, turns: Sequence[Turn]) -> dict[str, str]:
    return _quote(view, render_turns(turns), view.history.notes)


def _accept_notes(client: SummaryClient, notes: str) -> str | None:
    if not notes.strip():
        client.refuse("its reply was empty")
    return truncate_middle(notes.strip(), MAX_NOTES_LENGTH) or None


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


def write_structured_notes(
    client: SummaryClient, view: CondenserView, turns: Sequence[Turn]
) -> str | None:
    """Return notes in fixed fields, so that the model leaves no aspect out; None if there is no
    usable reply.

    The model answers with JSON in its text.
    """
    fields = [(name, field.description) for name, field in WorkState.model_fields.items()]
    values = _quote_work(view, turns)
    completion = client.ask(render("memory/structured.md.j2", **values, fields=fields))
    if completion is None:
        return None
    try:
        state = WorkState.model_validate(_parse_object(completion.text), extra="ignore")
    except ValueError as error:
        client.refuse(f"its reply has not the form asked for: {str(error)[:200]}")
        return None
    parts = [
        (name.replace("_", " ").capitalize(), [item[:400] for item in items[:12]])
        for name, items in state.model_dump().items()
    ]
    return _accept_notes(client, render("memory/structured_notes.md.j2", parts=parts))


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
        if view.target is None:
            return None
        middle, ends = middle_and_ends(view, self.keep_first, self.keep_last)
        if not select_turns(view, [*middle, *ends]):
            return None
        candidates = self._least_needed_first(view, middle) if middle else []
        return forget(view, select_turns(view, [*candidates, *ends]))

    def _least_needed_first(self, view: CondenserView, turns: Sequence[Turn]) -> list[Turn]:
        question = render(
            "memory/attention.md.j2",
            **_quote(view, render_turns(turns), notes=""),
            count=len(turns),
            keep=max(1, len(turns) // 2),
        )
        completion = self.client.ask(question)
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
    user_messages = truncate_middle("\n\n".join(view.user_messages), MAX_USER_MESSAGES_LENGTH)
    marker = marker_for(user_messages + notes + record)
    return {"asked": user_messages, "notes": notes, "record": record, "marker": marker}


def _parse_object(text: str) -> dict[str, Any]:
    """Return the fields from the JSON object in the text.

    Raises ValueError if there is no JSON object.
    """
    start, end = text.find("{"), text.rfind("}") + 1
    try:
        data = json.loads(text[start:end]) if 0 <= start < end else None
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(data, dict):
        raise ValueError("there is no JSON object in it")
    return data
