"""`resolver doctor`: what is missing, and what to do about it."""

import json
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


def test_a_machine_without_an_engine_is_good_enough_for_the_local_runtime(
    capsys: pytest.CaptureFixture[str],
) -> None:
    environment = {**NO_ENGINE, "LLM_MODEL": "openai/x", "LLM_API_KEY": "k" * 20}
    assert run(["doctor", "--runtime", "local"], environment) == 0
    assert "k" * 20 not in capsys.readouterr().out


def test_as_json_only_what_needs_one_has_a_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    environment = {**NO_ENGINE, "LLM_MODEL": "openai/x", "LLM_API_KEY": "k" * 20}
    assert run(["doctor", "--runtime", "local", "--json"], environment) == 0
    found = {check["what"]: check for check in json.loads(capsys.readouterr().out)}
    assert found["git"] == {"good": True, "what": "git", "next_step": "", "required": True}
    assert {check["next_step"] for check in found.values() if check["good"]} == {""}
    assert "GITHUB_TOKEN" in found["GitHub token or App"]["next_step"]


def test_the_model_is_asked_only_when_wanted(
    model_endpoint: ModelEndpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {
        **NO_ENGINE,
        "LLM_MODEL": "gpt-4o",
        "LLM_API_KEY": "k" * 20,
        "LLM_BASE_URL": model_endpoint.url,
    }
    model_endpoint.readiness = reply("ready")
    assert run(["doctor", "--runtime", "local"], environment) == 0
    assert model_endpoint.checks == []
    assert run(["doctor", "--runtime", "local", "--ask"], environment) == 0
    assert "ok       asking the model: gpt-4o answered" in capsys.readouterr().out
    model_endpoint.readiness = error(401, "bad key")
    assert run(["doctor", "--runtime", "local", "--ask"], environment) == 1
    shown = capsys.readouterr().out
    assert "missing  asking the model: the model endpoint at 127.0.0.1" in shown
    assert "set LLM_API_KEY" in shown
