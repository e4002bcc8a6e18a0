"""Tests of the connection test: one tiny call."""

from resolver.llm.base import ModelConfig
from resolver.llm.preflight import probe
from resolver.llm.registry import make_model
from tests.parts.model_endpoint import ModelEndpoint, reply


def ask(url: str, name: str = "gpt-4o") -> str:
    config = ModelConfig(model=name, base_url=url, num_retries=0, timeout=10.0)
    return probe(make_model(config, on_retry=lambda *_: None, sleep=lambda _: None))


def test_a_working_model_is_shown_with_its_price(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.readiness = reply("ready")
    said = ask(model_endpoint.url)
    assert said.startswith("gpt-4o answered in ")
    assert said.endswith("(110 tokens, $0.000350)")
    assert len(model_endpoint.checks) == 1
