"""The main job with its sandbox elsewhere: on a server of sandboxes, and on an engine over TCP.

Whole runs, because every stage that uses the sandbox has to work over the network.
"""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.parts.model_endpoint import ModelEndpoint, tool_call
from tests.parts.processes import count_running
from tests.parts.runs import CommandLine, Ended, bash, finish, git, make_checkout
from tests.parts.sandbox_server import SANDBOX_TOKEN, SandboxServer
from tests.parts.waiting import becomes_true

FILES = {"calc.sh": "add() { echo $(($1 - $2)); }\n", "docs/a.md": "a\n"}


def fix(command_line: CommandLine, endpoint: ModelEndpoint, folder: Path, *options: str) -> Ended:
    """Run the main job, and check the branch that comes of it."""
    checkout = make_checkout(folder / "calc", FILES)
    edit = {"command": "str_replace", "path": "calc.sh", "old_str": "$1 - $2", "new_str": "$1 + $2"}
    endpoint.script(
        bash("pwd; git log --oneline; env; . ./calc.sh; add 2 2"),
        tool_call("str_replace_editor", edit),
        tool_call("execute_ipython_cell", {"code": "open('docs/a.md').read()"}),
        bash(". ./calc.sh; [ $(add 2 2) = 4 ] && echo right"),
        finish("Make add add"),
    )
    done = command_line.call_resolve(checkout, *options)
    assert done.exit_code == 0, done.stderr
    assert git(checkout, "rev-parse", f"{done.outcome['branch']}^{{tree}}") == done.outcome["tree"]
    assert "$1 + $2" in git(checkout, "show", f"{done.outcome['branch']}:calc.sh")
    assert "right" in json.dumps(endpoint.requests[-1].body)
    return done


def remote(server: SandboxServer) -> dict[str, str]:
    return {"RESOLVER_REMOTE": server.url, "RESOLVER_REMOTE_TOKEN": SANDBOX_TOKEN}


def test_an_issue_is_resolved_on_a_server_of_sandboxes(
    command_line: CommandLine,
    model_endpoint: ModelEndpoint,
    local_sandbox_server: SandboxServer,
    tmp_path: Path,
) -> None:
    command_line.environment |= remote(local_sandbox_server)
    done = fix(command_line, model_endpoint, tmp_path, "--runtime", "remote")
    assert SANDBOX_TOKEN.encode() not in done.everything
    text = b"".join(json.dumps(r.body).encode() for r in model_endpoint.requests)
    assert SANDBOX_TOKEN.encode() not in text
    sandbox = next(e for e in done.events if e.kind == "stage_completed" and e.stage == "sandbox")
    assert sandbox.detail.startswith("on another machine: ")
    assert not list(local_sandbox_server.folder.glob("sandboxes-*/tmp/resolver-*"))


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.nightly)]
)
def test_a_run_that_is_ended_leaves_no_sandbox_on_the_server(
    command_line: CommandLine,
    model_endpoint: ModelEndpoint,
    tmp_path: Path,
    number: signal.Signals,
) -> None:
    checkout = make_checkout(tmp_path / "calc", FILES)
    (tmp_path / "issue.md").write_text("# Fix it")
    (tmp_path / "server").mkdir()
    sleep = f"sleep 60.25{os.getpid()}"
    model_endpoint.script(bash(sleep), finish())
    server = SandboxServer(tmp_path / "server", "--runtime", "local", "--idle", "2")
    options = ("--issue", tmp_path / "issue.md", "--output", tmp_path / "out")
    with closing(server.start()):
        with subprocess.Popen(
            command_line.command("resolve", checkout, *options, "--runtime", "remote"),
            env={**command_line.environment, **remote(server)},
            stderr=subprocess.DEVNULL,
        ) as run:
            assert soon(lambda: count_running(sleep))
            assert running(server) == 1
            run.send_signal(number)
            run.wait(60)
        assert soon(lambda: running(server) == 0)
        assert not list(server.folder.glob("sandboxes-*/tmp/resolver-*"))
    server.check_log()


def running(server: SandboxServer) -> int:
    access = server.access()
    try:
        return access.limits().running
    finally:
        access.close()


def soon(condition: Callable[[], bool], seconds: float = 60) -> bool:
    return becomes_true(condition, seconds)
