"""The main job in containers: an ordinary image, and one that holds a static busybox only."""

import json
from pathlib import Path

import docker
import pytest

from resolver.runtime.engine import RUN_LABEL
from tests.parts.model_endpoint import ModelEndpoint, tool_call, tool_calls
from tests.parts.runs import CommandLine, bash, finish, git, make_checkout

pytestmark = pytest.mark.engine

FILES = {"calc.sh": "add() { echo $(($1 - $2)); }\n", "docs/a.md": "a\n"}


@pytest.mark.parametrize("kind", ["python", "busybox"])
def test_the_main_job_is_the_same_in_any_image(
    kind: str,
    command_line: CommandLine,
    model_endpoint: ModelEndpoint,
    engine: docker.DockerClient,
    python_image: str,
    busybox_image: str,
    tmp_path: Path,
) -> None:
    checkout = make_checkout(tmp_path / "calc", FILES)
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
    image = python_image if kind == "python" else busybox_image
    done = command_line.call_resolve(checkout, "--runtime", "docker", "--image", image)
    assert done.exit_code == 0, done.stderr
    assert git(checkout, "rev-parse", f"{done.outcome['branch']}^{{tree}}") == done.outcome["tree"]
    assert "$1 + $2" in git(checkout, "show", f"{done.outcome['branch']}:calc.sh")
    request = json.dumps(model_endpoint.requests[-1].body)
    for words in ("/workspace", "Begin", "right"):
        assert words in request, words
    labels = {"label": f"{RUN_LABEL}={done.outcome['run']}"}
    assert engine.containers.list(all=True, ignore_removed=True, filters=labels) == []


def test_the_container_is_closed_in(
    command_line: CommandLine,
    model_endpoint: ModelEndpoint,
    engine: docker.DockerClient,
    python_image: str,
    tmp_path: Path,
) -> None:
    checkout = make_checkout(tmp_path / "calc", FILES)
    model_endpoint.script(
        bash("ls /sys/class/net; grep -E 'Cap(Eff|Prm|Bnd)|NoNewPrivs' /proc/self/status"),
        finish("Nothing to do here at all"),
    )
    done = command_line.call_resolve(checkout, "--runtime", "docker", "--image", python_image)
    shown = next(e.content for e in done.events if e.kind == "cmd_output")  # type: ignore[union-attr]
    assert shown.split()[0] == "lo"
    assert "eth0" not in shown
    assert shown.count("0000000000000000") == 3
    assert "NoNewPrivs:\t1" in shown


def test_an_image_that_can_not_be_had_is_a_clear_error(
    command_line: CommandLine, engine: docker.DockerClient, tmp_path: Path
) -> None:
    checkout = make_checkout(tmp_path / "calc", FILES)
    done = command_line.call_resolve(
        checkout, "--runtime", "docker", "--image", "127.0.0.1:1/no/such:image"
    )
    assert done.exit_code == 1
    assert "127.0.0.1:1/no/such:image" in done.stderr
    assert "--image" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_engine_is_a_clear_error(command_line: CommandLine, tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "calc", FILES)
    command_line.environment["DOCKER_HOST"] = "tcp://127.0.0.1:1"
    done = command_line.call_resolve(checkout, "--runtime", "docker")
    assert done.exit_code == 1
    assert "--runtime local" in done.stderr
