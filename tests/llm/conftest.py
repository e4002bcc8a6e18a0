"""Builds models that talk to the scripted endpoint and never really wait."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import SecretStr

from resolver.llm.config import ModelConfig
from resolver.llm.litellm_model import LiteLLMModel
from tests.parts.model_endpoint import ModelEndpoint

KEY = "sk-canary-3f9a1b27c4d85e60"


@dataclass
class Asked:
    """A model, and what it did while it was asked."""

    model: LiteLLMModel
    waits: list[float] = field(default_factory=list)
    retries: list[tuple[int, float, str]] = field(default_factory=list)


Build = Callable[..., Asked]


def build(endpoint: ModelEndpoint, name: str = "gpt-4o", **config: Any) -> Asked:
    """A model at the endpoint: OpenAI's API unless the name says otherwise. `sleep` may be given
    among the settings."""
    url = endpoint.url if "/" not in name or name.startswith("openai/") else endpoint.root
    settings = {"model": name, "api_key": SecretStr(KEY), "base_url": url, "timeout": 5.0}
    waits: list[float] = []
    sleep = config.pop("sleep", waits.append)
    retries: list[tuple[int, float, str]] = []
    model = LiteLLMModel(
        ModelConfig(**{**settings, **config}),
        on_retry=lambda *told: retries.append(told),
        sleep=sleep,
        jitter=lambda: 1.0,
    )
    return Asked(model, waits, retries)


@pytest.fixture
def asked(model_endpoint: ModelEndpoint) -> Build:
    """`asked(name, **config)`: a model at this test's endpoint."""
    return lambda name="gpt-4o", **config: build(model_endpoint, name, **config)
