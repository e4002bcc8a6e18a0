"""What the rest of the program knows of a model: one Protocol, and the wrapper that reports
every reply. No provider is named here.
"""

from collections.abc import Callable
from typing import Any, Protocol

from resolver.models.run import Completion

ChatMessage = dict[str, Any]
"""One message as OpenAI's chat completions word it: `role`, `content`, `tool_calls`, ..."""

THINKING = "thinking_blocks"
"""Key of an assistant's message for `Completion.thinking`. Only the provider that wrote the blocks
is sent them again."""

ToolSpec = dict[str, Any]
"""One tool offered to the model: `{"type": "function", "function": {...}}`."""

OnRetry = Callable[[int, float, str], None]
"""Told before a call is tried again: number of the failed attempt, seconds to wait, reason."""


class Model(Protocol):
    """Answers a conversation."""

    @property
    def name(self) -> str:
        """The model as the user named it."""

    @property
    def supports_tools(self) -> bool:
        """True when the model takes native tool calls."""

    @property
    def supports_vision(self) -> bool:
        """True when the model takes images, as `image_url` parts with data: URLs."""

    def complete(
        self, messages: list[ChatMessage], tools: list[ToolSpec] | None = None
    ) -> Completion:
        """The model's next reply. Raises ModelError."""


class WrappedModel:
    """Another model, but for what a subclass does around a call."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def supports_tools(self) -> bool:
        return self._model.supports_tools

    @property
    def supports_vision(self) -> bool:
        return self._model.supports_vision


class RecordedModel(WrappedModel):
    """A model whose every reply is reported, so that the run's record holds it."""

    def __init__(self, model: Model, on_reply: Callable[[Completion], None]) -> None:
        """on_reply: called before the reply is handed to the caller."""
        super().__init__(model)
        self._on_reply = on_reply

    def complete(
        self, messages: list[ChatMessage], tools: list[ToolSpec] | None = None
    ) -> Completion:
        completion = self._model.complete(messages, tools)
        self._on_reply(completion)
        return completion
