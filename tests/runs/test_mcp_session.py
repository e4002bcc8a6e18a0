"""The MCP tools of a run: the servers that are not there, and the recorded answers of a replay."""

import json
from collections.abc import Iterator
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
from tests.runs.plain_values import run_log
from tests.trace import sample

ADD = McpTool(server="docs", name="add")
MISSING = {"docs": {"command": "/no/such/program"}}
PROJECT = {"mcp": {"project": {"command": "no-such-program"}}}


class SandboxWithoutPrograms:
    """A sandbox in which no program starts."""

    has_browser = False

    def start_program(self, command: str, *_: object, **__: object) -> Any:
        raise SandboxError(f"{command} can't be started", "install it")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RunLog]:
    with run_log(tmp_path / "events.jsonl") as opened:
        opened.stream.add(sample.started())
        yield opened


def session(
    log: RunLog, recording: tuple[Event, ...] = (), browser_image: str = "", **servers: Any
) -> Any:
    environment = {
        "RESOLVER_MCP_SERVERS": json.dumps(servers),
        "RESOLVER_BROWSER_IMAGE": browser_image,
    }
    settings = load_settings({}, environment, PROJECT if servers else {})
    runtime: Any = SandboxWithoutPrograms()
    return open_mcp(settings, {}, recording, runtime, log, lambda text: text)


def test_servers_that_do_not_start_are_warnings_of_the_run_and_its_log(log: RunLog) -> None:
    with session(log, **MISSING) as opened:
        assert opened.tools == ()
    assert len(opened.warnings) == 2
    assert any("docs" in text and "/no/such/program" in text for text in opened.warnings)
    assert any("project" in text and "no-such-program" in text for text in opened.warnings)
    logged = [e.message for e in log.state.events if isinstance(e, Warned) and e.about == "mcp"]
    assert logged == opened.warnings


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
    assert opened.warnings == []


def test_each_recorded_answer_is_given_once_and_in_its_order(log: RunLog) -> None:
    with session(log, recorded("2", "3")) as opened:
        answer = opened.handlers[McpCall]
        assert [answer(call()).content, answer(call()).content] == ["2", "3"]
        missing = answer(call())
        assert isinstance(missing, ErrorObservation) and missing.code == "mcp"
        assert "the recording has no such call" in missing.content
        assert isinstance(answer(call(arguments={"a": 2})), ErrorObservation)
