"""Converts events to chat messages in OpenAI's format, for both dialects (tool calls and tags).

While a log grows, its messages are only appended to: what was already sent stays identical byte for
byte, and is kept. Providers cache prefixes of requests, so that a step costs only what its new
messages cost: https://docs.claude.com/en/docs/build-with-claude/prompt-caching
A condensation, or dropping old images, is the exception: everything is built anew.

Images of the task are always sent, under the numbers that the task's text refers to. Of the others
the newest are sent, and a text stands in for the rest. Older images are dropped several at a time,
decided by their number alone.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from resolver.config.templates import render
from resolver.events import observations as o
from resolver.events.base import ActionBase
from resolver.events.lifecycle import ModelReplied
from resolver.events.state import State
from resolver.llm.base import THINKING
from resolver.memory.turns import History, Turn, action_text, note_text, result_text
from resolver.models.base import JsonObject
from resolver.models.issue_context import Picture
from resolver.models.run import RequestedToolCall
from resolver.models.truncate import marker_for

MAX_IMAGES = 8
"""Maximum images that a conversation sends, not counting those of the task."""

DROPPED_AT_ONCE = 4
"""Number of the oldest images dropped at once when there are more than `MAX_IMAGES`."""

MAX_IMAGE_LENGTH = 3_000_000
"""Maximum characters of one image's data: URL. Providers refuse a request with an image over 5 MB.
"""

_SENT = "shown below"
_SENDABLE_URL = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+")
"""Only data: URLs are sent: the provider would fetch any other URL itself."""


def first_sent_image(count: int) -> int:
    """Return the number (from 0) of the first image that is sent, of `count` images in all."""
    excess = max(0, count - MAX_IMAGES)
    return -(-excess // DROPPED_AT_ONCE) * DROPPED_AT_ONCE


@dataclass
class Pictures:
    """Numbers the images of a conversation from its beginning and decides which are sent.

    accepts_images: the model accepts images.
    first_sent: number of the first image that is sent.
    count: number of images so far.
    """

    accepts_images: bool
    first_sent: int = 0
    count: int = 0

    def take(self, images: Sequence[str]) -> tuple[list[str], list[JsonObject]]:
        """Count the next images; return lines of text about them and the content parts to send."""
        statuses = []
        for image in images:
            self.count += 1
            statuses.append((self.count, image, self._image_status(image)))
        return _show_images("image", statuses)

    def of_task(self, pictures: Sequence[Picture]) -> tuple[list[str], list[JsonObject]]:
        """Return the same for the images of the task, which are not counted."""
        statuses = []
        for picture in pictures:
            is_sent = self.accepts_images and bool(_SENDABLE_URL.fullmatch(picture.data))
            status = _SENT if is_sent else "not shown, since you can't see images here"
            statuses.append((picture.number, picture.data, status))
        return _show_images("picture", statuses)

    def _image_status(self, image: str) -> str:
        """Return `_SENT`, or the reason why the image is not sent."""
        if not self.accepts_images:
            return "not shown, since you can't see images here"
        if self.count <= self.first_sent:
            return "no longer shown; make it again if you need it"
        if len(image) > MAX_IMAGE_LENGTH:
            return "not shown, since it is too large; make a smaller one"
        if not _SENDABLE_URL.fullmatch(image):
            return "not shown, since only PNG, JPEG, GIF and WebP can be"
        return _SENT


def _show_images(
    noun: str, images: Sequence[tuple[int, str, str]]
) -> tuple[list[str], list[JsonObject]]:
    """Return a line about each image, and the content parts of those that are sent.

    images: number, URL and status of each.
    """
    lines = [f"[{noun} {number}: {status}]" for number, _, status in images]
    parts: list[JsonObject] = []
    for number, url, status in images:
        if status == _SENT:
            parts.append(_text_part(f"{noun.capitalize()} {number}:"))
            parts.append({"type": "image_url", "image_url": {"url": url}})
    return lines, parts


Dialect = Literal["tools", "tags"]

MAX_OBSERVATION_LENGTH = 32_000
"""Maximum characters shown of one observation. Output that the sandbox has already truncated to its
own limit fits, including the note in its middle; this limit is for text from other sources."""

_DISALLOWED_CHARACTERS = re.compile(r"[^a-zA-Z0-9_-]")


class ConversationMemory:
    """Builds the conversation of one agent from the state alone.

    dialect: "tools" for tool calls and tool results; "tags" for plain text in both directions.
    sees_images: the model accepts images; otherwise a sentence replaces each image.
    """

    def __init__(self, dialect: Dialect = "tools", sees_images: bool = False) -> None:
        self.dialect = dialect
        self.sees_images = sees_images
        self._history = History()
        self._settled = self._begin()

    def messages(self, state: State) -> list[JsonObject]:
        """Return the messages of the next request. The caller does not change them."""
        history = self._history
        history.update(state)
        if self._settled.revision != history.revision:
            self._settled = self._begin()
        conversation = self._settled.up_to_now()
        first_sent = first_sent_image(conversation.pictures.count)
        if first_sent != conversation.pictures.first_sent:
            self._settled = self._begin(first_sent)
            conversation = self._settled.up_to_now()
        system = history.system
        if system is None or not system.content.strip():
            return conversation.messages
        return [{"role": "system", "content": system.content}, *conversation.messages]

    def _begin(self, first_sent: int = 0) -> "_Conversation":
        pictures = Pictures(self.sees_images, first_sent)
        return _Conversation(self.dialect, self._history, self._history.revision, pictures)


@dataclass
class _Conversation:
    """The messages of the first turns, without the system prompt.

    revision: of the history that they are made from.
    turn_count: number of those turns.
    """

    dialect: Dialect
    history: History
    revision: int
    pictures: Pictures
    messages: list[JsonObject] = field(default_factory=list)
    turn_count: int = 0
    has_summary: bool = False

    def up_to_now(self) -> "_Conversation":
        """Return the messages of all turns. Those of all but the last, which may still grow, are
        added to this object."""
        *settled, last = self.history.turns[self.turn_count :]
        for turn in settled:
            self._add_turn(turn)
        whole = replace(self, messages=list(self.messages), pictures=replace(self.pictures))
        whole._add_turn(last)
        return whole

    def _add_turn(self, turn: Turn) -> None:
        self.turn_count += 1
        messages, forgotten = self.messages, self.history.forgotten
        if turn.ids & forgotten:
            self._add_summary(messages)
        elif self.dialect == "tools":
            self._add_tool_turn(messages, turn)
        else:
            self._add_text_turn(messages, turn)
        for note in turn.notes:
            if note.id not in forgotten:
                picture_lines, picture_parts = self.pictures.of_task(self.history.pictures_of(note))
                lines, parts = self.pictures.take(o.images_of(note))
                text = "\n".join([note_text(note, MAX_OBSERVATION_LENGTH), *picture_lines, *lines])
                _add_user(messages, text, [*picture_parts, *parts])

    def _add_summary(self, messages: list[JsonObject]) -> None:
        history = self.history
        if not self.has_summary and (history.summary or history.notes):
            text = render(
                "agent/condensed.md.j2",
                summary=history.summary,
                notes=history.notes,
                marker=marker_for(history.summary + history.notes),
            )
            _add_user(messages, text.strip())
        self.has_summary = True

    def _add_tool_turn(self, messages: list[JsonObject], turn: Turn) -> None:
        calls = _tool_calls(turn)
        if not calls:
            self._add_text_turn(messages, turn)
            return
        text = turn.reply.completion.text if turn.reply else turn.actions[0].thought
        message = {"role": "assistant", "content": text.strip() or None, "tool_calls": calls}
        thinking = turn.reply.completion.own_reasoning if turn.reply else ()
        _add_missing_answer(messages)
        messages.append({**message, THINKING: list(thinking)} if thinking else message)
        images: list[JsonObject] = []
        for index, call in enumerate(calls):
            content, parts = self._result(turn, index)
            images += parts
            answer = {"role": "tool", "tool_call_id": call["id"], "content": content or "[done]"}
            messages.append(answer)
        # not every provider accepts images in a tool message; OpenAI's API takes text only:
        # https://platform.openai.com/docs/api-reference/chat/create
        if images:
            messages.append({"role": "user", "content": images})

    def _result(self, turn: Turn, index: int) -> tuple[str, list[JsonObject]]:
        """Return the result of the turn's call at `index`: its text, and the images to send."""
        result = turn.results.get(turn.actions[index].id) if index < len(turn.actions) else None
        masked = self.history.masked
        is_shown = result is not None and result.id not in masked
        lines, parts = self.pictures.take(o.images_of(result) if result and is_shown else ())
        return "\n".join([result_text(turn, index, MAX_OBSERVATION_LENGTH, masked), *lines]), parts

    def _add_text_turn(self, messages: list[JsonObject], turn: Turn) -> None:
        if turn.reply:
            _add_assistant(messages, _reply_text(turn.reply))
        for index, action in enumerate(turn.actions):
            if not turn.reply:
                _add_assistant(messages, f"{action.thought}\n{action_text(action)}".strip())
            text, parts = self._result(turn, index)
            if text:
                number = f" {index + 1} of {len(turn.actions)}" if len(turn.actions) > 1 else ""
                _add_user(messages, f"OBSERVATION{number}:\n{text}", parts)


