"""The maximum length of a reply that the rest of the budget pays for, computed before a call.

The size of the input is estimated from the number of characters and from the counts of the last
call.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass

from resolver.errors import LimitReached
from resolver.llm.base import ChatMessage, ToolSpec
from resolver.models.run import Tokens

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
