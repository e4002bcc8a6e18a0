"""Calls of the condenser's model. A failed call does not stop the run: it is logged as a warning,
and the summary is written from the log alone."""

from collections.abc import Callable, Sequence

from resolver.config.templates import render
from resolver.errors import LimitReached, ModelError
from resolver.events.observations import CmdOutput, ErrorObservation
from resolver.llm.base import ChatMessage, Model, ToolSpec
from resolver.memory.condensers.view import CondenserView
from resolver.memory.shown import action_text, observation_text
from resolver.memory.text import truncate_middle
from resolver.memory.turns import Turn
from resolver.models.run import Completion

MOST_SENT = 200_000
"""Maximum characters of a question."""

LEAST_SHOWN = 200
"""Minimum characters shown of each result, however many there are."""

EXCERPT = 1_500
"""Maximum characters of one action, and of the text of one reply."""


FAILED, UNUSABLE = "condenser", "condenser_reply"
"""Codes of the warnings in the log: a call gave no reply; a reply was unusable."""

_OF_NO_USE = "the condenser's model was of no use, so the log alone is summed up"


class Asker:
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
        known = view.log.next_reply()
        if known is not None:
            return known
        messages: list[ChatMessage] = [
            {"role": "system", "content": render("memory/condenser.md.j2").strip()},
            {"role": "user", "content": question},
        ]
        tools = [tool] if tool is not None and self.calls_tools else None
        try:
            completion = self._model.complete(messages, tools)
        except (ModelError, LimitReached) as error:
            self._warn(FAILED, f"{_OF_NO_USE}: {error.what}")
            return None
        # mark the reply, which is in the log now, as read
        view.log.next_reply()
        return completion

    def refuse(self, why: str) -> None:
        """Log that the model's reply was not used, and why."""
        self._warn(UNUSABLE, f"{_OF_NO_USE}: {why}")


def record_of(turns: Sequence[Turn], room: int = MOST_SENT) -> str:
    """Return the turns as text for a model to read, numbered from 1, in about `room` characters."""
    results = sum(len(turn.results) for turn in turns)
    most = max(LEAST_SHOWN, min(4_000, room // (2 * max(1, results))))
    steps = []
    for turn in turns:
        said = turn.reply.completion.text.strip() if turn.reply else ""
        done = []
        for action in turn.actions:
            result = turn.results.get(action.id)
            told = observation_text(result, most) if result is not None else "[no result]"
            done.append((truncate_middle(action_text(action), EXCERPT), told))
        steps.append({"said": truncate_middle(said, EXCERPT), "done": done})
    return truncate_middle(render("memory/record.md.j2", steps=steps).strip(), room)


def text_lines(turns: Sequence[Turn]) -> list[str]:
    """Return one line per turn: what was done, and how it ended."""
    return [_line(turn) for turn in turns]


def _line(turn: Turn) -> str:
    parts = []
    for action in turn.actions[:4]:
        result = turn.results.get(action.id)
        match result:
            case CmdOutput(exit_code=code):
                end = f"exit code {code}"
            case ErrorObservation():
                end = "error"
            case _:
                end = f"{len(result.content)} characters" if result is not None else "no result"
        parts.append(f"{' '.join(action_text(action).split())[:160]} -> {end}")
    said = " ".join(turn.reply.completion.text.split())[:160] if turn.reply else ""
    return "; ".join([*([f"said: {said}"] if said else []), *parts])
