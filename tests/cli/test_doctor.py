"""`resolver doctor`: what is missing, and what to do about it."""

import os

import pytest

from resolver.cli.main import run
from tests.parts.model_endpoint import ModelEndpoint, error, reply

NO_ENGINE = {"DOCKER_HOST": "tcp://127.0.0.1:1", "PATH": os.environ["PATH"]}


def test_what_is_missing_comes_with_the_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--runtime", "docker"], NO_ENGINE) == 1
    shown = capsys.readouterr().out
    assert "missing  Docker engine" in shown
    assert "RESOLVER_RUNTIME=local" in shown
    assert "missing  model" in shown
    assert "LLM_MODEL" in shown


def test_models_are_asked_only_when_wanted(
    model_endpoint: ModelEndpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {
        **NO_ENGINE,
        "RESOLVER_RUNTIME": "local",
        "LLM_MODEL": "gpt-4o",
        "LLM_API_KEY": "k" * 20,
        "LLM_BASE_URL": model_endpoint.url,
        "RESOLVER_SERVICES": "{condenser: {model: small, api_key: k}}",
    }
    model_endpoint.readiness = lambda body: (
        error(401, "bad key") if body["model"] == "small" else reply("ready")
    )
    assert run(["doctor"], environment) == 0
    assert model_endpoint.checks == []
    assert run(["doctor", "--model", "gpt-4o-mini"], environment) == 0
    assert "ok       asking the model: gpt-4o-mini answered" in capsys.readouterr().out
    assert run(["doctor", "--model"], environment) == 1
    shown = capsys.readouterr().out
    assert "ok       asking the model: gpt-4o answered" in shown
    assert "missing  asking the model of condenser: the model endpoint at" in shown
    assert "RESOLVER_SERVICES (condenser)" in shown
