"""Tests with the official servers as they are published, over both transports."""

import os
import socket
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from resolver.events.actions import McpCall
from resolver.events.observations import McpResult
from resolver.mcp.host_process import HostProcess
from resolver.mcp.servers import McpServers
from resolver.mcp.transports import Address, Endpoint
from tests.mcp.conftest import HOST, Scenario
from tests.parts.mcp_published import PublishedServers
from tests.parts.waiting import until


def command(servers: PublishedServers, package: str, *arguments: str) -> Endpoint:
    words = (servers.script(package), *arguments)
    way = partial(HostProcess, servers.node, words, {"MCP_TOKEN": "mcp-canary-5"}, HOST)
    return Endpoint("test", way, lambda _: True, 20)


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def address(published_servers: PublishedServers) -> Iterator[Endpoint]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [published_servers.node, published_servers.script("everything"), "streamableHttp"],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: answers(port))
        yield Endpoint("test", Address(f"http://127.0.0.1:{port}/mcp"), lambda _: True, 20)
    finally:
        process.kill()
        process.wait()


def call(servers: McpServers, name: str, **arguments: object) -> McpResult:
    result = servers.call(McpCall(server="test", name=name, arguments=arguments))
    assert isinstance(result, McpResult), result
    return result


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_everything_server(
    transport: str, published_servers: PublishedServers, scenario: Scenario,
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    endpoint = (
        command(published_servers, "everything", "stdio")
        if transport == "stdio"
        else request.getfixturevalue("address")
    )
    servers = scenario.open(endpoint, start_seconds=60)
    assert {"echo", "get-sum", "get-tiny-image"} <= {tool.name for tool in servers.tools}
    assert call(servers, "echo", message="hello").content == "Echo: hello"
    assert "5" in call(servers, "get-sum", a=2, b=3).content
    assert call(servers, "get-tiny-image").images[0].startswith("data:image/png;base64,")
    weather = call(servers, "get-structured-content", location="Chicago").structured
    assert weather and "temperature" in weather
    assert (
        "steps"
        in call(servers, "trigger-long-running-operation", duration=1, steps=3).content.lower()
    )
    assert call(servers, "echo").error, "a missing argument is said by the server"
    assert scenario.notes == []
    if transport == "stdio":
        environment = call(servers, "get-env").content
        assert "mcp-canary-5" in environment and "host-canary" not in environment


def test_the_filesystem_server(published_servers: PublishedServers, scenario: Scenario) -> None:
    folder = scenario.folder / "files"
    folder.mkdir()
    (folder / "a.txt").write_text("inside\n")
    outside = scenario.folder / "outside.txt"
    outside.write_text("outside\n")
    servers = scenario.open(command(published_servers, "filesystem", str(folder)), start_seconds=60)
    assert call(servers, "read_text_file", path=str(folder / "a.txt")).content == "inside\n"
    refused = call(servers, "read_text_file", path=str(outside))
    assert refused.error and "denied" in refused.content
    call(servers, "write_file", path=str(folder / "b.txt"), content="new")
    assert (folder / "b.txt").read_text() == "new"
    (folder / "long.txt").write_text("x" * 100_000)
    assert call(servers, "read_text_file", path=str(folder / "long.txt")).output_file


def test_each_published_tool_has_a_meaningful_schema(
    published_servers: PublishedServers, scenario: Scenario, tmp_path: Path
) -> None:
    servers = scenario.open(
        command(published_servers, "filesystem", str(tmp_path)), start_seconds=60
    )
    edit = next(tool for tool in servers.tools if tool.name == "edit_file")
    edits = edit.parameters["properties"]["edits"]
    assert edits["type"] == "array" and "oldText" in edits["items"]["properties"]
    assert set(edit.parameters["required"]) >= {"path", "edits"}
