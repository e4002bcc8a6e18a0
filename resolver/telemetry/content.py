"""Prompts, replies and outputs as values of span attributes.

They are JSON texts in the form of the message schemas of the GenAI conventions (see
`conventions.py`). Each text is redacted, then shortened.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

from resolver.events.base import ActionBase, ObservationBase
from resolver.models.run import Completion
from resolver.models.truncate import truncate_middle

MAX_TEXT_CHARACTERS = 16_000
"""Maximum length of one text. Collectors refuse requests of more than some megabytes."""

Redact = Callable[[str], str]
"""Returns the text without secrets."""

Part = dict[str, Any]
"""A part of a message, in the form of the conventions."""


class ContentWriter:
    """Writes the attributes with content.

    redact: is applied to each text before it is shortened, so that no part of a secret remains.
    """

    def __init__(self, redact: Redact) -> None:
        self._redact = redact

    def text(self, text: str) -> str:
        """Return the text as it may be exported."""
        return truncate_middle(self._redact(text), MAX_TEXT_CHARACTERS)

    def instructions(self, text: str) -> str:
        """Return the value of `gen_ai.system_instructions`."""
        return _json([{"type": "text", "content": self.text(text)}])

    def user_message(self, text: str) -> Part:
        """Return a message of the user, or of Resolver in the role of the user."""
        return {"role": "user", "parts": [{"type": "text", "content": self.text(text)}]}

    def tool_message(self, call_id: str, result: str) -> Part:
        """Return the message with the result of a tool."""
        part = {"type": "tool_call_response", "id": call_id, "response": self.text(result)}
        return {"role": "tool", "parts": [part]}

    def messages(self, messages: Iterable[Part]) -> str:
        """Return the value of `gen_ai.input.messages`."""
        return _json(list(messages))

    def reply(self, completion: Completion) -> str:
        """Return the value of `gen_ai.output.messages` for a reply of a model."""
        parts: list[Part] = []
        if completion.reasoning:
            parts.append({"type": "reasoning", "content": self.text(completion.reasoning)})
        if completion.text:
            parts.append({"type": "text", "content": self.text(completion.text)})
        parts.extend(
            {
                "type": "tool_call",
                "id": call.id,
                "name": self.text(call.name),
                "arguments": self.text(call.arguments),
            }
            for call in completion.tool_calls
        )
        message = {
            "role": "assistant",
            "parts": parts,
            "finish_reason": completion.finish_reason or "stop",
        }
        return _json([message])

    def arguments(self, action: ActionBase) -> str:
        """Return the value of `gen_ai.tool.call.arguments`: as the model wrote them, or as they
        were read from its text."""
        if action.tool_call is not None:
            return self.text(action.tool_call.arguments)
        names = set(ActionBase.model_fields) | {"kind"}
        return self.text(_json(action.model_dump(mode="json", exclude=names)))

    def result(self, observation: ObservationBase) -> str:
        """Return the value of `gen_ai.tool.call.result`."""
        return self.text(observation.content)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
