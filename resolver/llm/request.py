"""Construction of the parameters of a litellm call."""

from typing import Any

from resolver.llm.anthropic import (
    is_anthropic,
    may_think,
    with_cache_marks,
    with_own_thinking,
    without_empty_texts,
)
from resolver.llm.base import THINKING, ChatMessage, ToolSpec
from resolver.llm.config import ModelConfig
from resolver.llm.fixes import Entry, fixed

_RESPONSES = ("openai/responses/", "azure/responses/")


def request_for(
    config: ModelConfig,
    name: str,
    entry: Entry,
    messages: list[ChatMessage],
    tools: list[ToolSpec] | None,
) -> dict[str, Any]:
    """Return the parameters of a call.

    name: litellm's name of the model.
    entry: the model's entry in litellm's table.
    """
    request: dict[str, Any] = {
        "model": name,
        "messages": _prepared(name, messages),
        "tools": tools or None,
        "api_base": config.base_url,
        "api_version": config.api_version,
        "temperature": config.temperature,
        "seed": config.seed,
        "stop": list(config.stop) or None,
        "max_retries": 0,
        "num_retries": 0,
        "drop_params": True,  # leave out parameters that the model is known not to support
        # litellm would import all of `mcp` (half a second, 18 MB) to look for tools of MCP servers
        # that it manages itself. There are none.
        "_skip_mcp_handler": True,
    }
    request |= access(config, name) | _thinking(config, name, entry, messages)
    if config.stream:
        request |= {"stream": True, "stream_options": {"include_usage": True}}
    return fixed({k: v for k, v in request.items() if v is not None}, entry)


def access(config: ModelConfig, name: str) -> dict[str, Any]:
    """Return the parameters for the key and, for a cloud, the location of the model.

    Without a key, the machine's own credentials for the cloud are used, also with a `base_url`:
    they sign requests or are exchanged for tokens, and are not sent themselves.
    """
    key = config.api_key.get_secret_value() if config.api_key else None
    provider = name.partition("/")[0]
    if provider.startswith("bedrock"):
        return {"api_key": key, "aws_region_name": config.region}
    if provider.startswith("vertex_ai"):
        place = {"vertex_location": config.region, "vertex_project": config.project}
        return {**place, "vertex_credentials": key}
    # With a base URL but no key, send a dummy key: otherwise litellm would take one from the
    # environment, which belongs to another host.
    return {"api_key": key or ("none" if config.base_url else None)}


def _thinking(
    config: ModelConfig, name: str, entry: Entry, messages: list[ChatMessage]
) -> dict[str, Any]:
    if config.reasoning_effort is None or (is_anthropic(name) and not may_think(messages)):
        return {}
    # litellm drops the parameter for models that it does not know. It was set explicitly, so
    # insist on it.
    unknown = {} if entry else {"allowed_openai_params": ["reasoning_effort"]}
    return {"reasoning_effort": config.reasoning_effort, **unknown}


def _prepared(name: str, messages: list[ChatMessage]) -> list[ChatMessage]:
    """Return copies of the messages with the thinking blocks of this provider only."""
    if is_anthropic(name):
        return with_cache_marks(without_empty_texts(with_own_thinking(messages)))
    if name.startswith(_RESPONSES):
        return [_with_reasoning(message) for message in messages]
    return [{k: v for k, v in message.items() if k != THINKING} for message in messages]


def _with_reasoning(message: ChatMessage) -> ChatMessage:
    kept = {k: v for k, v in message.items() if k != THINKING}
    items = [block for block in message.get(THINKING, ()) if block.get("type") == "reasoning"]
    return {**kept, "reasoning_items": items} if items else kept
