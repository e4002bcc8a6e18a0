"""Asking a condenser's model. Whatever goes wrong there, the run goes on: it is told, and what the
log itself says stands alone."""

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
"""Characters of a question."""

LEAST_SHOWN = 200
"""Characters of one result, however many there are."""

EXCERPT = 1_500
"""Characters of one action, and of the words beside it."""


FAILED, UNUSABLE = "condenser", "condenser_reply"
"""What the log calls it that a call gave no reply, or a reply that is no answer."""

_OF_NO_USE = "the condenser's model was of no use, so the log alone is summed up"


class Asker:
    """Asks the model that the service is configured with.

    model: its replies are in the log by the time `complete` returns.
    warn: told when it gave nothing that could be used: `FAILED` or `UNUSABLE`, and a sentence.
    """

    def __init__(self, model: Model, warn: Callable[[str, str], None]) -> None:
        self._model = model
        self._warn = warn

    @property
    def calls_tools(self) -> bool:
        """Whether the model takes native tool calls."""
        return self._model.supports_tools

    def ask(
        self, view: CondenserView, question: str, tool: ToolSpec | None = None
    ) -> Completion | None:
        """Its reply to the question; None when there is none. tool: one that it is to call, where
        it can call tools.

        A reply that is in the log already, because the process that asked was killed, is taken
        from there.
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
        view.log.next_reply()
        return completion

    def refuse(self, why: str) -> None:
        """Tell that what the model gave was not used."""
        self._warn(UNUSABLE, f"{_OF_NO_USE}: {why}")


def record_of(turns: Sequence[Turn], room: int = MOST_SENT) -> str:
    """The turns as text for a model to read, numbered from 1, within about `room` characters."""
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
    """Each turn in one line: what was done, and how it ended."""
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
