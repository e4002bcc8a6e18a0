"""Runs whose model calls tools of MCP servers: the operator's on the host, and the repository's in
the sandbox.

Whole runs, because servers of both sides have to live as long as the run, in each runtime.
"""

import json
import sys
from pathlib import Path

import pytest

from resolver.events.lifecycle import SystemPrompt
from resolver.events.observations import McpResult
from tests.mcp.conftest import SCRIPT
from tests.parts.model_endpoint import ModelEndpoint, tool_call
from tests.parts.runs import CommandLine, Ended, bash, finish, make_checkout

pytestmark = pytest.mark.xdist_group("mcp")  # they count the servers that run

TOKEN = "mcp-canary-4e1f0b6d9a8c7352"
PROJECT = """mcp:
  project: {command: python3, args: [tools/server.py, good], tools: [add, w*]}
  docs: {tools: [add, count, long]}
"""
FIX = bash("sed -i 's/a - b/a + b/' calc.py")


def checkout(folder: Path, settings: str = PROJECT) -> Path:
    files = {
        "calc.py": "def add(a, b):\n    return a - b\n",
        "tools/server.py": SCRIPT.read_text(),
        ".github/resolver.yml": settings,
    }
    return make_checkout(folder / "calc", files)


def operator(command_line: CommandLine, mode: str = "good", **more: object) -> None:
    server = {"command": sys.executable, "args": [str(SCRIPT), mode], "env": {"MCP_TOKEN": TOKEN}}
    servers = {"docs": {**server, **more}}
    command_line.environment["RESOLVER_MCP_SERVERS"] = json.dumps(servers)


def offered(endpoint: ModelEndpoint) -> list[str]:
    return [tool["function"]["name"] for tool in endpoint.requests[0].body["tools"]]


def both_are_called(command_line: CommandLine, endpoint: ModelEndpoint, done: Ended) -> None:
    assert done.exit_code == 0, done.stderr
    results = [e for e in done.events if isinstance(e, McpResult)]
    assert [r.content for r in results[:2]] == ["5", "9"]
    assert results[2].content not in ("", str(Path.cwd()))
    names = offered(endpoint)
    assert "docs__add" in names and "project__add" in names and "project__where" in names
    assert "project__environment" not in names and "docs__environment" not in names
    prompt = next(e for e in done.events if isinstance(e, SystemPrompt))
    assert {t.server for t in prompt.mcp_tools} == {"docs", "project"}
    assert TOKEN.encode() not in done.everything


CALLS = (
    tool_call("docs__add", {"a": 2, "b": 3}),
    tool_call("project__add", {"a": 4, "b": 5}),
    tool_call("project__where", {}),
    FIX,
    finish(),
)


def test_tools_of_both_sides_are_called_and_a_long_result_is_kept_in_the_sandbox(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    """A whole run: the story of MCP servers, those of the host and of the sandbox."""
    operator(command_line)
    *calls, fix, end = CALLS
    read = "find /tmp ${TMPDIR:-/tmp} -name mcp-0001.txt -exec sed -n 4500p {} +"
    model_endpoint.script(*calls, tool_call("docs__long", {"count": 9000}), bash(read), fix, end)
    done = command_line.call_resolve(checkout(tmp_path))
    both_are_called(command_line, model_endpoint, done)
    result = [e for e in done.events if isinstance(e, McpResult)][3]
    assert result.output_file and result.output_file.endswith("mcp-0001.txt")
    assert any("line 4499" in getattr(e, "content", "") for e in done.events[result.id + 1 :])
