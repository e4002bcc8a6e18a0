"""Runs that change their model on the way, and where the keys of models are not.

Whole runs, because calls, log and outcome have to agree.
"""

from pathlib import Path

import pytest

from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import MODEL_KEY, CommandLine, bash, finish, make_checkout

FILES = {"calc.py": "def add(a, b):\n    return a - b\n"}
ISSUE = "# add() subtracts\n\n2 + 2 gives 0."


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_checkout(tmp_path / "calc", FILES)


def test_the_key_of_a_service_is_in_no_sandbox_and_in_nothing_that_is_written(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    """A whole run, because the keys must be in none of the files."""
    key = "sk-service-canary-51d0c2"
    model_endpoint.script(
        bash("env; cat /proc/*/environ | tr '\\0' '\\n'"),
        bash(f"echo {key} {MODEL_KEY}"),
        finish("Nothing"),
    )
    command_line.environment |= {
        "RESOLVER_SERVICES": f"{{condenser: {{api_key: {key}}}, agent: {{api_key: {key}}}}}",
    }
    done = command_line.resolve(checkout, issue=ISSUE)
    assert {r.headers["authorization"] for r in model_endpoint.requests} == {f"Bearer {key}"}
    for secret in (key, MODEL_KEY):
        assert secret.encode() not in done.everything
        assert not [p for p in command_line.folder.rglob("*.json") if secret in p.read_text()]
    request = model_endpoint.requests[1].body["messages"][-1]["content"]
    assert "PATH=" in request
    assert key not in request
