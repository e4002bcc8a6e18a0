"""From a configuration to a model. A recorded run (`replay:FILE`) is opened by the caller, who
may read event logs.
"""

from collections.abc import Callable
from urllib.parse import urlsplit

from resolver.errors import UsageError
from resolver.llm.base import Model, OnRetry
from resolver.llm.litellm_model import LiteLLMModel, ModelConfig


def make_model(config: ModelConfig, *, on_retry: OnRetry, sleep: Callable[[float], None]) -> Model:
    """The model that `config` names. Raises UsageError when it names none.

    on_retry: told before each new attempt. sleep: waits so many seconds; what it raises ends
    the call.
    """
    if not config.model.strip():
        raise UsageError(
            "no model is set", "give --model, or set LLM_MODEL (for example anthropic/NAME)"
        )
    if config.base_url is not None:
        address = urlsplit(config.base_url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise UsageError(
                f"the base URL {config.base_url!r} is not an http:// or https:// address",
                "correct --base-url or LLM_BASE_URL",
            )
    return LiteLLMModel(config, on_retry=on_retry, sleep=sleep)
