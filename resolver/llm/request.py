"""From a conversation to the parameters of one litellm call."""

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
    """What litellm is asked. name: litellm's name of the model; entry: what it knows of it."""
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
        "drop_params": True,  # what the model is known not to take is left out
        # Our tools are none of MCP servers that litellm knows: to look for those it would import
        # all of `mcp`, half a second and 18 MB.
        "_skip_mcp_handler": True,
    }
    request |= access(config, name) | _thinking(config, name, entry, messages)
    if config.stream:
        request |= {"stream": True, "stream_options": {"include_usage": True}}
    return fixed({k: v for k, v in request.items() if v is not None}, entry)


def access(config: ModelConfig, name: str) -> dict[str, Any]:
    """The key, and where a cloud keeps the model, in the words of its kind.

    Without a key a cloud's own credentials of the machine are used, also at a `base_url`: they
    sign requests, or are exchanged for tokens, and are not sent themselves.
    """
    key = config.api_key.get_secret_value() if config.api_key else None
    provider = name.partition("/")[0]
    if provider.startswith("bedrock"):
        return {"api_key": key, "aws_region_name": config.region}
    if provider.startswith("vertex_ai"):
        place = {"vertex_location": config.region, "vertex_project": config.project}
        return {**place, "vertex_credentials": key}
    # A made-up key where none is set: litellm would else take one from the environment that
    # belongs to another host.
    return {"api_key": key or ("none" if config.base_url else None)}


def _thinking(
    config: ModelConfig, name: str, entry: Entry, messages: list[ChatMessage]
) -> dict[str, Any]:
    if config.reasoning_effort is None or (is_anthropic(name) and not may_think(messages)):
        return {}
    # litellm leaves it out for a model that it does not know; whoever set it knows better.
    unknown = {} if entry else {"allowed_openai_params": ["reasoning_effort"]}
    return {"reasoning_effort": config.reasoning_effort, **unknown}


def _prepared(name: str, messages: list[ChatMessage]) -> list[ChatMessage]:
    """Copies of the messages, with the thinking that this provider wrote and no other's."""
    if is_anthropic(name):
        return with_cache_marks(without_empty_texts(with_own_thinking(messages)))
    if name.startswith(_RESPONSES):
        return [_with_reasoning(message) for message in messages]
    return [{k: v for k, v in message.items() if k != THINKING} for message in messages]


def _with_reasoning(message: ChatMessage) -> ChatMessage:
    kept = {k: v for k, v in message.items() if k != THINKING}
    items = [block for block in message.get(THINKING, ()) if block.get("type") == "reasoning"]
    return {**kept, "reasoning_items": items} if items else kept
