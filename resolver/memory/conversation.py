"""Converts events to chat messages in OpenAI's format, for both dialects (tool calls and tags).

While a log grows, its messages are only appended to: what was already sent stays identical byte for
byte. A provider's prompt cache therefore stays valid, and a step costs only what its new messages
cost. A condensation, or dropping old images, is the exception.
"""

import json
import re
from collections.abc import Sequence
from typing import Literal

from resolver.config.templates import render
from resolver.events.base import ActionBase
from resolver.events.lifecycle import ModelReplied
from resolver.events.state import State
from resolver.llm.base import THINKING
from resolver.memory.pictures import Pictures, first_shown, images_of
from resolver.memory.shown import action_text, note_text, result_text
from resolver.memory.text import marker_for
from resolver.memory.turns import History, Turn
from resolver.models.run import JsonObject, RequestedToolCall

Dialect = Literal["tools", "tags"]

MAX_OBSERVATION = 32_000
"""Maximum characters shown of one observation. Output that the sandbox has already truncated to its
own limit fits, including the note in its middle; this limit is for text from other sources."""

_ODD = re.compile(r"[^a-zA-Z0-9_-]")


class ConversationMemory:
    """Builds the conversation of one agent from the state alone.

    dialect: "tools" for tool calls and tool results; "tags" for plain text in both directions.
    max_observation: maximum characters shown of one observation.
    sees_images: the model accepts images; otherwise a sentence replaces each image.
    """

    def __init__(
        self,
        dialect: Dialect = "tools",
        max_observation: int = MAX_OBSERVATION,
        sees_images: bool = False,
    ) -> None:
        self._dialect = dialect
        self._limit = max_observation
        self._history = History()
        self._closed: list[JsonObject] = []
        self._closed_turns = 0
        self._summary_told = False
        self._pictures = Pictures(sees_images)
        self._closed_pictures = 0

    def messages(self, state: State) -> list[JsonObject]:
        """Return the messages of the next request.

        The caller may change the list, but not the messages, which are reused by later calls.
        """
        if self._history.look(state):
            self._begin_anew(0)
        out = self._told()
        first = first_shown(self._pictures.count)
        if first != self._pictures.first:
            self._begin_anew(first)
            out = self._told()
        self._pictures.count = self._closed_pictures
        system = self._history.system
        head = (
            [{"role": "system", "content": system.content}]
            if system and system.content.strip()
            else []
        )
        return head + out

    def _begin_anew(self, first: int) -> None:
        """Discard the messages built so far. first: number of the first image to send."""
        self._closed, self._closed_turns, self._summary_told = [], 0, False
        self._pictures.first, self._pictures.count, self._closed_pictures = first, 0, 0

    def _told(self) -> list[JsonObject]:
        """Return all turns as messages. Those of completed turns are built once and reused; the
        last turn may still grow and is built anew. Afterwards, the image count includes the
        last turn."""
        turns = self._history.turns
        for turn in turns[self._closed_turns : -1]:
            self._add_turn(self._closed, turn)
        self._closed_turns = len(turns) - 1
        told, self._closed_pictures = self._summary_told, self._pictures.count
        out = list(self._closed)
        self._add_turn(out, turns[-1])
        self._summary_told = told
        return out

    def _add_turn(self, out: list[JsonObject], turn: Turn) -> None:
        forgotten = self._history.forgotten
        if turn.ids & forgotten:
            self._add_summary(out)
        elif self._dialect == "tools":
            self._add_tool_turn(out, turn)
        else:
            self._add_text_turn(out, turn)
        for note in turn.notes:
            if note.id not in forgotten:
                told, own = self._pictures.of_task(self._history.pictures_of(note))
                lines, parts = self._pictures.take(images_of(note))
                words = "\n".join([note_text(note, self._limit), *told, *lines])
                _add_user(out, words, [*own, *parts])

    def _add_summary(self, out: list[JsonObject]) -> None:
        history = self._history
        if not self._summary_told and (history.summary or history.notes):
            text = render(
                "agent/condensed.md.j2",
                summary=history.summary,
                notes=history.notes,
                marker=marker_for(history.summary + history.notes),
            )
            _add_user(out, text.strip())
        self._summary_told = True

    def _add_tool_turn(self, out: list[JsonObject], turn: Turn) -> None:
        calls = _calls(turn)
        if not calls:
            self._add_text_turn(out, turn)
            return
        text = turn.reply.completion.text if turn.reply else turn.actions[0].thought
        said = {"role": "assistant", "content": text.strip() or None, "tool_calls": calls}
        thinking = turn.reply.completion.thinking if turn.reply else ()
        _answer_before(out)
        out.append({**said, THINKING: list(thinking)} if thinking else said)
        shown: list[JsonObject] = []
        for index, call in enumerate(calls):
            content, parts = self._result(turn, index)
            shown += parts
            answer = {"role": "tool", "tool_call_id": call["id"], "content": content or "[done]"}
            out.append(answer)
        # not every provider accepts images in a tool message; OpenAI's API takes text only:
        # https://platform.openai.com/docs/api-reference/chat/create
        if shown:
            out.append({"role": "user", "content": shown})

    def _result(self, turn: Turn, index: int) -> tuple[str, list[JsonObject]]:
        """Return the result of the turn's call at `index`: its text, and the images to send."""
        result = turn.results.get(turn.actions[index].id) if index < len(turn.actions) else None
        masked = self._history.masked
        shown = result is not None and result.id not in masked
        lines, parts = self._pictures.take(images_of(result) if result and shown else ())
        return "\n".join([result_text(turn, index, self._limit, masked), *lines]), parts

    def _add_text_turn(self, out: list[JsonObject], turn: Turn) -> None:
        if turn.reply:
            _add_assistant(out, _reply_text(turn.reply))
        for index, action in enumerate(turn.actions):
            if not turn.reply:
                _add_assistant(out, f"{action.thought}\n{action_text(action)}".strip())
            text, parts = self._result(turn, index)
            if text:
                number = f" {index + 1} of {len(turn.actions)}" if len(turn.actions) > 1 else ""
                _add_user(out, f"OBSERVATION{number}:\n{text}", parts)


