"""Tests of the check of a model before a run, and of the test call of `resolver doctor`."""

import pytest
from pydantic import SecretStr

from resolver.errors import ModelAuthError, ModelError
from resolver.llm.base import DEFAULT_SET_BY, Model, ModelConfig
from resolver.llm.preflight import check_model, explain, probe
from resolver.llm.registry import make_model
from tests.parts.model_endpoint import Answer, ModelEndpoint, error, html, reply

KEY = "sk-canary-77c1e0b2a94f5d38"


def check(config: ModelConfig, retries: list[str] | None = None) -> str | None:
    result = [] if retries is None else retries

    def ask(config: ModelConfig) -> Model:
        return make_model(config, on_retry=lambda *_: None, sleep=lambda _: None)

    return check_model(
        config,
        make_short_model=ask,
        on_retry=lambda attempt, wait, reason: result.append(reason),
        sleep=lambda _: None,
    )


def at(endpoint: ModelEndpoint, model: str = "openai/gpt-4o", **more: object) -> ModelConfig:
    given = {"model": model, "api_key": SecretStr(KEY), "base_url": endpoint.url, "timeout": 10.0}
    return ModelConfig.model_validate({**given, **more})


def test_a_model_that_answers_is_confirmed(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.readiness = reply("ready")
    assert check(at(model_endpoint)) == "openai/gpt-4o has answered"
    assert len(model_endpoint.checks) == 1


@pytest.mark.parametrize(
    "busy", [error(429, "slow down", retry_after=60), error(503, "busy"), html(502)]
)
def test_a_busy_provider_does_not_stop_the_run(model_endpoint: ModelEndpoint, busy: Answer) -> None:
    model_endpoint.readiness = busy
    assert check(at(model_endpoint)) is None
    assert len(model_endpoint.checks) == 1


@pytest.mark.parametrize("status", [401, 403])
def test_a_rejected_key_is_refused(model_endpoint: ModelEndpoint, status: int) -> None:
    model_endpoint.readiness = error(status, "bad key")
    with pytest.raises(ModelAuthError) as raised:
        check(at(model_endpoint))
    assert "LLM_API_KEY" in raised.value.next_step
    assert raised.value.cause == "model_key"
    assert KEY not in str(raised.value)


def test_a_model_that_is_not_known_is_refused(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.readiness = error(404, "The model `gpt-40` does not exist")
    with pytest.raises(ModelError, match="does not exist") as raised:
        check(at(model_endpoint, "openai/gpt-40"))
    assert "LLM_MODEL" in raised.value.next_step


def test_an_unreachable_address_is_retried_and_then_refused() -> None:
    retries: list[str] = []
    base_url = "http://127.0.0.1:1/v1"
    config = ModelConfig(model="openai/gpt-4o", api_key=SecretStr(KEY), base_url=base_url)
    with pytest.raises(ModelError, match="nothing answers at the address") as raised:
        check(config, retries)
    assert len(retries) == 2
    assert raised.value.cause == "provider_down"
    assert "LLM_BASE_URL" in raised.value.next_step


def test_a_certificate_that_is_not_trusted_is_explained() -> None:
    text = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate"
    explained = explain(ModelError(text, "", cause="provider_down"), DEFAULT_SET_BY)
    assert explained.what == f"nothing answers at the address: {text}"
    assert "SSL_CERT_FILE" in explained.next_step


def test_a_test_call_is_shown_with_its_price(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.readiness = reply("ready")
    config = at(model_endpoint, "gpt-4o")
    said = probe(make_model(config, on_retry=lambda *_: None, sleep=lambda _: None))
    assert said.startswith("gpt-4o answered in ")
    assert said.endswith("(110 tokens, $0.000350)")
    assert len(model_endpoint.checks) == 1
