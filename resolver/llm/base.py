"""The protocol of models, and a wrapper that reports every reply, for any provider."""

from collections.abc import Callable
from typing import Any, Protocol

from resolver.models.run import Completion

ChatMessage = dict[str, Any]
"""One message in the format of OpenAI's chat completions: `role`, `content`, `tool_calls`, ..."""

THINKING = "thinking_blocks"
"""Key of `Completion.thinking` in an assistant message.

The blocks are sent only to the provider that wrote them.
"""

ToolSpec = dict[str, Any]
"""One tool offered to the model: `{"type": "function", "function": {...}}`."""

OnRetry = Callable[[int, float, str], None]
"""Called before a retry with the failed attempt's number, the seconds to wait, the reason."""


class Model(Protocol):
    """A model that answers a conversation."""

    @property
    def name(self) -> str:
        """The name of the model as the user wrote it."""

    @property
    def supports_tools(self) -> bool:
        """True if the model supports native tool calls."""

    @property
    def supports_vision(self) -> bool:
        """True if the model accepts images, as `image_url` parts with data: URLs."""

    def complete(
        self, messages: list[ChatMessage], tools: list[ToolSpec] | None = None
    ) -> Completion:
        """Return the model's next reply. Raises ModelError."""


class WrappedModel:
    """Base class of models that wrap another model. Subclasses implement `complete`."""

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
    """A model that reports every reply, so that it can be recorded in the log."""

    def __init__(self, model: Model, on_reply: Callable[[Completion], None]) -> None:
        """Wrap `model`. on_reply: called with each reply before it is returned to the caller."""
        super().__init__(model)
        self._on_reply = on_reply

    def complete(
        self, messages: list[ChatMessage], tools: list[ToolSpec] | None = None
    ) -> Completion:
        completion = self._model.complete(messages, tools)
        self._on_reply(completion)
        return completion