def _reply_text(reply: ModelReplied) -> str:
    """Return the reply as text, with its tool calls spelled out: the tags dialect has none."""
    completion = reply.completion
    calls = (f"{call.name}({call.arguments})" for call in completion.tool_calls)
    return "\n".join([*([completion.text] if completion.text.strip() else []), *calls])


def _add_missing_answer(messages: list[JsonObject]) -> None:
    """Add a user message if the last one is the assistant's: some models require that user and
    assistant take turns."""
    if messages and messages[-1]["role"] == "assistant":
        _add_user(messages, "[no result]")


def _add_assistant(messages: list[JsonObject], text: str) -> None:
    _add_missing_answer(messages)
    messages.append({"role": "assistant", "content": text if text.strip() else "[empty reply]"})


def _add_user(messages: list[JsonObject], text: str, images: Sequence[JsonObject] = ()) -> None:
    """Add the text as a user message, or append it to the last message if that is the user's.

    Some models require strictly alternating roles, and none accepts an empty message, so an empty
    text is skipped. images: content parts that follow the text.
    """
    if not text.strip():
        return
    previous = messages.pop()["content"] if messages and messages[-1]["role"] == "user" else ""
    if isinstance(previous, str) and not images:
        content = f"{previous}\n\n{text}" if previous else text
        messages.append({"role": "user", "content": content})
        return
    parts = previous if isinstance(previous, list) else [_text_part(previous)] if previous else []
    messages.append({"role": "user", "content": [*parts, _text_part(text), *images]})


