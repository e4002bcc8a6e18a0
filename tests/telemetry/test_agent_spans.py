"""Tests of the spans that the events of an agent's log become."""

import json
from typing import Any

import pytest

from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ActionBase, ObservationBase, Source, ToolCall
from resolver.events.lifecycle import (
    CheckExecuted,
    Condensation,
    DelegateEvent,
    ModelReplied,
    ModelRetried,
    RunStarted,
    ServiceReplied,
    StageCompleted,
    SystemPrompt,
)
from resolver.events.log import stored_line
from resolver.models.run import Completion, RequestedToolCall, RunLimits, RunState, Tokens
from resolver.models.verification import CheckExecution
from resolver.telemetry.agent_spans import AgentSpans
from resolver.telemetry.attributes import error_of
from resolver.telemetry.content import ContentWriter
from resolver.telemetry.conventions import CONTENT_ATTRIBUTES, provider_name
from tests.github import reports
from tests.telemetry.spans import BEGIN, MemorySpan, Timed

COMPLETION = Completion(
    model="anthropic/claude-sonnet-4-5",
    text="Look first.",
    tool_calls=(RequestedToolCall(id="call_1", name="execute_bash", arguments='{"command":"ls"}'),),
    finish_reason="tool_calls",
    tokens=Tokens(input=100, output=20, cached=60),
    cost=0.25,
    latency=2.0,
)
CALL = ToolCall(id="call_1", name="execute_bash", arguments='{"command":"ls"}')


def opening() -> RunStarted:
    return RunStarted(
        run="run-1",
        version="1",
        task=reports.task(reports.trigger()),
        base="c" * 40,
        agent="CodeActAgent",
        model="anthropic/claude-sonnet-4-5",
        runtime="docker",
        limits=RunLimits(),
    )


def begin(timed: Timed, content: ContentWriter | None = None) -> MemorySpan:
    """Subscribe the spans, start the run at 1 s, and return the span above them."""
    root = MemorySpan("root", BEGIN, {})
    timed.stream.subscribe("telemetry", AgentSpans(lambda: root, content=content), essential=True)
    timed.add(0.0, opening())
    timed.add(0.5, SystemPrompt(content="Be careful."))
    timed.add(0.5, a.Message(content="Fix the bug.", source=Source.USER))
    timed.add(1.0, o.AgentStateChanged(state=RunState.RUNNING))
    return root


def test_a_step_is_a_model_call_and_a_tool_execution_below_the_invocation() -> None:
    timed = Timed()
    root = begin(timed)
    timed.add(4.0, ModelReplied(completion=COMPLETION))
    action = timed.add(4.0, a.CmdRun(command="ls", tool_call=CALL))
    timed.add(7.0, o.CmdOutput(content="calc.py", exit_code=2, cause=action.id))
    timed.add(9.0, o.AgentStateChanged(state=RunState.FINISHED))
    assert root.outline == [
        "invoke_agent CodeActAgent",
        "  chat anthropic/claude-sonnet-4-5",
        "  execute_tool execute_bash",
    ]
    assert root.find("invoke_agent").seconds == (1.0, 9.0)
    assert root.find("invoke_agent").attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "CodeActAgent",
        "gen_ai.conversation.id": "run-1",
        "gen_ai.request.model": "anthropic/claude-sonnet-4-5",
        "resolver.state": "finished",
        "resolver.iterations": 1,
    }
    chat = root.find("chat")
    assert chat.seconds == (2.0, 4.0) and chat.role == "client"
    assert chat.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "anthropic/claude-sonnet-4-5",
        "gen_ai.conversation.id": "run-1",
        "gen_ai.response.finish_reasons": ["tool_calls"],
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.cost": 0.25,
        "resolver.service": "agent",
    }
    tool = root.find("execute_tool")
    assert tool.seconds == (4.0, 7.0) and tool.error == ""
    assert tool.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "execute_bash",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_1",
        "resolver.action": "cmd_run",
        "process.exit.code": 2,
    }


def test_a_call_with_a_recorded_latency_does_not_start_before_the_step() -> None:
    """A replay keeps the latency of some replies, and takes no time itself."""
    timed = Timed()
    root = begin(timed)
    timed.add(1.5, ModelReplied(completion=COMPLETION))
    assert root.find("chat").seconds == (1.0, 1.5)


def test_content_is_exported_only_on_request() -> None:
    timed = Timed()
    root = begin(timed)
    timed.add(4.0, ModelReplied(completion=COMPLETION))
    action = timed.add(4.0, a.CmdRun(command="ls", tool_call=CALL))
    timed.add(7.0, o.CmdOutput(content="calc.py", cause=action.id))
    exported = [name for _, span in root.walk() for name in span.attributes]
    assert not set(exported) & set(CONTENT_ATTRIBUTES)


