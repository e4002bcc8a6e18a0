"""Construction of the parameters of a litellm call.

Adjustments for single providers are in one table with the reasons. Messages for Anthropic's models
get cache breakpoints, send thinking blocks back unchanged and have no empty texts:
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
from resolver.models.run import Tokens

Entry = Mapping[str, Any]
"""A model's entry in litellm's table; empty if there is none."""

TOOLS_UNCERTAIN = ("ollama/", "ollama_chat/")
"""Providers whose models are assumed not to support tool calls if litellm does not know them.

Unknown models of all other providers are assumed to support them.
"""

WITHOUT_OWN_CLIENT = ("azure/", "azure_text/", "text-completion-openai/")
"""Providers that litellm reaches through the openai package, which uses the shared client."""

_CLAUDE = r"(anthropic/|(bedrock|vertex_ai)/.*claude)"
LONGEST_OF_UNKNOWN = 32_000
"""Maximum number of output tokens for models whose limit is unknown."""


@dataclass(frozen=True)
class Fix:
    """An adjustment of the requests to some models.

    models: pattern that matches the beginning of litellm's name of the model.
    reason: why the adjustment is needed.
    sets: returns parameters to add, given the model's entry in litellm's table.
    leaves_out: parameters to remove.
    needs: the adjustment applies only if the request has this parameter.
    """

    models: str
    reason: str
    sets: Callable[[Entry], dict[str, Any]] = lambda _: {}
    leaves_out: tuple[str, ...] = ()
    needs: str = ""


FIXES = (
    Fix(
        r"anthropic/",
        "Anthropic demands a limit. litellm's guess for a model that it does not know, 4,096, and "
        "for one that thinks, 4,096 beside the thoughts, cut the writing of a file.",
        sets=lambda entry: {"max_tokens": entry.get("max_output_tokens", LONGEST_OF_UNKNOWN)},
    ),
    Fix(
        _CLAUDE,
        "Claude refuses a temperature while it thinks.",
        leaves_out=("temperature",),
        needs="reasoning_effort",
    ),
    Fix(
        r"(openai|azure)/responses/",
        "The Responses API keeps each conversation for 30 days unless told not to; its reasoning "
        "must then be carried by us, and comes only when it is asked for.",
        sets=lambda entry: {
            "store": False,
            **(
                {"include": ["reasoning.encrypted_content"]}
                if entry.get("supports_reasoning")
                else {}
            ),
        },
    ),
    Fix(
        r"ollama(_chat)?/",
        "Ollama forgets without a word what is beyond its default context of 4,096 tokens.",
        sets=lambda _: {"num_ctx": 32_768},
    ),
)


def fixed(request: dict[str, Any], entry: Entry) -> dict[str, Any]:
    """Return the adjusted request. `request["model"]` is litellm's name of the model."""
    for fix in FIXES:
        applies = re.match(fix.models, request["model"]) and (not fix.needs or fix.needs in request)
        if applies:
            kept = {k: v for k, v in request.items() if k not in fix.leaves_out}
            request = {**kept, **fix.sets(entry)}
    return request


_MARK = {"type": "ephemeral"}
_MARKED_TURNS = 2
_THOUGHTS = ("thinking", "redacted_thinking")


def is_anthropic(model: str) -> bool:
    """Return True for Anthropic's models at Anthropic, Bedrock and Vertex, by litellm's name.

    Other models cache automatically (OpenAI, Gemini) or not at all, and some reject cache
    breakpoints.
    """
    provider, _, rest = model.partition("/")
    return (
        provider == "anthropic"
        or (provider == "bedrock" and "anthropic" in rest)
        or (provider == "vertex_ai" and rest.startswith("claude"))
    )


