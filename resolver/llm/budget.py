"""How much a model may still write: what the money that is left buys, decided before a call.

What goes in is an estimate, from the size of the conversation and from what the last call counted.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass

from resolver.errors import LimitReached
from resolver.llm.base import ChatMessage, ToolSpec
from resolver.models.run import Tokens

MoneyLeft = Callable[[], float]
"""US dollars that may still be spent."""

CHARACTERS_A_TOKEN = 4.0
"""Of English and code, until a call has counted better."""

LEAST_OUTPUT = 1_000
"""Tokens without which a call is not worth its price."""

LEAST_THINKING = 10_000
"""The same for a model that was told how much to think; thoughts are output."""

_PICTURE = "data:image"


def unbounded() -> float:
    """Money without end."""
    return float("inf")


@dataclass(frozen=True)
class Counted:
    """What the last call teaches: characters sent, and tokens counted for them."""

    characters: int
    tokens: Tokens


def characters_of(messages: list[ChatMessage], tools: list[ToolSpec] | None) -> int:
    """Characters that are sent. A picture counts as 4,000, whatever its bytes."""
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
    """Most tokens that the reply may have; None when the money or the price sets no bound.

    What the last call had cached is taken to be cached again. Raises LimitReached when the money
    does not reach for what goes in and `least` tokens of output.
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