def test_content_has_the_form_of_the_conventions_and_is_redacted() -> None:
    timed = Timed()
    writer = ContentWriter(lambda text: text.replace("calc.py", "[redacted]"))
    root = begin(timed, writer)
    timed.add(4.0, ModelReplied(completion=COMPLETION))
    action = timed.add(4.0, a.CmdRun(command="ls", tool_call=CALL))
    timed.add(7.0, o.CmdOutput(content="calc.py", cause=action.id))
    timed.add(9.0, ModelReplied(completion=Completion(model="m", text="Done.", latency=1.0)))
    invocation = root.find("invoke_agent").attributes
    assert json.loads(invocation["gen_ai.system_instructions"]) == [
        {"type": "text", "content": "Be careful."}
    ]
    first, second = (s.attributes for _, s in root.walk() if s.name.startswith("chat"))
    task = [{"role": "user", "parts": [{"type": "text", "content": "Fix the bug."}]}]
    assert json.loads(invocation["gen_ai.input.messages"]) == task
    assert json.loads(first["gen_ai.input.messages"]) == task
    assert json.loads(first["gen_ai.output.messages"]) == [
        {
            "role": "assistant",
            "parts": [
                {"type": "text", "content": "Look first."},
                {
                    "type": "tool_call",
                    "id": "call_1",
                    "name": "execute_bash",
                    "arguments": '{"command":"ls"}',
                },
            ],
            "finish_reason": "tool_calls",
        }
    ]
    answer = {"type": "tool_call_response", "id": "call_1", "response": "[redacted]"}
    assert json.loads(second["gen_ai.input.messages"]) == [{"role": "tool", "parts": [answer]}]
    tool = root.find("execute_tool").attributes
    assert tool["gen_ai.tool.call.arguments"] == '{"command":"ls"}'
    assert tool["gen_ai.tool.call.result"] == "[redacted]"


def test_long_content_is_shortened_after_it_is_redacted() -> None:
    writer = ContentWriter(lambda text: text.replace("s" * 20_000, "[redacted]"))
    assert writer.text("s" * 20_000) == "[redacted]"
    shortened = writer.text("x" * 100_000)
    assert len(shortened) < 16_100 and "84000 characters left out" in shortened


def test_a_delegate_has_spans_of_its_own_below_the_tool() -> None:
    timed = Timed()
    root = begin(timed)
    delegation = timed.add(2.0, a.Delegate(agent="LocAgent", task="Find it."))
    nested = Timed()
    for at, event in (
        (2.0, SystemPrompt(content="Find places.")),
        (2.0, o.AgentStateChanged(state=RunState.RUNNING)),
        (5.0, ModelReplied(completion=COMPLETION)),
        (6.0, o.AgentStateChanged(state=RunState.LIMIT)),
    ):
        line = json.loads(stored_line(nested.add(at, event)))
        timed.add(at, DelegateEvent(delegate=delegation.id, event=line))
    timed.add(6.5, o.DelegateResult(state=RunState.LIMIT, cause=delegation.id))
    assert root.outline == [
        "invoke_agent CodeActAgent",
        "  execute_tool delegate",
        "    invoke_agent LocAgent",
        "      chat anthropic/claude-sonnet-4-5",
    ]
    child = root.find("invoke_agent LocAgent")
    assert child.seconds == (2.0, 6.0) and child.error == "limit"
    assert child.attributes["gen_ai.conversation.id"] == "run-1"
    assert root.find("execute_tool").error == "limit"


def test_each_invocation_after_a_correction_has_a_span() -> None:
    """A change that fails the checks goes back to the agent."""
    timed = Timed()
    root = begin(timed)
    timed.add(2.0, o.AgentStateChanged(state=RunState.FINISHED))
    timed.add(3.0, a.Message(content="A test fails.", source=Source.USER))
    timed.add(4.0, o.AgentStateChanged(state=RunState.RUNNING))
    timed.add(5.0, o.AgentStateChanged(state=RunState.ERROR, reason="no key", because="model_key"))
    ended = [(span.seconds, span.error) for span in root.children]
    assert ended == [((1.0, 2.0), ""), ((4.0, 5.0), "model_key")]


def test_retries_are_events_of_the_call_that_succeeded() -> None:
    timed = Timed()
    root = begin(timed)
    timed.add(2.0, ModelRetried(attempt=1, wait=0.5, reason="overloaded", service="agent"))
    timed.add(3.0, ServiceReplied(service="condenser", completion=COMPLETION))
    timed.add(4.0, ModelReplied(completion=COMPLETION))
    condenser, agent = (s for _, s in root.walk() if s.name.startswith("chat"))
    assert condenser.attributes["resolver.service"] == "condenser" and condenser.events == []
    details = {"resolver.attempt": 1, "resolver.wait": 0.5}
    assert agent.events == [("resolver.model.retried", details)]


