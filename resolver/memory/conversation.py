"""Converts events to chat messages in OpenAI's format, for both dialects (tool calls and tags).

While a log grows, its messages are only appended to: what was already sent stays identical byte for
byte. A provider's prompt cache therefore stays valid, and a step costs only what its new messages
cost. A condensation, or dropping old images, is the exception.

Images of the task are always sent, under the numbers that the task's text refers to. Of the others
the newest are sent, and a text stands in for the rest. Older images are dropped several at a time,
decided by their number alone.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from resolver.config.templates import render
from resolver.events import observations as o
from resolver.events.base import ActionBase, EventBase
from resolver.events.lifecycle import ModelReplied
from resolver.events.state import State
from resolver.llm.base import THINKING
from resolver.memory.turns import History, Turn, action_text, note_text, result_text
from resolver.models.issue_context import Picture
from resolver.models.run import JsonObject, RequestedToolCall
from resolver.models.truncate import marker_for

MOST = 8
"""Maximum images that a conversation sends, not counting those of the task."""

DROPPED_AT_ONCE = 4
"""Number of the oldest images dropped at once when there are more than `MOST`."""

MAX_CHARACTERS = 3_000_000
"""Maximum characters of one image's data: URL. Providers refuse a request with an image over 5 MB.
"""

_SENT = "shown below"
_SENDABLE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+")
"""Only data: URLs are sent: the provider would fetch any other URL itself."""


def images_of(event: EventBase) -> tuple[str, ...]:
    """Return the data: URLs of the images in an observation."""
    match event:
        case (
            o.IPythonOutput(images=images)
            | o.FileReadResult(images=images)
            | o.McpResult(images=images)
        ):
            return images
        case o.BrowserOutput(screenshot=str(screenshot)):
            return (screenshot,)
        case _:
            return ()


def first_shown(count: int) -> int:
    """Return the number (from 0) of the first image that is sent, of `count` images in all."""
    over = max(0, count - MOST)
    return -(-over // DROPPED_AT_ONCE) * DROPPED_AT_ONCE


@dataclass
class Pictures:
    """Numbers the images of a conversation from its beginning and decides which are sent.

    sees: the model accepts images.
    first: number of the first image that is sent.
    count: number of images so far.
    """

    sees: bool
    first: int = 0
    count: int = 0

    def take(self, images: Sequence[str]) -> tuple[list[str], list[JsonObject]]:
        """Count the next images; return lines of text about them and the content parts to send."""
        lines: list[str] = []
        parts: list[JsonObject] = []
        for image in images:
            self.count += 1
            fate = self._fate(image)
            lines.append(f"[image {self.count}: {fate}]")
            if fate == _SENT:
                parts.append({"type": "text", "text": f"Image {self.count}:"})
                parts.append({"type": "image_url", "image_url": {"url": image}})
        return lines, parts

    def of_task(self, pictures: Sequence[Picture]) -> tuple[list[str], list[JsonObject]]:
        """Return the same for the images of the task, which are not counted."""
        lines: list[str] = []
        parts: list[JsonObject] = []
        for picture in pictures:
            shown = self.sees and bool(_SENDABLE.fullmatch(picture.data))
            fate = _SENT if shown else "not shown, since you can't see images here"
            lines.append(f"[picture {picture.number}: {fate}]")
            if shown:
                parts.append({"type": "text", "text": f"Picture {picture.number}:"})
                parts.append({"type": "image_url", "image_url": {"url": picture.data}})
        return lines, parts

    def _fate(self, image: str) -> str:
        """Return `_SENT`, or the reason why the image is not sent."""
        if not self.sees:
            return "not shown, since you can't see images here"
        if self.count <= self.first:
            return "no longer shown; make it again if you need it"
        if len(image) > MAX_CHARACTERS:
            return "not shown, since it is too large; make a smaller one"
        if not _SENDABLE.fullmatch(image):
            return "not shown, since only PNG, JPEG, GIF and WebP can be"
        return _SENT


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
