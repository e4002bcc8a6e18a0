"""Construction of the parameters of a litellm call.

Adjustments for single providers are in one function with the reasons. Messages for Anthropic's
models get cache breakpoints, send thinking blocks back unchanged and have no empty texts:
https://docs.claude.com/en/docs/build-with-claude/prompt-caching

The maximum length of a reply is what the rest of the budget pays for, computed before a call. The
size of the input is estimated from the number of characters and from the counts of the last call.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from resolver.errors import LimitReached
from resolver.llm.base import THINKING, ChatMessage, ModelConfig, ToolSpec
from resolver.models.run import REASONING_TEXT, Tokens

Entry = Mapping[str, Any]
"""A model's entry in litellm's table; empty if there is none."""

_RESPONSES_API = ("openai/responses/", "azure/responses/")

TOOLS_UNCERTAIN = ("ollama/", "ollama_chat/")
"""Providers whose models are assumed not to support tool calls if litellm does not know them.

Unknown models of all other providers are assumed to support them.
"""

WITHOUT_OWN_CLIENT = ("azure/", "azure_text/", "text-completion-openai/")
"""Providers that litellm reaches through the openai package, which uses the shared client."""

_CLAUDE_MODELS = re.compile(r"anthropic/|(bedrock|vertex_ai)/.*claude")
DEFAULT_MAX_OUTPUT_TOKENS = 32_000
"""Maximum number of output tokens for models whose limit is unknown."""

OLLAMA_CONTEXT_TOKENS = 32_768


def adjust_request(request: dict[str, Any], entry: Entry) -> dict[str, Any]:
    """Return the request with what the providers of some models need.

    `request["model"]` is litellm's name of the model.
    """
    name = request["model"]
    more: dict[str, Any] = {}
    if name.startswith("anthropic/"):
        # Anthropic requires a limit. litellm's default for unknown models (4,096 tokens) and for
        # thinking models (4,096 in addition to the thoughts) is too low for writing a file.
        more["max_tokens"] = entry.get("max_output_tokens", DEFAULT_MAX_OUTPUT_TOKENS)
    if name.startswith(_RESPONSES_API):
        # It stores each conversation for 30 days by default. Without storage, the encrypted
        # reasoning has to be requested, and sent back with the next request.
        more["store"] = False
        if entry.get("supports_reasoning"):
            more["include"] = ["reasoning.encrypted_content"]
    if name.startswith(TOOLS_UNCERTAIN):
        # Ollama silently drops what exceeds its default context of 4,096 tokens.
        more["num_ctx"] = OLLAMA_CONTEXT_TOKENS
    # Claude refuses a temperature while it thinks.
    without_temperature = "reasoning_effort" in request and _CLAUDE_MODELS.match(name)
    dropped = {"temperature"} if without_temperature else set()
    return {key: value for key, value in request.items() if key not in dropped} | more


_CACHE_BREAKPOINT = {"type": "ephemeral"}
_MARKED_INPUTS = 2
_THINKING_TYPES = ("thinking", "redacted_thinking")


def is_anthropic(model: str) -> bool:
    """Return True for Anthropic's models at Anthropic, Bedrock and Vertex, by litellm's name.

    Other models cache automatically (OpenAI, Gemini) or not at all, and some reject cache
    breakpoints.
    """
    provider, _, model_name = model.partition("/")
    return (
        provider == "anthropic"
        or (provider == "bedrock" and "anthropic" in model_name)
        or (provider == "vertex_ai" and model_name.startswith("claude"))
    )


def with_cache_marks(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Return copies of the messages with cache breakpoints on the system message and two inputs.

    Each call repeats the conversation and adds a little. The breakpoint on the last input writes
    the cache up to there; the previous call wrote it up to the input before, so the breakpoint
    there reads it. This uses three of the four breakpoints that are allowed. An empty text block
    must not have one.
    """
    input_indexes = [
        index
        for index, message in enumerate(messages)
        if message.get("role") in ("user", "tool") and message.get("content")
    ]
    system_indexes = [
        index
        for index, message in enumerate(messages)
        if message.get("role") == "system" and message.get("content")
    ]
    marked = {*system_indexes[:1], *input_indexes[-_MARKED_INPUTS:]}
    return [
        _with_breakpoint(message) if index in marked else message
        for index, message in enumerate(messages)
    ]