def _reply_text(reply: ModelReplied) -> str:
    """Return the reply as text, with its tool calls spelled out: the tags dialect has none."""
    completion = reply.completion
    calls = (f"{call.name}({call.arguments})" for call in completion.tool_calls)
    return "\n".join([*([completion.text] if completion.text.strip() else []), *calls])


def _answer_before(out: list[JsonObject]) -> None:
    """Add a user message if the last one is the assistant's: some models require that user and
    assistant take turns."""
    if out and out[-1]["role"] == "assistant":
        _add_user(out, "[no result]")


def _add_assistant(out: list[JsonObject], text: str) -> None:
    _answer_before(out)
    out.append({"role": "assistant", "content": text if text.strip() else "[empty reply]"})


def _add_user(out: list[JsonObject], text: str, images: Sequence[JsonObject] = ()) -> None:
    """Add the text as a user message, or append it to the last message if that is the user's.

    Some models require strictly alternating roles, and none accepts an empty message, so an empty
    text is skipped. images: content parts that follow the text.
    """
    if not text.strip():
        return
    before = out.pop()["content"] if out and out[-1]["role"] == "user" else ""
    if isinstance(before, str) and not images:
        content = f"{before}\n\n{text}" if before else text
        out.append({"role": "user", "content": content})
        return
    parts = before if isinstance(before, list) else [_text_part(before)] if before else []
    out.append({"role": "user", "content": [*parts, _text_part(text), *images]})


def _text_part(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _calls(turn: Turn) -> list[JsonObject]:
    """Return the turn's tool calls in a form that every provider accepts: unique ids, names of
    letters, digits, `_` and `-`, and arguments that are a JSON object. If the model's call was
    invalid, the result of the call says so."""
    if turn.reply:
        requested = list(turn.reply.completion.tool_calls)
        origin = turn.reply.id
    else:
        requested = [call for x in turn.actions if (call := _call_of(x))]
        origin = turn.actions[0].id if turn.actions else 0
    calls: list[JsonObject] = []
    for index, call in enumerate(requested):
        taken = {c["id"] for c in calls}
        id_ = call.id if call.id.strip() and call.id not in taken else f"call_{origin}_{index}"
        function = {
            "name": _ODD.sub("_", call.name)[:64] or "unknown",
            "arguments": _object_text(call.arguments),
        }
        calls.append({"id": id_, "type": "function", "function": function})
    return calls


def _call_of(action: ActionBase) -> RequestedToolCall | None:
    call = action.tool_call
    return RequestedToolCall(**call.model_dump()) if call else None


def _object_text(arguments: str) -> str:
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return "{}"
    return arguments if isinstance(value, dict) else "{}"
