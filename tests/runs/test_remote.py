"""The main job with its sandbox on a server of sandboxes.

A whole run, because every stage that uses the sandbox has to work over the network.
"""

import json
from pathlib import Path

from tests.parts.model_endpoint import ModelEndpoint, tool_call
from tests.parts.runs import CommandLine, Ended, bash, finish, git, make_checkout
from tests.parts.sandbox_server import SANDBOX_TOKEN, SandboxServer

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