def without_empty_texts(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Return copies of the messages without the empty text of replies that have tool calls.

    Anthropic rejects empty texts, and litellm would insert a sentence of its own.
    """
    return [
        {**message, "content": None}
        if message.get("tool_calls") and message.get("content") == ""
        else dict(message)
        for message in messages
    ]


def with_own_thinking(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Return copies of the messages with the thinking blocks of Anthropic's models only."""
    return [_with_own_thinking(message) for message in messages]


def can_think(messages: list[ChatMessage]) -> bool:
    """Return False if the model must not think in the next reply.

    That is the case after tool calls without thinking blocks, like those of another model:
    Anthropic rejects requests with thinking enabled then.
    """
    for message in reversed(messages):
        if message.get("role") == "assistant":
            return not message.get("tool_calls") or bool(_thinking_blocks(message))
        if message.get("role") == "user":
            return True
    return True


def _thinking_blocks(message: ChatMessage) -> list[dict[str, Any]]:
    return [block for block in message.get(THINKING, ()) if block.get("type") in _THINKING_TYPES]


def _with_own_thinking(message: ChatMessage) -> ChatMessage:
    other_fields = {name: value for name, value in message.items() if name != THINKING}
    thinking_blocks = _thinking_blocks(message)
    return {**other_fields, THINKING: thinking_blocks} if thinking_blocks else other_fields


def _with_breakpoint(message: ChatMessage) -> ChatMessage:
    if message["role"] == "tool":
        # A tool result is a single block, so the breakpoint is a field of the message.
        return {**message, "cache_control": _CACHE_BREAKPOINT}
    content = message["content"]
    blocks: list[dict[str, Any]] = (
        [{"type": "text", "text": content}] if isinstance(content, str) else [*content]
    )
    return {
        **message,
        "content": [*blocks[:-1], {**blocks[-1], "cache_control": _CACHE_BREAKPOINT}],
    }


MoneyLeft = Callable[[], float]
"""Returns the US dollars that may still be spent."""

CHARACTERS_PER_TOKEN = 4.0
"""Characters per token of English text and code, used until a call has returned real counts."""

MIN_OUTPUT_TOKENS = 1_000
"""Minimum number of output tokens for which a call is worth its price."""

MIN_REASONING_TOKENS = 10_000
"""The same for a model with a reasoning effort, because reasoning counts as output."""

_IMAGE_PREFIX = "data:image"


def unbounded() -> float:
    """Return infinity: there is no budget."""
    return float("inf")


@dataclass(frozen=True)
class CallSize:
    """Size of the last call: characters sent, and the tokens that were counted for them."""

    characters: int
    tokens: Tokens


def characters_of(messages: list[ChatMessage], tools: list[ToolSpec] | None) -> int:
    """Return the number of characters that are sent. Any picture counts as 4,000."""
    sizes = (_size(message) for message in messages)
    return sum(sizes) + (len(json.dumps(tools)) if tools else 0)


def _size(message: ChatMessage) -> int:
    content = message.get("content")
    tool_call_characters = 0
    for call in message.get("tool_calls") or ():
        tool_call_characters += len(call["function"]["name"]) + len(call["function"]["arguments"])
    if isinstance(content, list):
        return tool_call_characters + sum(
            4_000 if _IMAGE_PREFIX in str(block)[:200] else len(str(block.get("text", "")))
            for block in content
        )
    return tool_call_characters + len(content or "")


def affordable_output(
    money_left: float,
    price: Callable[[Tokens], float | None],
    characters: int,
    last_call: CallSize | None,
    min_output_tokens: int = MIN_OUTPUT_TOKENS,
) -> int | None:
    """Return the maximum number of tokens of the reply, None if there is no limit.

    There is no limit without a budget or if the price is unknown.

    money_left: US dollars left.
    price: returns the price of tokens.
    characters: size of the request.
    last_call: size of the last call. If input was cached then, it is assumed to be cached again.
    min_output_tokens: minimum number of output tokens.

    Raises LimitReached if the money does not suffice for the input and `min_output_tokens`.
    """
    price_per_million = price(Tokens(output=1_000_000))
    if money_left == float("inf") or price_per_million is None:
        return None
    characters_per_token = CHARACTERS_PER_TOKEN
    cached_tokens = 0
    if last_call and last_call.tokens.input and last_call.characters:
        characters_per_token = last_call.characters / last_call.tokens.input
        cached_tokens = last_call.tokens.input if last_call.tokens.cached else 0
    tokens = int(characters / characters_per_token)
    input_cost = price(Tokens(input=tokens, cached=min(cached_tokens, tokens))) or 0.0
    min_cost = input_cost + min_output_tokens * price_per_million / 1_000_000
    if min_cost > money_left:
        raise LimitReached(
            "budget",
            f"the next call to the model costs at least ${min_cost:.4f}, and "
            f"${max(0.0, money_left):.4f} of the budget is left",
            "raise --max-budget, or choose a cheaper model",
        )
    return (
        int((money_left - input_cost) / price_per_million * 1_000_000)
        if price_per_million
        else None
    )


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
        **(config.model_extra or {}),
        "model": name,
        "messages": _prepare_messages(config, name, messages),
        "tools": tools or None,
        "api_base": config.base_url,
        "api_version": config.api_version,
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
    return adjust_request({k: v for k, v in request.items() if v is not None}, entry)


def access(config: ModelConfig, name: str) -> dict[str, Any]:
    """Return the parameters for the key.

    Without a key, the machine's own credentials for the cloud are used, also with a `base_url`:
    they sign requests or are exchanged for tokens, and are not sent themselves.
    """
    key = config.key
    provider = name.partition("/")[0]
    if provider.startswith("bedrock"):
        return {"api_key": key}
    if provider.startswith("vertex_ai"):
        return {"vertex_credentials": key}
    # With a base URL but no key, send a dummy key: otherwise litellm would take one from the
    # environment, which belongs to another host.
    return {"api_key": key or ("none" if config.base_url else None)}


def _thinking(
    config: ModelConfig, name: str, entry: Entry, messages: list[ChatMessage]
) -> dict[str, Any]:
    if config.reasoning_effort is None or (is_anthropic(name) and not can_think(messages)):
        return {}
    # litellm drops the parameter for models that it does not know. It was set explicitly, so
    # insist on it.
    allow_unknown = {} if entry else {"allowed_openai_params": ["reasoning_effort"]}
    return {"reasoning_effort": config.reasoning_effort, **allow_unknown}


def _prepare_messages(
    config: ModelConfig, name: str, messages: list[ChatMessage]
) -> list[ChatMessage]:
    """Return copies of the messages with the thinking blocks of this provider only."""
    if is_anthropic(name):
        return with_cache_marks(without_empty_texts(with_own_thinking(messages)))
    if name.startswith(_RESPONSES_API):
        return [_with_reasoning(message) for message in messages]
    return [_with_reasoning_text(message, config.model) for message in messages]


def _with_reasoning_text(message: ChatMessage, model: str) -> ChatMessage:
    """Return the message with the reasoning that this model wrote in plain text, if there is any.

    Source: https://api-docs.deepseek.com/guides/thinking_mode#tool-calls
    """
    other_fields = {k: v for k, v in message.items() if k != THINKING}
    texts = [
        block["text"]
        for block in message.get(THINKING, ())
        if block.get("type") == REASONING_TEXT and block.get("model") == model
    ]
    return {**other_fields, "reasoning_content": texts[0]} if texts else other_fields


def _with_reasoning(message: ChatMessage) -> ChatMessage:
    other_fields = {k: v for k, v in message.items() if k != THINKING}
    items = [block for block in message.get(THINKING, ()) if block.get("type") == "reasoning"]
    return {**other_fields, "reasoning_items": items} if items else other_fields
