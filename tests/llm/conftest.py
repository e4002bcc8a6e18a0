"""Builds models that talk to the scripted endpoint and don't really wait."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from pydantic import SecretStr

from resolver.llm.base import ModelConfig
from resolver.llm.litellm_model import LiteLLMModel
from tests.parts.model_endpoint import ModelEndpoint

KEY = "sk-canary-3f9a1b27c4d85e60"
HELLO: list[dict[str, Any]] = [
    {"role": "system", "content": "You fix issues."},
    {"role": "user", "content": "hello"},
]
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "execute_bash",
            "description": "Run a command.",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
        },
    }
]


@dataclass
class Asked:
    """A model, and what it did while it was asked."""

    model: LiteLLMModel
    config: ModelConfig
    waits: list[float] = field(default_factory=list)
    retries: list[tuple[int, float, str]] = field(default_factory=list)


PLACES: dict[str, dict[str, Any]] = {
    "azure": {"api_version": "2024-10-21"},
    "bedrock": {"aws_region_name": "eu-central-1"},
    "vertex_ai": {"vertex_location": "europe-west1", "vertex_project": "calc"},
}
"""What a cloud is told besides name and key."""


@cache
def _signing_key() -> str:
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    return key.private_bytes(pem, form, serialization.NoEncryption()).decode()


def service_account(token_server: str) -> str:
    """The key file of a service account at Google, whose tokens come from `token_server`."""
    return json.dumps(
        {
            "type": "service_account",
            "project_id": "calc",
            "private_key_id": "1",
            "private_key": _signing_key(),
            "client_email": "resolver@calc.iam.gserviceaccount.com",
            "client_id": "1",
            "token_uri": token_server,
        }
    )


Build = Callable[..., Asked]


def build(endpoint: ModelEndpoint, name: str = "gpt-4o", **config: Any) -> Asked:
    """A model at the endpoint: OpenAI's API unless the name says otherwise. `sleep` may be given
    among the settings."""
    url = endpoint.url if "/" not in name or name.startswith("openai/") else endpoint.root
    settings = {"model": name, "api_key": SecretStr(KEY), "base_url": url, "timeout": 5.0}
    provider = name.partition("/")[0]
    settings |= PLACES.get(provider, {})
    if provider == "vertex_ai" and "api_key" not in config:
        settings["api_key"] = SecretStr(service_account(f"{endpoint.root}/token"))
    waits: list[float] = []
    sleep = config.pop("sleep", waits.append)
    retries: list[tuple[int, float, str]] = []
    made = ModelConfig(**{**settings, **config})
    model = LiteLLMModel(
        made,
        on_retry=lambda *arguments: retries.append(arguments),
        sleep=sleep,
        jitter=lambda: 1.0,
    )
    return Asked(model, made, waits, retries)


@pytest.fixture
def asked(model_endpoint: ModelEndpoint) -> Build:
    """`asked(name, **config)`: a model at this test's endpoint."""
    return lambda name="gpt-4o", **config: build(model_endpoint, name, **config)