def with_cache_marks(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Return copies of the messages with cache breakpoints on the system message and two inputs.

    Each call repeats the conversation and adds a little. The breakpoint on the last input writes
    the cache up to there; the previous call wrote it up to the input before, so the breakpoint
    there reads it. This uses three of the four breakpoints that are allowed. An empty text block
    must not have one.
    """
    inputs = [
        index
        for index, message in enumerate(messages)
        if message.get("role") in ("user", "tool") and message.get("content")
    ]
    systems = [
        index
        for index, message in enumerate(messages)
        if message.get("role") == "system" and message.get("content")
    ]
    marked = {*systems[:1], *inputs[-_MARKED_TURNS:]}
    return [
        _marked(message) if index in marked else message for index, message in enumerate(messages)
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


def may_think(messages: list[ChatMessage]) -> bool:
    """Return False if the model must not think in the next reply.

    That is the case after tool calls without thinking blocks, like those of another model:
    Anthropic rejects requests with thinking enabled then.
    """
    for message in reversed(messages):
        if message.get("role") == "assistant":
            return not message.get("tool_calls") or bool(_thoughts_of(message))
        if message.get("role") == "user":
            return True
    return True


def _thoughts_of(message: ChatMessage) -> list[dict[str, Any]]:
    return [block for block in message.get(THINKING, ()) if block.get("type") in _THOUGHTS]


def _with_own_thinking(message: ChatMessage) -> ChatMessage:
    kept = {name: value for name, value in message.items() if name != THINKING}
    thoughts = _thoughts_of(message)
    return {**kept, THINKING: thoughts} if thoughts else kept


def _marked(message: ChatMessage) -> ChatMessage:
    if message["role"] == "tool":
        # A tool result is a single block, so the breakpoint is a field of the message.
        return {**message, "cache_control": _MARK}
    content = message["content"]
    blocks: list[dict[str, Any]] = (
        [{"type": "text", "text": content}] if isinstance(content, str) else [*content]
    )
    return {**message, "content": [*blocks[:-1], {**blocks[-1], "cache_control": _MARK}]}


MoneyLeft = Callable[[], float]
"""Returns the US dollars that may still be spent."""

CHARACTERS_A_TOKEN = 4.0
"""Characters per token of English text and code, used until a call has returned real counts."""

LEAST_OUTPUT = 1_000
"""Minimum number of output tokens for which a call is worth its price."""

LEAST_THINKING = 10_000
"""The same for a model with a reasoning effort, because reasoning counts as output."""

_PICTURE = "data:image"


def unbounded() -> float:
    """Return infinity: there is no budget."""
    return float("inf")


@dataclass(frozen=True)
class Counted:
    """Size of the last call: characters sent, and the tokens that were counted for them."""

    characters: int
    tokens: Tokens


def characters_of(messages: list[ChatMessage], tools: list[ToolSpec] | None) -> int:
    """Return the number of characters that are sent. Any picture counts as 4,000."""
    sizes = (_size(message) for message in messages)
    return sum(sizes) + (len(json.dumps(tools)) if tools else 0)


def _size(message: ChatMessage) -> int:
    content = message.get("content")
    written = 0
    for call in message.get("tool_calls") or ():
        written += len(call["function"]["name"]) + len(call["function"]["arguments"])
    if isinstance(content, list):
        return written + sum(
            4_000 if _PICTURE in str(block)[:200] else len(str(block.get("text", "")))
            for block in content
        )
    return written + len(content or "")


def affordable_output(
    left: float,
    price: Callable[[Tokens], float | None],
    characters: int,
    last: Counted | None,
    least: int = LEAST_OUTPUT,
) -> int | None:
    """Return the maximum number of tokens of the reply, None if there is no limit.

    There is no limit without a budget or if the price is unknown.

    left: US dollars left.
    price: returns the price of tokens.
    characters: size of the request.
    last: size of the last call. If input was cached then, it is assumed to be cached again.
    least: minimum number of output tokens.

    Raises LimitReached if the money does not suffice for the input and `least` tokens of output.
    """
    a_token = price(Tokens(output=1_000_000))
    if left == float("inf") or a_token is None:
        return None
    ratio = CHARACTERS_A_TOKEN
    cached = 0
    if last and last.tokens.input and last.characters:
        ratio = last.characters / last.tokens.input
        cached = last.tokens.input if last.tokens.cached else 0
    tokens = int(characters / ratio)
    going_in = price(Tokens(input=tokens, cached=min(cached, tokens))) or 0.0
    needed = going_in + least * a_token / 1_000_000
    if needed > left:
        raise LimitReached(
            "budget",
            f"the next call to the model costs at least ${needed:.4f}, and "
            f"${max(0.0, left):.4f} of the budget is left",
            "raise --max-budget, or choose a cheaper model",
        )
    return int((left - going_in) / a_token * 1_000_000) if a_token else None


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
