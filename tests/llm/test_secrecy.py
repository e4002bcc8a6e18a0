"""Tests that key and conversation don't reach logs, the environment or other hosts."""

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from resolver.errors import ModelError
from tests.llm.conftest import KEY, Build
from tests.parts.model_endpoint import ModelEndpoint, error, html, reply, tool_call

HELLO = [{"role": "user", "content": "the-private-words"}]

# Runs by itself, so that it sees litellm's import; the audit hook sees every connection.
SCRIPT = """
import json, os, sys
seen = {"connected": [], "looked_up": []}
def watch(event, args):
    if event == "socket.connect": seen["connected"].append(list(args[1])[:2])
    if event == "socket.getaddrinfo": seen["looked_up"].append(str(args[0]))
sys.addaudithook(watch)
from resolver.llm.base import ModelConfig
from resolver.llm.litellm_model import LiteLLMModel
seen["imported_early"] = "litellm" in sys.modules
for name, url in json.loads(sys.argv[1]):
    model = LiteLLMModel(ModelConfig(model=name, base_url=url), on_retry=lambda *_: None)
    model.supports_tools
    model.complete([{"role": "user", "content": "hello"}])
seen["environment"] = dict(os.environ)
print(json.dumps(seen))
"""


ONE_PROCESS = pytest.mark.xdist_group("secrecy")  # `seen` imports litellm, which takes seconds


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a process did that asked three models, in a folder with a hostile .env file."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / ".env").write_text("OPENAI_BASE_URL=http://attacker.invalid/v1\nPLANTED=yes\n")
    with ModelEndpoint() as endpoint:
        endpoint.answer_with(lambda _: reply("hello"))
        models = [
            ("gpt-4o", endpoint.url),
            ("my-own-model", endpoint.url),
            ("anthropic/claude-sonnet-4-5", endpoint.root),
        ]
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, json.dumps(models)],
            cwd=folder,
            env={
                "PYTHONPATH": str(Path(__file__).parents[2]),
                "PATH": "/usr/bin:/bin",
                "OPENAI_API_KEY": KEY,
                "ANTHROPIC_API_KEY": KEY,
            },
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        result: dict[str, Any] = json.loads(done.stdout)
        result["port"] = endpoint.port
        result["headers"] = [request.headers for request in endpoint.requests]
        return result


@ONE_PROCESS
def test_litellm_connects_to_the_endpoint_alone(seen: dict[str, Any]) -> None:
    assert seen["connected"] == [["127.0.0.1", seen["port"]]] * 3
    assert set(seen["looked_up"]) <= {"127.0.0.1", "b'127.0.0.1'"}


@ONE_PROCESS
def test_litellm_is_not_imported_before_it_is_needed(seen: dict[str, Any]) -> None:
    assert seen["imported_early"] is False


@pytest.mark.attack
@ONE_PROCESS
def test_a_planted_env_file_is_not_read(seen: dict[str, Any]) -> None:
    """A repository contains a `.env` file with another endpoint: it is not read."""
    assert "PLANTED" not in seen["environment"]


@pytest.mark.attack
@ONE_PROCESS
def test_a_providers_key_of_the_environment_is_not_sent_to_a_base_url(
    seen: dict[str, Any],
) -> None:
    """The environment has another provider's key: it is not sent to the configured endpoint."""
    assert len(seen["headers"]) == 3
    assert KEY not in json.dumps(seen["headers"])


@pytest.mark.parametrize("name", ["gpt-4o", "anthropic/claude-sonnet-4-5", "azure/gpt-4o"])
def test_the_log_holds_neither_key_nor_conversation(
    name: str,
    model_endpoint: ModelEndpoint,
    asked: Build,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    model_endpoint.script(
        reply("hello"),
        tool_call("execute_bash", {"command": "ls"}),
        error(500, f"bad {KEY}"),
        html(),
        error(401, f"bad {KEY}"),
    )
    model = asked(name).model
    model.complete(HELLO)
    model.complete(HELLO)
    with pytest.raises(ModelError):
        model.complete(HELLO)
    printed = capfd.readouterr()
    shown = caplog.text + printed.out + printed.err
    assert KEY not in shown
    assert "the-private-words" not in shown


def test_the_key_is_not_shown_by_the_configuration(asked: Build) -> None:
    model = asked().model
    assert KEY not in repr(model)
    assert KEY not in repr(model._config)
