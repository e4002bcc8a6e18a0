"""Tests of servers on the host: tools of good ones, and failures of bad ones."""

import json
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from mcp.shared import jsonrpc_dispatcher

from resolver.events.actions import McpCall
from resolver.events.observations import ErrorObservation, McpResult
from resolver.mcp.host_process import HostProcess
from resolver.mcp.transports import Address, Endpoint, Pipe
from tests.mcp.conftest import HOST, SCRIPT, Scenario
from tests.parts.processes import count_running

pytestmark = pytest.mark.xdist_group("mcp")  # they count the servers that run

BOTH = pytest.mark.parametrize("transport", ["stdio", "http"])
ADD = McpCall(server="test", name="add", arguments={"a": 2, "b": 3})


def call(name: str, **arguments: object) -> McpCall:
    return McpCall(server="test", name=name, arguments=arguments)


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """The pipe that the tool `wait` reads from."""
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@BOTH
def test_a_good_server_is_listed_and_called(transport: str, scenario: Scenario) -> None:
    servers = scenario.open(scenario.endpoint(transport, "good"))
    assert [t.name for t in servers.tools][:2] == ["add", "environment"]
    assert servers.tools[0].description == "Adds two numbers."
    assert servers.tools[0].parameters["required"] == ["a", "b"]
    result = servers.call(ADD)
    assert isinstance(result, McpResult) and (result.content, result.error) == ("5", False)
    assert scenario.notes == []


def test_a_command_has_its_own_variables_and_few_of_the_host(scenario: Scenario) -> None:
    servers = scenario.open(scenario.process("good", MCP_TOKEN="mcp-canary-77"))
    found = json.loads(servers.call(call("environment")).content)
    assert found["MCP_TOKEN"] == "mcp-canary-77"
    assert found.keys() <= {"MCP_TOKEN", "PATH", "HOME", "LANG", "LC_CTYPE"}
    assert "host-canary" not in json.dumps(found)


def test_a_command_starts_in_an_empty_folder_that_is_removed(scenario: Scenario) -> None:
    servers = scenario.open(scenario.process("good"))
    folder = Path(servers.call(call("where")).content)
    assert list(folder.iterdir()) == []
    servers.close()
    assert not folder.exists()


def test_headers_are_not_sent_to_where_an_address_redirects(scenario: Scenario) -> None:
    other = scenario.address("good")
    assert isinstance(other.transport, Address)
    headers = {"Authorization": "Bearer mcp-canary-78"}
    servers = scenario.open(scenario.address("redirect", other.transport.url, headers=headers))
    assert servers.tools == ()
    assert "can't be used in this run" in scenario.notes[0] and "edirect" in scenario.notes[0]


@BOTH
def test_a_server_that_never_answers_the_greeting_is_left_out(
    transport: str, scenario: Scenario
) -> None:
    good = scenario.process("good")
    bad = replace(scenario.endpoint(transport, "silent"), name="bad")
    servers = scenario.open(bad, good, start_seconds=2)
    assert scenario.notes == [
        "MCP server bad: it can't be used in this run: it did not answer in 2 seconds"
    ]
    assert servers.call(ADD).content == "5"


def test_a_missing_command_is_left_out(scenario: Scenario) -> None:
    missing = Endpoint("m", lambda: HostProcess("/no/such", (), {}, HOST), lambda _: True, 5)
    assert scenario.open(missing).tools == ()
    assert "No such file" in scenario.notes[0]


@pytest.mark.parametrize(
    ("transport", "mode", "words"),
    [
        ("stdio", "dies-at-once", "exit code 1: no licence found"),
        ("stdio", "endless", "a message over 10,000,000 bytes"),
        ("stdio", "odd", "its answer is not one of the protocol"),
        ("http", "unauthorized", "401"),
    ],
)
def test_a_server_that_can_not_be_listed_is_left_out_with_the_reason(
    transport: str, mode: str, words: str, scenario: Scenario
) -> None:
    assert scenario.open(scenario.endpoint(transport, mode)).tools == ()
    assert words in scenario.notes[0]


@pytest.mark.parametrize(
    ("transport", "mode", "words"),
    [
        ("stdio", "huge", "over 10,000,000 bytes"),
        ("http", "huge", "over 10,000,000 bytes"),
        *(("http", mode, "") for mode in ("bomb", "garbage", "html", "cut", "odd-result")),
    ],
)
def test_an_answer_that_can_not_be_read_is_an_observation(
    transport: str, mode: str, words: str, scenario: Scenario
) -> None:
    """That of `bomb` is compressed, and not decompressed."""
    result = scenario.open(scenario.endpoint(transport, mode, timeout=20)).call(ADD)
    assert isinstance(result, ErrorObservation) and words in result.content


@BOTH
def test_a_hanging_call_is_abandoned_and_the_server_kept(
    transport: str, scenario: Scenario, pipe: Path
) -> None:
    servers = scenario.open(scenario.endpoint(transport, "good", timeout=1))
    result = servers.call(call("wait", pipe=str(pipe)))
    assert isinstance(result, ErrorObservation) and "no answer in 1 seconds" in result.content
    pipe.write_text("late")
    assert servers.call(ADD).content == "5"


