"""Tests of the context window in litellm's table."""

from resolver.llm.base import ModelConfig
from resolver.llm.library import context_window


def test_a_known_model_has_its_window() -> None:
    assert context_window(ModelConfig(model="openai/gpt-4o")) == 128_000
    assert context_window(ModelConfig(model="gpt-4o")) == 128_000


def test_an_unknown_model_has_none() -> None:
    assert context_window(ModelConfig(model="openai/nobody-has-this")) is None
    assert context_window(ModelConfig(model="of-our-own", base_url="http://127.0.0.1:1/v1")) is None
