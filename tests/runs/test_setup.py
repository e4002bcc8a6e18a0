"""The main job in a project's own environment: its setup, its devcontainer, its Dockerfile.

Whole runs, because the environment is made before the agent's first command, and is not in its
change.
"""

import json
from pathlib import Path

import pytest

from resolver.events.actions import CmdRun
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, Ended, bash, finish, make_checkout

BUG = "echo wrong\n"
FIX = "printf 'echo right\\n' >run.sh"


pytestmark = pytest.mark.xdist_group("images")


def resolve(
    command_line: CommandLine, endpoint: ModelEndpoint, checkout: Path, *options: str
) -> Ended:
    endpoint.script(bash(f"sh tool.sh; echo $MODE; {FIX}"), finish("Say right"))
    return command_line.call_resolve(checkout, "--runtime", "docker", *options)


def setups(done: Ended) -> list[CmdRun]:
    found = [e for e in done.events if isinstance(e, CmdRun) and e.source == "environment"]
    return [e for e in found if "setup.sh" in e.command]


def test_a_failing_setup_is_reported_to_the_agent_and_in_the_pull_request(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    files = {"run.sh": BUG, ".openhands/setup.sh": "echo no such package >&2; exit 3\n"}
    checkout = make_checkout(tmp_path / "one", files)
    model_endpoint.script(bash(FIX), finish("Say right"))
    done = command_line.call_resolve(checkout)
    assert done.exit_code == 0, done.stderr
    request = json.dumps(model_endpoint.requests[0].body)
    assert "no such package" in request
    assert "exit code 3" in request
    body = done.outcome["pull_request"]["body"]
    assert "no such package" in body
    assert ".openhands/setup.sh" in body


@pytest.mark.engine
@pytest.mark.usefixtures("own_images")
def test_a_devcontainer_s_build_is_the_sandbox_where_the_operator_allows_it(
    command_line: CommandLine, model_endpoint: ModelEndpoint, python_image: str, tmp_path: Path
) -> None:
    files = {
        "run.sh": BUG,
        "tool.sh": "cat /built\n",
        ".devcontainer/devcontainer.json": '{"build": {"dockerfile": "Dockerfile"}} // ours\n',
        ".devcontainer/Dockerfile": f"FROM {python_image}\nRUN echo from-the-build >/built\n",
    }
    checkout = make_checkout(tmp_path / "one", files)
    refused = command_line.call_resolve(checkout, "--runtime", "docker", "--image", "devcontainer")
    assert refused.exit_code == 2
    assert "RESOLVER_IMAGE_OPTIONS" in refused.stderr + json.dumps(refused.outcome)
    command_line.environment["RESOLVER_IMAGE_OPTIONS"] = "{build: true}"
    done = resolve(command_line, model_endpoint, checkout, "--image", "devcontainer")
    assert done.exit_code == 0, done.stderr
    assert "from-the-build" in json.dumps(model_endpoint.requests[-1].body)
