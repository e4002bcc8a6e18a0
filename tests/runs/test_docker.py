"""The main job in containers: an ordinary image, and one that holds a static busybox only.

Whole runs, because every stage that uses the sandbox has to work in any image.
"""

import json
from pathlib import Path

import docker
import pytest

from tests.parts.engine import wait_until_removed
from tests.parts.model_endpoint import ModelEndpoint, tool_call, tool_calls
from tests.parts.runs import CommandLine, bash, finish, git, make_checkout

pytestmark = pytest.mark.engine

FILES = {"calc.sh": "add() { echo $(($1 - $2)); }\n", "docs/a.md": "a\n"}
SETUP = "echo no such package >&2; exit 3\n"


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
