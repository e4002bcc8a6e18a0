"""Runs whose model calls tools of MCP servers: the operator's on the host, and the repository's in
the sandbox.

Whole runs, because servers of both sides have to live as long as the run, in each runtime.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import load_settings
from resolver.errors import SandboxError
from resolver.events.actions import McpCall
from resolver.events.lifecycle import SystemPrompt, Warned
from resolver.events.log import Event
from resolver.events.observations import ErrorObservation, McpResult
from resolver.events.run_log import RunLog
from resolver.models.run import McpTool
from resolver.runs.wiring.agents import open_mcp
from tests.mcp.conftest import SCRIPT
from tests.parts.model_endpoint import ModelEndpoint, tool_call
from tests.parts.runs import CommandLine, bash, finish, make_checkout
from tests.trace import sample

pytestmark = pytest.mark.xdist_group("mcp")  # they count the servers that run

TOKEN = "mcp-canary-4e1f0b6d9a8c7352"
PROJECT = """mcp:
  project: {command: python3, args: [tools/server.py, good], tools: [add, w*]}
  docs: {tools: [add, count, long]}
"""
FIX = bash("sed -i 's/a - b/a + b/' calc.py")


def test_tools_of_both_sides_are_called_and_a_long_result_is_kept_in_the_sandbox(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    """A whole run: the story of MCP servers, those of the host and of the sandbox."""
    server = {"command": sys.executable, "args": [str(SCRIPT), "good"], "env": {"MCP_TOKEN": TOKEN}}
    command_line.environment["RESOLVER_MCP_SERVERS"] = json.dumps({"docs": server})
    read = "find /tmp ${TMPDIR:-/tmp} -name mcp-0001.txt -exec sed -n 4500p {} +"
    model_endpoint.script(
        tool_call("docs__add", {"a": 2, "b": 3}),
        tool_call("project__add", {"a": 4, "b": 5}),
        tool_call("project__where", {}),
        tool_call("docs__long", {"count": 9000}),
        bash(read),
        bash("sed -i 's/a - b/a + b/' calc.py"),
        finish(),
    )
    files = {
        "calc.py": "def add(a, b):\n    return a - b\n",
        "tools/server.py": SCRIPT.read_text(),
        ".github/resolver.yml": PROJECT,
    }
    done = command_line.call_resolve(make_checkout(tmp_path / "calc", files))
    assert done.exit_code == 0, done.stderr
    added, added_inside, where, long = [e for e in done.events if isinstance(e, McpResult)]
    assert (added.content, added_inside.content) == ("5", "9")
    assert where.content not in ("", str(Path.cwd()))
    assert long.output_file and long.output_file.endswith("mcp-0001.txt")
    assert any("line 4499" in getattr(e, "content", "") for e in done.events[long.id + 1 :])
    names = {tool["function"]["name"] for tool in model_endpoint.requests[0].body["tools"]}
    assert names >= {"docs__add", "project__add", "project__where"}
    assert not names & {"project__environment", "docs__environment"}
    prompt = next(e for e in done.events if isinstance(e, SystemPrompt))
    assert {t.server for t in prompt.mcp_tools} == {"docs", "project"}
    assert TOKEN.encode() not in done.everything


ADD = McpTool(server="docs", name="add")
MISSING = {"docs": {"command": "/no/such/program"}}
BROKEN_PROJECT = {"mcp": {"project": {"command": "no-such-program"}}}


class SandboxWithoutPrograms:
    """A sandbox in which no program starts."""

    has_browser = False

    def start_program(self, command: str, *_: object, **__: object) -> Any:
        raise SandboxError(f"{command} can't be started", "install it")


def session(
    log: RunLog, recording: tuple[Event, ...] = (), browser_image: str = "", **servers: Any
) -> Any:
    environment = {
        "RESOLVER_MCP_SERVERS": json.dumps(servers),
        "RESOLVER_BROWSER_IMAGE": browser_image,
    }
    settings = load_settings({}, environment, BROKEN_PROJECT if servers else {})
    runtime: Any = SandboxWithoutPrograms()
    return open_mcp(settings, {}, recording, runtime, log, lambda text: text)


def test_servers_that_do_not_start_are_warnings_of_the_log(log: RunLog) -> None:
    with session(log, **MISSING) as opened:
        assert opened.tools == ()
    logged = sorted(e.message for e in log.state.events if isinstance(e, Warned))
    assert len(logged) == 2
    assert "docs" in logged[0] and "/no/such/program" in logged[0]
    assert "project" in logged[1] and "no-such-program" in logged[1]


def recorded(*answers: str) -> tuple[Event, ...]:
    """Return a recording in which the same call was answered so, one answer after the other."""
    events: list[Event] = [sample.started(), SystemPrompt(content="", mcp_tools=(ADD,))]
    for answer in answers:
        number = len(events)
        events += [call(id=number), McpResult(id=number + 1, cause=number, content=answer)]
    return tuple(events)


def call(**more: Any) -> McpCall:
    return McpCall(**{"server": "docs", "name": "add", "arguments": {"a": 1, "b": 1}, **more})


def test_a_replay_starts_no_server_and_has_the_recorded_tools(log: RunLog) -> None:
    with session(log, recorded("2"), **MISSING) as opened:
        assert opened.tools == (ADD,)
    assert not [e for e in log.state.events if isinstance(e, Warned)]


def test_each_recorded_answer_is_given_once_and_in_its_order(log: RunLog) -> None:
    with session(log, recorded("2", "3")) as opened:
        answer = opened.handlers[McpCall]
        assert [answer(call()).content, answer(call()).content] == ["2", "3"]
        missing = answer(call())
        assert isinstance(missing, ErrorObservation) and missing.code == "mcp"
        assert "the recording has no such call" in missing.content
        assert isinstance(answer(call(arguments={"a": 2})), ErrorObservation)
