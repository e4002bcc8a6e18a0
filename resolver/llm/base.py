"""The protocol of models, their configuration, and a wrapper that reports every reply."""

from collections.abc import Callable
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from resolver.models.run import Completion


class SetBy(BaseModel):
    """Names of the settings that configure a model, for error messages."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = "LLM_MODEL"
    api_key: str = "LLM_API_KEY"
    base_url: str = "LLM_BASE_URL"


DEFAULT_SET_BY = SetBy()


class ModelConfig(BaseModel):
    """Configuration of a model: its name, its address, and the parameters of requests.

    Parameters without a field are passed to litellm as they are.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    model: str = Field(description="As litellm names it; without a provider at a `base_url`.")
    api_key: SecretStr | None = None
    base_url: str | None = None
    api_version: str | None = Field(default=None, description="For Azure.")
    reasoning_effort: str | None = Field(default=None, description="None: the default.")
    stream: bool = Field(default=False, description="Whether replies are sent in pieces.")
    timeout: float = Field(default=300.0, gt=0, description="Seconds one attempt may take.")
    num_retries: int = Field(default=5, ge=0, description="Attempts after a failed first one.")
    max_tokens: int | None = Field(default=None, gt=0, description="Of one reply.")
    input_cost_per_token: float | None = Field(default=None, ge=0, description="US dollars.")
    output_cost_per_token: float | None = Field(default=None, ge=0, description="US dollars.")
    set_by: SetBy = DEFAULT_SET_BY

    @property
    def key(self) -> str | None:
        """The API key in plain text, None if none is set."""
        return (self.api_key.get_secret_value() or None) if self.api_key else None


CLOUDS = {
    "bedrock": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "vertex_ai": "GOOGLE_APPLICATION_CREDENTIALS",
}
"""Clouds that host models in a region, with the variables of their own credentials."""


def api_key_variable(provider: str | None) -> str:
    """Return the environment variable that holds a provider's own key."""
    provider = provider or "openai"
    return CLOUDS.get(provider, f"{provider.upper()}_API_KEY")


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