def test_a_server_that_dies_in_a_call_is_gone(scenario: Scenario) -> None:
    servers = scenario.open(scenario.process("crash"))
    lost = servers.call(ADD)
    assert isinstance(lost, ErrorObservation)
    assert "exit code 3: it all went wrong" in lost.content
    assert "may have had effects" in lost.content
    assert "lost during a call" in scenario.notes[0]
    assert "can't be called" in servers.call(ADD).content


def test_a_lost_session_ends_the_server(scenario: Scenario) -> None:
    servers = scenario.open(scenario.address("session-lost"))
    assert "the server was lost" in servers.call(ADD).content
    assert "Continue without it" in servers.call(ADD).content


def test_an_endless_listing_is_bounded_and_reported(scenario: Scenario) -> None:
    servers = scenario.open(scenario.process("many"))
    assert len(servers.tools) == 40
    assert "tools that are not offered (1960): tool-0-40, tool-0-41" in scenario.notes[0]
    assert len(scenario.notes[0]) < 500


def test_a_tool_that_is_not_allowed_is_neither_listed_nor_called(scenario: Scenario) -> None:
    servers = scenario.open(replace(scenario.process("good"), allows="where".__eq__))
    assert [tool.name for tool in servers.tools] == ["where"]
    result = servers.call(ADD)
    assert isinstance(result, ErrorObservation) and "may not be used" in result.content


def test_a_call_to_an_unknown_server_is_an_observation(scenario: Scenario) -> None:
    result = scenario.open().call(ADD)
    assert isinstance(result, ErrorObservation) and "no server of that name" in result.content


def test_a_call_can_be_interrupted_and_the_server_kept(scenario: Scenario, pipe: Path) -> None:
    servers = scenario.open(scenario.process("good", timeout=60))
    given_up = threading.Event()

    def interrupt() -> None:
        with pipe.open("w"):  # opens when the server reads
            servers.interrupt()
            given_up.wait(60)

    thread = threading.Thread(target=interrupt)
    thread.start()
    result = servers.call(call("wait", pipe=str(pipe)))
    assert isinstance(result, ErrorObservation) and "interrupted" in result.content
    given_up.set()
    thread.join()
    assert servers.call(ADD).content == "5"


@pytest.mark.parametrize("mode", ["good", "deaf", "hang"])
def test_no_process_or_folder_is_left_behind(mode: str, scenario: Scenario) -> None:
    servers = scenario.open(scenario.process(mode, timeout=1))
    command = f"{sys.executable} {SCRIPT} {mode} stdio"
    assert count_running(command) == 1
    servers.call(ADD)
    servers.close()
    assert count_running(command) == 0


def test_a_server_with_only_the_newest_protocol_works(scenario: Scenario) -> None:
    servers = scenario.open(scenario.process("newest"))
    assert servers.tools, scenario.notes
    assert servers.call(ADD).content == "5"


def test_an_address_that_disappears_is_lost_and_then_gone(scenario: Scenario) -> None:
    servers = scenario.open(scenario.address("good"))
    assert servers.call(ADD).content == "5"
    scenario.end_addresses()
    assert "server was lost" in servers.call(ADD).content
    assert "Continue without it" in servers.call(ADD).content


class EndingTogether(HostProcess):
    """A server that only ends when another one does."""

    together = threading.Barrier(2)

    def close(self) -> None:
        self.together.wait(30)
        super().close()


def test_servers_end_side_by_side(scenario: Scenario) -> None:
    start = partial(EndingTogether, sys.executable, [str(SCRIPT), "good", "stdio"], {}, HOST)
    servers = scenario.open(*(Endpoint(name, start, lambda _: True, 5) for name in ("a", "b")))
    assert scenario.notes == []
    servers.close()
    assert not EndingTogether.together.broken


def test_a_stop_does_not_wait_for_a_server_that_starts(scenario: Scenario) -> None:
    silent = scenario.process("silent")
    assert not isinstance(silent.transport, Address)
    start, main = silent.transport, threading.get_ident()

    def start_and_stop() -> Pipe:
        begun = start()
        signal.pthread_kill(main, signal.SIGUSR1)
        return begun

    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    at = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            scenario.open(replace(silent, transport=start_and_stop))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert time.monotonic() - at < 30
    assert count_running(f"{sys.executable} {SCRIPT} silent stdio") == 0


def test_a_server_that_reads_nothing_blocks_no_other_and_no_time_out(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonrpc_dispatcher, "_ABANDON_WRITE_TIMEOUT", 60.0)
    deaf = replace(scenario.process("reads-nothing", timeout=1), name="deaf")
    servers = scenario.open(deaf, scenario.process("good"))
    long = McpCall(server="deaf", name="add", arguments={"a": "x" * 300_000})
    at = time.monotonic()
    assert isinstance(servers.call(long), ErrorObservation)
    assert time.monotonic() - at < 30
    assert servers.call(ADD).content == "5"
    servers.close()
    assert count_running(f"{sys.executable} {SCRIPT} reads-nothing stdio") == 0
