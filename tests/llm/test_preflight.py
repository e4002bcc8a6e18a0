"""Tests of the check of a model before a run."""

import pytest
from pydantic import SecretStr

from resolver.errors import ModelAuthError, ModelError
from resolver.llm.base import Model, ModelConfig
from resolver.llm.preflight import check_model
from resolver.llm.registry import make_model
from tests.parts.model_endpoint import Answer, ModelEndpoint, error, raw, redirect, reply

KEY = "sk-canary-77c1e0b2a94f5d38"


def check(
    config: ModelConfig,
    environment: dict[str, str] | None = None,
    retries: list[str] | None = None,
) -> str:
    result = [] if retries is None else retries

    def ask(config: ModelConfig) -> Model:
        return make_model(config, on_retry=lambda *_: None, sleep=lambda _: None)

    return check_model(
        config,
        environment or {},
        make_short_model=ask,
        on_retry=lambda attempt, wait, reason: result.append(reason),
        sleep=lambda _: None,
    )


def at(endpoint: ModelEndpoint, model: str = "openai/gpt-4o", **more: object) -> ModelConfig:
    given = {"model": model, "api_key": SecretStr(KEY), "base_url": endpoint.url, "timeout": 10.0}
    return ModelConfig.model_validate({**given, **more})


@pytest.mark.parametrize(
    ("model", "listed"),
    [
        ("openai/gpt-4o", "gpt-4o"),
        ("openai/gpt-4o", "openai/gpt-4o"),
        ("openai/responses/gpt-5", "gpt-5"),
        ("gpt-4o", "gpt-4o"),
        ("Qwen/Qwen3-Coder", "Qwen/Qwen3-Coder"),
        ("openai/gpt-4o", "gpt-4o-2024-08-06"),
        ("openai/llama3.1", "llama3.1:latest"),
    ],
)
def test_a_listed_model_gets_no_question(
    model_endpoint: ModelEndpoint, model: str, listed: str
) -> None:
    model_endpoint.models = ["other", listed]
    assert check(at(model_endpoint, model)) == f"{model} is listed at 127.0.0.1"
    assert [(r.path, r.headers["authorization"]) for r in model_endpoint.listings] == [
        ("/v1/models", f"Bearer {KEY}")
    ]
    assert model_endpoint.requests == []


@pytest.mark.parametrize(
    ("model", "body", "path", "header"),
    [
        (
            "anthropic/claude-sonnet-4-5",
            b'{"data": [{"id": "claude-sonnet-4-5-20250929", "type": "model"}]}',
            "/v1/models?limit=1000",
            "x-api-key",
        ),
        (
            "gemini/gemini-2.5-pro",
            b'{"models": [{"name": "models/gemini-2.5-pro"}]}',
            "/v1beta/models?pageSize=1000",
            "x-goog-api-key",
        ),
        ("ollama_chat/qwen3", b'{"models": [{"name": "qwen3:latest"}]}', "/api/tags", ""),
    ],
)
def test_the_list_of_each_provider_is_requested_as_documented(
    model_endpoint: ModelEndpoint, model: str, body: bytes, path: str, header: str
) -> None:
    model_endpoint.listing = raw(body)
    assert "is listed" in check(at(model_endpoint, model, base_url=model_endpoint.root))
    (asked,) = model_endpoint.listings
    assert asked.path == path
    assert header == "" or asked.headers[header] == KEY


def test_a_providers_own_variables_set_address_and_key(
    model_endpoint: ModelEndpoint,
) -> None:
    model_endpoint.models = ["gpt-4o"]
    own = {"OPENAI_API_BASE": model_endpoint.url, "OPENAI_API_KEY": "sk-of-the-provider-1234"}
    assert "is listed" in check(ModelConfig(model="openai/gpt-4o"), own)
    (asked,) = model_endpoint.listings
    assert asked.headers["authorization"] == "Bearer sk-of-the-provider-1234"


def test_a_providers_own_key_is_not_sent_to_another_address(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.models = ["gpt-4o"]
    check(at(model_endpoint, api_key=None), {"OPENAI_API_KEY": KEY})
    (asked,) = model_endpoint.listings
    assert KEY not in str(asked)


@pytest.mark.parametrize(
    "listing",
    [
        *(error(status) for status in (404, 405, 429, 500, 503)),
        *(raw(body) for body in (b"<html>", b'{"data": []}', b"[1, 2]", b'{"data": [7, {}]}')),
        redirect("http://127.0.0.1:1/"),
    ],
)
def test_an_unavailable_list_does_not_stop_the_run(
    model_endpoint: ModelEndpoint, listing: Answer
) -> None:
    model_endpoint.listing = listing
    assert check(at(model_endpoint)) == ""
    assert model_endpoint.requests == []


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_rejected_for_list_and_question_is_refused(
    model_endpoint: ModelEndpoint, status: int
) -> None:
    model_endpoint.listing = error(status, "bad key")
    model_endpoint.script(error(status, "bad key"))
    with pytest.raises(ModelAuthError) as raised:
        check(at(model_endpoint))
    assert "LLM_API_KEY" in raised.value.next_step
    assert raised.value.cause == "model_key"
    assert KEY not in str(raised.value)


def test_a_key_that_can_not_list_models_is_accepted(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.listing = error(403, "Missing scopes: api.model.read")
    model_endpoint.script(reply("ready"))
    assert check(at(model_endpoint)) == "openai/gpt-4o has answered"


def test_a_model_that_is_not_listed_and_not_known_is_refused(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.models = ["gpt-4o", "gpt-4o-mini"]
    model_endpoint.script(error(404, "The model `gpt-40` does not exist"))
    with pytest.raises(ModelError, match="the model is not known there") as raised:
        check(at(model_endpoint, "openai/gpt-40"))
    assert "LLM_MODEL" in raised.value.next_step


@pytest.mark.parametrize("busy", [error(429, "slow down", retry_after=60), error(503, "busy")])
def test_a_busy_or_slow_provider_does_not_stop_the_run(
    model_endpoint: ModelEndpoint, busy: Answer
) -> None:
    model_endpoint.models = ["other"]
    model_endpoint.script(busy)
    assert check(at(model_endpoint)) == ""
    assert len(model_endpoint.requests) == 1


def test_a_cloud_without_a_list_gets_a_question(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.script(error(401, "Access denied due to invalid subscription key"))
    config = at(
        model_endpoint, "azure/calc", base_url=model_endpoint.root, api_version="2024-10-21"
    )
    with pytest.raises(ModelAuthError):
        check(config)
    assert model_endpoint.listings == []


def test_an_unreachable_address_is_retried_and_then_refused() -> None:
    retries: list[str] = []
    config = ModelConfig(
        model="openai/gpt-4o",
        api_key=SecretStr(KEY),
        base_url="http://127.0.0.1:1/v1",
        num_retries=2,
    )
    with pytest.raises(ModelError, match="nothing answers at the address") as raised:
        check(config, retries=retries)
    assert len(retries) == 2
    assert raised.value.cause == "provider_down"
    assert "LLM_BASE_URL" in raised.value.next_step
