"""Tests of the budget: which calls are made, and how long replies may be."""

from typing import Any

import pytest

from resolver.errors import LimitReached
from resolver.llm.base import ModelConfig
from resolver.llm.litellm_model import LiteLLMModel
from resolver.llm.request import CallSize, affordable_output, characters_of
from resolver.models.run import Tokens
from tests.parts.model_endpoint import ModelEndpoint, Usage, reply

HELLO: list[dict[str, Any]] = [{"role": "user", "content": "hello"}]


def price(tokens: Tokens) -> float:
    """3, 0.30 (cached) and 15 dollars a million."""
    fresh = tokens.input - tokens.cached
    return (fresh * 3.0 + tokens.cached * 0.3 + tokens.output * 15.0) / 1_000_000


def model(endpoint: ModelEndpoint, left: float, name: str = "gpt-4o") -> LiteLLMModel:
    config = ModelConfig(model=name, base_url=endpoint.url)
    return LiteLLMModel(config, on_retry=lambda *_: None, money_left=lambda: left)


def test_the_remaining_budget_limits_the_reply() -> None:
    assert affordable_output(0.33, price, 40_000, None) == 20_000


def test_a_call_that_would_exceed_the_budget_is_not_made() -> None:
    with pytest.raises(LimitReached) as raised:
        affordable_output(0.04, price, 40_000, None)
    assert raised.value.limit == "budget"
    assert "$0.0450" in raised.value.what


def test_cached_input_is_estimated_at_the_cached_price() -> None:
    last = CallSize(40_000, Tokens(input=10_000, output=5, cached=9_000))
    assert affordable_output(0.04, price, 40_000, last) == 2_466


def test_the_last_call_gives_the_characters_per_token() -> None:
    last = CallSize(20_000, Tokens(input=10_000))
    assert affordable_output(0.33, price, 40_000, last) == 18_000


def test_calls_and_pictures_count_and_the_bytes_of_a_picture_do_not() -> None:
    call = {"function": {"name": "bash", "arguments": "x" * 100}}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 10**6}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": [{"type": "text", "text": "y" * 50}, picture]},
    ]
    assert characters_of(messages, None) == 104 + 50 + 4_000


def test_nothing_is_sent_if_the_budget_does_not_suffice(model_endpoint: ModelEndpoint) -> None:
    with pytest.raises(LimitReached, match="of the budget is left"):
        model(model_endpoint, left=0.005).complete(HELLO)
    assert model_endpoint.requests == []


def test_a_reply_is_limited_by_the_remaining_budget(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.script(reply("x"), reply("x"))
    model(model_endpoint, left=0.02).complete(HELLO)
    model(model_endpoint, left=5.0).complete(HELLO)
    bounded, free = (request.body for request in model_endpoint.requests)
    assert 1_900 < bounded["max_tokens"] <= 2_000
    assert "max_tokens" not in free


def test_a_reply_that_used_up_the_budget_is_not_requested_again(
    model_endpoint: ModelEndpoint,
) -> None:
    usage = Usage(prompt=100, completion=1_900)
    model_endpoint.script(reply("half", finish_reason="length", usage=usage))
    completion = model(model_endpoint, left=0.02).complete(HELLO)
    assert (completion.text, completion.finish_reason) == ("half", "length")
    assert completion.cost == pytest.approx(100 * 2.5e-6 + 1_900 * 1e-5)
