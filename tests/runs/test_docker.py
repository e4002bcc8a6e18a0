"""The main job in containers: an ordinary image, and one that holds a static busybox only.

Whole runs, because every stage that uses the sandbox has to work in any image.
"""

import json
import threading
from pathlib import Path
from typing import Any

import docker
import pytest

from resolver.events.lifecycle import Warned
from resolver.runtime.engine import RUN_LABEL
from resolver.runtime.toolbox import BASH
from tests.parts.engine import wait_until_removed
from tests.parts.model_endpoint import Answer, ModelEndpoint, tool_call, tool_calls
from tests.parts.runs import CommandLine, Ended, bash, finish, git, make_checkout
from tests.parts.waiting import until

pytestmark = pytest.mark.engine

FILES = {"calc.sh": "add() { echo $(($1 - $2)); }\n", "docs/a.md": "a\n"}


ISOLATION = "ls /sys/class/net; grep -E 'Cap(Eff|Prm|Bnd)|NoNewPrivs' /proc/self/status"


def require_isolation(done: Ended) -> None:
    """Check what the agent's first command, `ISOLATION`, has shown."""
    shown = next(e.content for e in done.events if e.kind == "cmd_output")  # type: ignore[union-attr]
    assert shown.split()[0] == "lo"
    assert "eth0" not in shown
    assert shown.count("0000000000000000") == 3
    assert "NoNewPrivs:\t1" in shown


@pytest.mark.parametrize("kind", [pytest.param("python", marks=pytest.mark.nightly), "busybox"])
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
    wait_until_removed(engine, done.outcome["run"])


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


def test_a_sandbox_that_hangs_is_replaced_but_not_one_that_pauses_for_a_short_time(
    command_line: CommandLine,
    model_endpoint: ModelEndpoint,
    engine: docker.DockerClient,
    python_image: str,
    tmp_path: Path,
) -> None:
    checkout = make_checkout(tmp_path / "calc", FILES)
    script = [
        bash(f"export TIMES=once; echo one >> count.txt; {ISOLATION}"),
        bash('echo "two $TIMES" >> count.txt'),  # the container is paused shortly
        bash('echo "three $TIMES" >> count.txt', timeout=2),  # it is paused for good
        bash('echo "four $TIMES" >> count.txt', timeout=2),  # its processes are stopped
        finish("Count to four"),
    ]
    hung: list[str] = []
    resuming = threading.Thread()

    def logged() -> list[dict[str, Any]]:
        [log] = command_line.folder.glob("output-*/events.jsonl")
        lines = log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def answer(body: dict[str, Any]) -> Answer:
        nonlocal resuming
        said = sum(message["role"] == "assistant" for message in body["messages"])
        if said in (1, 2, 3):
            [run] = [event["run"] for event in logged() if event["kind"] == "run_started"]
            [container] = engine.containers.list(filters={"label": f"{RUN_LABEL}={run}"})
            hung.append(container.id or "")
            if said == 3:
                container.exec_run([BASH, "-c", "kill -STOP -1"])
            else:
                container.pause()
            if said == 1:
                resuming = threading.Thread(target=resume_during_command, args=(container,))
                resuming.start()
        return script[said]

    def resume_during_command(container: Any) -> None:
        until(lambda: sum(event["kind"] == "cmd_run" for event in logged()) == 2)
        container.unpause()

    model_endpoint.answer_with(answer)
    done = command_line.call_resolve(
        checkout, "--runtime", "docker", "--image", python_image,
        RESOLVER_TIMEOUT_SECONDS="{answer: 2}",
    )  # fmt: skip
    resuming.join()
    assert done.exit_code == 0, done.stderr
    require_isolation(done)
    assert hung[0] == hung[1] != hung[2], "a short pause does not lose it"
    branch = done.outcome["branch"]
    expected = ["one", "two once", "three once", "four once"]
    assert git(checkout, "show", f"{branch}:count.txt").splitlines() == expected
    assert len(model_endpoint.requests) == len(script), "the log answers what was asked before"
    lost = "the sandbox was lost: the action server did not answer `run_command` in 4 seconds"
    warnings = [e.message for e in done.events if isinstance(e, Warned)]
    assert warnings == [lost, lost]
    assert done.stderr.count("it is rebuilt") == 2
    assert (done.output / "trace.md").read_text().count("did not answer") == 2
    wait_until_removed(engine, done.outcome["run"])
