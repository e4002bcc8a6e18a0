"""Tests of the spans of a run, made by OpenTelemetry's tracer and read by its own exporters."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from resolver.errors import RunStopped
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import EventBase, Source
from resolver.events.lifecycle import (
    CheckExecuted,
    ModelReplied,
    StageCompleted,
)
from resolver.events.stores import MemoryStore
from resolver.events.stream import EventStream
from resolver.models.run import Completion, Tokens
from resolver.models.verification import CheckExecution
from resolver.runs import spans
from resolver.runs.common import environment_secrets
from resolver.runs.conversation.comments import Conclusion, conclude
from resolver.runs.pipeline import run_pipeline
from resolver.runs.spans import SpanWriter, export_spans, with_trace
from resolver.security.redaction import Redactor
from tests.parts.collector import Collector
from tests.parts.memory_forge import MemoryForge
from tests.runs.plain_values import executed_values, run_request

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "collector-canary-4f1e8d7c6b5a"
COMPLETION = Completion(
    model="anthropic/claude-sonnet-4-5",
    finish_reason="tool_calls",
    tokens=Tokens(input=100, output=20, cached=60),
    cost=0.25,
    latency=2.0,
)


class Traced:
    """A log whose events have the times that a test gives, and the spans of it."""

    def __init__(self) -> None:
        self._at = BEGIN
        self.store = MemoryStore()
        self.stream = EventStream(self.store, now=lambda: self._at)

    def add(self, seconds: float, event: EventBase) -> Any:
        self._at = BEGIN + timedelta(seconds=seconds)
        return self.stream.add(event)  # type: ignore[arg-type]

    def spans(self, seconds: float, error: str | None = None) -> dict[str, ReadableSpan]:
        """Return the spans of a run that ends then, by name."""
        exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        end = BEGIN + timedelta(seconds=seconds)
        writer = SpanWriter(provider.get_tracer("x"), Redactor((SECRET,)).redact_text, end)
        root = writer.add("invoke_agent resolver", BEGIN, end, {"a": SECRET}, error=error)
        writer.add_events(list(self.store), root)
        return {span.name: span for span in exporter.get_finished_spans()}


def seconds_of(span: ReadableSpan) -> tuple[float, float]:
    """Return start and end of a span, in seconds since BEGIN."""
    assert span.start_time is not None and span.end_time is not None
    begin = BEGIN.timestamp() * 1e9
    return (span.start_time - begin) / 1e9, (span.end_time - begin) / 1e9


def parent_of(span: ReadableSpan, spans: dict[str, ReadableSpan]) -> str:
    ids = {other.context.span_id: name for name, other in spans.items() if other.context}
    return ids[span.parent.span_id] if span.parent else ""


def test_a_step_is_a_model_call_and_a_tool_below_the_run() -> None:
    traced = Traced()
    traced.add(3.0, ModelReplied(completion=COMPLETION))
    run = traced.add(3.5, a.CmdRun(command=f"echo {SECRET}", source=Source.AGENT))
    traced.add(5.0, o.CmdOutput(command="ls", exit_code=1, content="", cause=run.id))
    edit = traced.add(5.5, a.FileRead(path="a.py", source=Source.AGENT))
    traced.add(6.0, o.ErrorObservation(content="no such file", code="file", cause=edit.id))
    spans = traced.spans(7.0, "limit")
    chat, command = spans["chat anthropic/claude-sonnet-4-5"], spans[f"execute_tool {run.kind}"]
    assert seconds_of(chat) == (1.0, 3.0) and seconds_of(command) == (3.5, 5.0)
    assert chat.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "anthropic/claude-sonnet-4-5",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.cost": 0.25,
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "resolver.service": "agent",
    }
    assert command.attributes is not None and command.attributes["process.exit.code"] == 1
    assert command.status.is_ok or command.status.is_unset, "a failed command was executed"
    failed = spans[f"execute_tool {edit.kind}"]
    assert not failed.status.is_ok and failed.attributes is not None
    assert failed.attributes["error.type"] == "file"
    root = spans["invoke_agent resolver"]
    assert root.attributes == {"a": "[redacted]", "error.type": "limit"}
    assert {parent_of(span, spans) for span in (chat, command, failed)} == {root.name}
    everything = "".join(span.to_json() for span in spans.values())
    assert SECRET not in everything and "no such file" not in everything


def test_stages_and_checks_with_a_duration_are_spans() -> None:
    traced = Traced()
    traced.add(5.0, StageCompleted(stage="setup", detail="pip install", seconds=3.0))
    traced.add(5.0, StageCompleted(stage="branch", detail="agent/1", seconds=0.0))
    for is_cached, name in ((False, "pytest"), (True, "cached")):
        execution = CheckExecution(exit_code=1, seconds=2.0)
        traced.add(
            9.0,
            CheckExecuted(
                key="k", name=name, command="pytest", at="head", tree="t", execution=execution,
                is_cached=is_cached,
            ),
        )  # fmt: skip
    spans = traced.spans(9.0)
    assert set(spans) == {"invoke_agent resolver", "setup", "check pytest"}
    assert seconds_of(spans["setup"]) == (2.0, 5.0)
    assert spans["check pytest"].attributes == {"resolver.tree": "head", "process.exit.code": 1}


@pytest.fixture
def environment(collector: Collector) -> Iterator[dict[str, str]]:
    yield {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_HEADERS": f"x-key={SECRET}",
    }


def test_the_values_of_headers_are_secrets() -> None:
    environment = {
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20token-1234, x-key=key%2D5678",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "https://user:pass%20word@collector.example",
    }
    secrets = set(environment_secrets(environment))
    assert secrets == {"Bearer token-1234", "token-1234", "key-5678", "pass word"}


@pytest.mark.parametrize("error", [RuntimeError("no way"), RunStopped("stopped by a signal")])
def test_spans_that_can_not_be_sent_do_not_end_the_run(
    environment: dict[str, str],
    tmp_path: Path,
    error: BaseException,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(spans, "_open_provider", fail)
    request = run_request(tmp_path)
    host = replace(request.host, environment=environment)
    values = executed_values(with_trace(replace(request, host=host)))
    export_spans(conclude(values, Conclusion(), None), BEGIN)


def test_a_run_arrives_at_the_collector_as_one_trace(
    collector: Collector, environment: dict[str, str], tmp_path: Path
) -> None:
    request = run_request(tmp_path)
    host = replace(request.host, environment=environment)
    forge: Any = MemoryForge(tmp_path / "issue.md", level="read")  # it refuses the run
    result = run_pipeline(replace(request, host=host), forge, lambda _: None)
    exported = b"".join(collector.bodies)
    assert result.outcome_file.traceparent is not None
    assert bytes.fromhex(result.outcome_file.traceparent.split("-")[1]) in exported
    assert b"invoke_agent resolver" in exported and b"service.name" in exported
    assert {headers["x-key"] for headers in collector.headers} == {SECRET}
    assert SECRET.encode() not in exported