def test_stages_and_checks_with_a_duration_are_spans() -> None:
    timed = Timed()
    root = begin(timed)
    timed.add(5.0, StageCompleted(stage="setup", detail="pip install", seconds=3.0))
    timed.add(5.0, StageCompleted(stage="branch", detail="agent/1", seconds=0.0))
    for is_cached in (False, True):
        execution = CheckExecution(exit_code=1, seconds=2.0)
        check = CheckExecuted(
            key="k",
            name="pytest",
            command="pytest",
            at="head",
            tree="t",
            execution=execution,
            is_cached=is_cached,
        )
        timed.add(9.0, check)
    timed.add(9.0, Condensation(forgotten=(1, 2)))
    assert root.outline == ["invoke_agent CodeActAgent", "setup", "check pytest"]
    assert root.find("setup").seconds == (2.0, 5.0)
    assert root.find("check").attributes == {"resolver.check.tree": "head", "process.exit.code": 1}
    assert root.children[0].events == [("resolver.condensation", {"resolver.forgotten": 2})]


def test_a_resumed_log_has_no_spans_of_the_earlier_process() -> None:
    earlier = Timed()
    begin(earlier)
    earlier.add(2.0, ModelReplied(completion=COMPLETION))
    command = earlier.add(2.0, a.CmdRun(command="ls", tool_call=CALL))
    root = MemorySpan("root", BEGIN, {})
    spans = AgentSpans(lambda: root)
    spans.take_over(list(earlier.store))
    resumed = Timed(earlier.store)
    resumed.stream.subscribe("telemetry", spans, essential=True)
    resumed.add(100.0, o.CmdOutput(exit_code=0, cause=command.id))
    resumed.add(103.0, ModelReplied(completion=COMPLETION))
    spans.close(resumed.now())
    assert root.outline == [
        "invoke_agent CodeActAgent",
        "  execute_tool execute_bash",
        "  chat anthropic/claude-sonnet-4-5",
    ]
    assert root.find("invoke_agent").seconds == (100.0, 103.0)
    assert root.find("chat").seconds == (101.0, 103.0)


def test_what_is_open_at_the_end_of_the_process_is_ended() -> None:
    timed = Timed()
    root = MemorySpan("root", BEGIN, {})
    spans = AgentSpans(lambda: root)
    timed.stream.subscribe("telemetry", spans, essential=True)
    timed.add(0.0, opening())
    timed.add(1.0, a.CmdRun(command="sleep 1000"))
    spans.close(timed.now())
    spans.close(timed.now())
    assert [span.seconds for _, span in root.walk() if span is not root] == [(1.0, 1.0)] * 2


@pytest.mark.parametrize(
    ("observation", "error"),
    [
        (o.ErrorObservation(code="edit"), "edit"),
        (o.ErrorObservation(), "error"),
        (o.CmdOutput(exit_code=1), ""),
        (o.CmdOutput(timed_out=True), "timeout"),
        (o.McpResult(error=True), "tool_error"),
        (o.IPythonOutput(error=True), "tool_error"),
        (o.DelegateResult(state=RunState.STUCK), "stuck"),
        (o.FileEditResult(path="a"), ""),
    ],
)
def test_the_error_of_a_tool(observation: ObservationBase, error: str) -> None:
    assert error_of(observation) == error


@pytest.mark.parametrize(
    ("action", "name"),
    [
        (a.CmdRun(command="ls"), "cmd_run"),
        (a.McpCall(server="s", name="search"), "mcp_call"),
        (
            a.Invalid(reason="?", tool_call=ToolCall(id="1", name="x" * 999, arguments="")),
            "invalid",
        ),
    ],
)
def test_the_name_of_a_tool_without_a_readable_call(action: ActionBase, name: str) -> None:
    timed = Timed()
    root = begin(timed)
    timed.stream.add(action)
    assert root.find("execute_tool").name == f"execute_tool {name}"


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("anthropic/claude-sonnet-4-5", "anthropic"),
        ("claude-sonnet-4-5", "anthropic"),
        ("gpt-5", "openai"),
        ("o3-mini", "openai"),
        ("azure/my-deployment", "azure.ai.openai"),
        ("bedrock/us.anthropic.claude", "aws.bedrock"),
        ("vertex_ai/gemini-3", "gcp.vertex_ai"),
        ("groq/llama", "groq"),
        ("replay:events.jsonl", "replay"),
        ("my-model", "litellm"),
    ],
)
def test_the_provider_of_a_model(model: str, provider: str) -> None:
    assert provider_name(model) == provider


def arguments_of(action: ActionBase) -> Any:
    return json.loads(ContentWriter(lambda text: text).arguments(action))


def test_the_arguments_of_an_action_that_was_read_from_text() -> None:
    action = a.CmdRun(command="ls", thought="look")
    assert arguments_of(action) == {"command": "ls", "timeout": None, "is_input": False}
