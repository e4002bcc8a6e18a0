"""The main job in containers: an ordinary image, and one that holds a static busybox only.

Whole runs, because every stage that uses the sandbox has to work in any image.
"""

import json
from pathlib import Path
from typing import Any

import docker
import pytest

from resolver.config.settings import load_settings
from resolver.errors import SandboxError, UsageError
from resolver.runs.common import open_host
from resolver.runs.wiring.sandbox import engine_environment, open_runtime, runtime_kind
from resolver.runtime.engine import connect_engine
from tests.parts.engine import wait_until_removed
from tests.parts.forwarding import forwarding
from tests.parts.model_endpoint import Answer, ModelEndpoint, tool_call, tool_calls
from tests.parts.remote_engine import RemoteEngine
from tests.parts.runs import CommandLine, bash, finish, git, make_checkout

FILES = {"calc.sh": "add() { echo $(($1 - $2)); }\n", "docs/a.md": "a\n"}
SETUP = "echo no such package >&2; exit 3\n"


@pytest.mark.engine
def test_the_main_job_is_the_same_in_any_image_and_after_a_set_up_that_fails(
    command_line: CommandLine,
    model_endpoint: ModelEndpoint,
    engine: docker.DockerClient,
    busybox_image: str,
    tmp_path: Path,
) -> None:
    """A whole run, because every stage that uses the sandbox has to work in any image. What the
    set-up says reaches the agent and the pull request."""
    checkout = make_checkout(tmp_path / "calc", {**FILES, ".openhands/setup.sh": SETUP})
    edit = {"path": "calc.sh", "old_str": "$1 - $2", "new_str": "$1 + $2"}
    model_endpoint.script(
        bash("pwd; git log --oneline; . ./calc.sh; add 2 2"),
        tool_calls([
            ("str_replace_editor", {"command": "view", "path": "calc.sh"}),
            ("str_replace_editor", {"command": "str_replace", **edit}),
        ]),
        tool_call("execute_ipython_cell", {"code": "open('docs/a.md').read()"}),
        bash(". ./calc.sh; [ $(add 2 2) = 4 ] && echo right"),
        finish("Make add add"),
    )  # fmt: skip
    done = command_line.call_resolve(checkout, "--runtime", "docker", "--image", busybox_image)
    assert done.exit_code == 0, done.stderr
    assert git(checkout, "rev-parse", f"{done.outcome['branch']}^{{tree}}") == done.outcome["tree"]
    assert "$1 + $2" in git(checkout, "show", f"{done.outcome['branch']}:calc.sh")
    request = json.dumps(model_endpoint.requests[-1].body)
    for words in ("/workspace", "Begin", "right"):
        assert words in request, words
    begun, body = json.dumps(model_endpoint.requests[0].body), done.outcome["pull_request"]["body"]
    assert "no such package" in begun and "exit code 3" in begun
    assert "no such package" in body and ".openhands/setup.sh" in body
    wait_until_removed(engine, done.outcome["run"])


EDIT = {"command": "str_replace", "path": "calc.sh", "old_str": "$1 - $2", "new_str": "$1 + $2"}


@pytest.mark.engine
def test_a_cut_connection_to_the_engine_is_one_error_and_the_run_continues_later(
    command_line: CommandLine,
    model_endpoint: ModelEndpoint,
    remote_engine: RemoteEngine,
    tmp_path: Path,
) -> None:
    checkout = make_checkout(tmp_path / "calc", FILES)
    with forwarding(("127.0.0.1", remote_engine.port)) as network:

        def cut(body: dict[str, Any]) -> Answer:
            network.refuse()
            return bash("echo after >> docs/a.md")

        model_endpoint.script(tool_call("str_replace_editor", EDIT))
        model_endpoint.answer_with(cut)
        command_line.environment |= remote_engine.settings(network.port)
        failed = command_line.call_resolve(checkout)
        assert failed.exit_code == 1
        assert failed.outcome["state"] == "error"
        address = command_line.environment["DOCKER_HOST"]
        assert failed.outcome["reason"].startswith(f"no Docker engine answers at {address}")
        assert "Traceback" not in failed.stderr
        client = remote_engine.connect()
        wait_until_removed(client, failed.outcome["run"])
        client.close()

        network.listen()
        model_endpoint.script(finish("Make add add"))
        resumed = command_line.call("resolve", "--resume", failed.output)
        assert resumed.exit_code == 0, resumed.stderr
        branch = json.loads((failed.output / "outcome.json").read_text())["branch"]
        assert "$1 + $2" in git(checkout, "show", f"{branch}:calc.sh")
        assert git(checkout, "show", f"{branch}:docs/a.md") == "a\nafter"


def test_without_an_address_there_is_no_remote_runtime() -> None:
    with pytest.raises(UsageError, match="Docker engine on another machine"):
        runtime_kind(load_settings({}, {"RESOLVER_RUNTIME": "remote"}), open_host({}))


@pytest.mark.attack
@pytest.mark.parametrize("runtime", ["docker", "remote"])
def test_a_missing_engine_never_means_less_isolation(runtime: str) -> None:
    """The runner has no Docker engine: the job fails instead of working with less isolation."""
    environment = {"RESOLVER_RUNTIME": runtime, "DOCKER_HOST": "tcp://127.0.0.1:1"}
    settings, host = load_settings({}, environment), open_host(environment)
    assert runtime_kind(settings, host) == "docker"
    with pytest.raises(SandboxError, match=r"no Docker engine answers at tcp://127\.0\.0\.1:1"):
        open_runtime(settings, "docker", "run-1", host, "python:3.12")


def test_an_engine_behind_ssh_is_refused_with_the_way_to_reach_it() -> None:
    with pytest.raises(SandboxError, match=r"ssh://me@engine\.example\.org") as refused:
        connect_engine({"DOCKER_HOST": "ssh://me@engine.example.org"})
    assert "ssh -N -L" in refused.value.next_step


@pytest.mark.parametrize(
    ("address", "verifies"),
    [("tcp://engine.example.org:2376", True), ("unix:///run/engine.sock", False)],
)  # fmt: skip
def test_an_engine_over_tcp_has_to_show_a_certificate(address: str, verifies: bool) -> None:
    environment = {"DOCKER_HOST": address, "PATH": "/bin"}
    found = engine_environment(load_settings({"runtime": "remote"}, {}), environment)
    assert environment.items() <= found.items()
    assert ("DOCKER_TLS_VERIFY" in found) is verifies
