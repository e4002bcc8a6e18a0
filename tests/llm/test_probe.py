"""Tests of the connection test: one tiny call, and one sentence about a failure."""

import pytest

from resolver.errors import ModelError
from resolver.llm.base import ModelConfig
from resolver.llm.preflight import probe
from resolver.llm.registry import make_model
from tests.parts.model_endpoint import Answer, ModelEndpoint, error, reply


def ask(url: str, name: str = "gpt-4o") -> str:
    config = ModelConfig(model=name, base_url=url, num_retries=0, timeout=10.0)
    return probe(make_model(config, on_retry=lambda *_: None, sleep=lambda _: None))


def test_a_working_model_is_shown_with_its_price(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.readiness = reply("ready")
    said = ask(model_endpoint.url)
    assert said.startswith("gpt-4o answered in ")
    assert said.endswith("(110 tokens, $0.000350)")
    assert len(model_endpoint.checks) == 1


@pytest.mark.parametrize(
    ("answer", "meaning", "next_step"),
    [
        (error(404, "The model does not exist"), "not known there", "LLM_MODEL"),
        (error(429, "slow down"), "no quota left", "raise the quota"),
        (error(402, "pay first"), "no quota left", "raise the quota"),
        (
            error(400, "not available in this region"),
            "the region",
            "the region of the model",
        ),
        (error(407, "authenticate"), "a proxy", "HTTPS_PROXY"),
    ],
)
def test_the_cause_is_one_sentence(
    model_endpoint: ModelEndpoint, answer: Answer, meaning: str, next_step: str
) -> None:
    model_endpoint.readiness = answer
    with pytest.raises(ModelError) as raised:
        ask(model_endpoint.url)
    assert meaning in raised.value.what
    assert next_step in raised.value.next_step
