"""Conversion of litellm's response objects, also streamed ones, to `Completion`.

The contents of a response are not trusted: counts are checked, and a response without a message is
not a completion.
"""

from collections.abc import Iterable
from typing import Any

from resolver.llm.library import litellm
from resolver.models.run import Completion, RequestedToolCall, Tokens


def completion_of(
    response: Any, *, model: str, tokens: Tokens, cost: float | None
) -> Completion | None:
    """Return the first choice of a response as a completion, None if there is none.

    model: the name that the user configured; the endpoint's own name is ignored.
    """
    choices: Any = getattr(response, "choices", None) or ()
    message = getattr(choices[0], "message", None) if choices else None
    if message is None:
        return None
    return Completion(
        model=model,
        text=_text(getattr(message, "content", None)),
        reasoning=_text(getattr(message, "reasoning_content", None)),
        thinking=_thinking(message),
        tool_calls=tuple(_tool_call(call) for call in getattr(message, "tool_calls", None) or ()),
        finish_reason=_text(getattr(choices[0], "finish_reason", None)),
        tokens=tokens,
        cost=cost,
    )


def _thinking(message: Any) -> tuple[dict[str, Any], ...]:
    """Return the blocks that have to be sent back unchanged: those that are signed or encrypted."""
    blocks = getattr(message, "thinking_blocks", None) or ()
    reasoning_items = getattr(message, "reasoning_items", None) or ()
    signed_blocks = [
        b for b in blocks if isinstance(b, dict) and (b.get("signature") or b.get("data"))
    ]
    encrypted_items = [
        i for i in reasoning_items if isinstance(i, dict) and i.get("encrypted_content")
    ]
    return tuple(dict(block) for block in (*signed_blocks, *encrypted_items))


def add_usage(first: Completion, second: Completion) -> Completion:
    """Return the second reply with the tokens and the cost of both."""
    is_cost_known = first.cost is not None and second.cost is not None
    cost = (first.cost or 0.0) + (second.cost or 0.0) if is_cost_known else None
    is_cost_estimated = first.is_cost_estimated or second.is_cost_estimated
    return second.model_copy(
        update={
            "tokens": first.tokens + second.tokens,
            "cost": cost,
            "is_cost_estimated": is_cost_estimated,
        }
    )


ESTIMATED_CHARACTERS_PER_TOKEN = 3
"""Characters per token of an estimate. Text and code have about 4, so this rather overestimates."""


def billed_tokens(response: Any, request_characters: int) -> tuple[Tokens, bool]:
    """Return the tokens to calculate a reply's cost with, and True if they are estimated.

    Every request has input, and a reply that is not empty has output. A provider that reports none,
    or negative counts, can't be believed, and without an estimate the budget would not bind.
    """
    tokens = tokens_of(response)
    reply_characters = _reply_characters(response)
    has_input = tokens.input > 0
    has_output = tokens.output > 0 or reply_characters == 0
    if has_input and has_output:
        return tokens, False
    estimate = -(-request_characters // ESTIMATED_CHARACTERS_PER_TOKEN)
    output_estimate = -(-reply_characters // ESTIMATED_CHARACTERS_PER_TOKEN)
    return Tokens(
        input=tokens.input if has_input else estimate,
        output=tokens.output if has_output else output_estimate,
        cached=tokens.cached,
    ), True


def _reply_characters(response: Any) -> int:
    """Return the number of characters of a reply: text, reasoning and tool calls."""
    reply = completion_of(response, model="", tokens=Tokens(), cost=None)
    if reply is None:
        return 0
    calls = sum(len(call.name) + len(call.arguments) for call in reply.tool_calls)
    return len(reply.text) + len(reply.reasoning) + calls


def tokens_of(response: Any) -> Tokens:
    """Return the token counts of a response, zeros if it has none."""
    usage = getattr(response, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    input_tokens = _count(usage, "prompt_tokens")
    return Tokens(
        input=input_tokens,
        output=_count(usage, "completion_tokens"),
        cached=min(_count(details, "cached_tokens"), input_tokens),
    )


def cache_write_tokens(response: Any) -> int:
    """Return the input tokens written to the prompt cache, for which some providers charge more."""
    tokens = tokens_of(response)
    cache_writes = _count(getattr(response, "usage", None), "cache_creation_input_tokens")
    return min(cache_writes, tokens.input - tokens.cached)


def _count(counts: Any, name: str) -> int:
    value = getattr(counts, name, None)
    return max(0, value) if isinstance(value, int) else 0


def _text(content: Any) -> str:
    """Return the text of a message's content, which is a string or a list of blocks."""
    if isinstance(content, list):
        return "".join(_text(block.get("text")) for block in content if isinstance(block, dict))
    return content if isinstance(content, str) else ""


def _tool_call(call: Any) -> RequestedToolCall:
    function = getattr(call, "function", None)
    return RequestedToolCall(
        id=_text(getattr(call, "id", None)),
        name=_text(getattr(function, "name", None)),
        arguments=_text(getattr(function, "arguments", None)),
    )


def join_chunks(chunks: Iterable[Any]) -> Any:
    """Return litellm's response object for the chunks of a streamed reply.

    Returns None if the stream contains neither content nor token counts, like a web page that is
    not a stream at all. Raises what litellm raises while reading.

    If the endpoint reports no token counts, litellm adds its own estimates. These are removed,
    because they are not what is billed. Reasoning items, which litellm drops, are restored.
    """
    chunk_list = list(chunks)
    response = litellm().stream_chunk_builder(chunk_list)
    if response is None:
        return None
    if not any(getattr(chunk, "usage", None) for chunk in chunk_list):
        response.usage = None
        if not any(_has_content(choice.message) for choice in response.choices):
            return None
    items = [
        item
        for chunk in chunk_list
        for choice in chunk.choices
        for item in getattr(choice.delta, "reasoning_items", None) or ()
    ]
    if items and response.choices:
        response.choices[0].message.reasoning_items = items
    return response


def _has_content(message: Any) -> bool:
    return bool(message.content or message.tool_calls)