def _text_part(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _tool_calls(turn: Turn) -> list[JsonObject]:
    """Return the turn's tool calls in a form that every provider accepts: unique ids, names of
    letters, digits, `_` and `-`, and arguments that are a JSON object. If the model's call was
    invalid, the result of the call says so."""
    if turn.reply:
        requested = list(turn.reply.completion.tool_calls)
        origin = turn.reply.id
    else:
        requested = [call for action in turn.actions if (call := _requested_call(action))]
        origin = turn.actions[0].id if turn.actions else 0
    calls: list[JsonObject] = []
    for index, call in enumerate(requested):
        used_ids = {other["id"] for other in calls}
        id_ = call.id if call.id.strip() and call.id not in used_ids else f"call_{origin}_{index}"
        function = {
            "name": _DISALLOWED_CHARACTERS.sub("_", call.name)[:64] or "unknown",
            "arguments": _json_object_text(call.arguments),
        }
        calls.append({"id": id_, "type": "function", "function": function})
    return calls


def _requested_call(action: ActionBase) -> RequestedToolCall | None:
    call = action.tool_call
    return RequestedToolCall(**call.model_dump()) if call else None


def _json_object_text(arguments: str) -> str:
    """Return the arguments as they were understood: valid JSON, whose strings may have contained
    raw line breaks and tabs."""
    try:
        return arguments if isinstance(json.loads(arguments), dict) else "{}"
    except (ValueError, RecursionError):
        pass
    try:
        value = json.loads(arguments, strict=False)
    except (ValueError, RecursionError):
        return "{}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else "{}"
