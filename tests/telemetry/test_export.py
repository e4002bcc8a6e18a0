"""Tests of the export: its content, what is never exported, and an unreachable collector."""

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from resolver.config.settings import load_settings
from resolver.runs.wiring.sandbox import RunHost
from resolver.runs.wiring.telemetry import with_spans
from resolver.security.redaction import Redactor
from resolver.telemetry import export
from resolver.telemetry.export import Collector as CollectorAddress
from resolver.telemetry.export import RareReports, open_export, parse_headers
from tests.parts.collector import Collector, attributes_of
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, bash, finish, make_checkout
from tests.runs.plain_values import run_request
from tests.telemetry.spans import BEGIN

HEADER_SECRET = "collector-canary-4f1e8d7c6b5a"
STRANGER = "ghp_" + "a1B2" * 9
"""Has the form of a credential that Resolver does not know."""


def test_a_span_arrives_with_its_times_its_parent_and_no_secret(collector: Collector) -> None:
    redactor = Redactor((HEADER_SECRET,))
    address = CollectorAddress(f"{collector.url}/v1/traces", {"authorization": "Bearer x"})
    sent = open_export(address, redactor.redact_text)
    root = sent.start("root", BEGIN, {"a": HEADER_SECRET, "b": [STRANGER], "c": 1, "d": True})
    child = root.start_child(f"child {STRANGER}", BEGIN, {"gen_ai.tool.call.result": "kept"})
    child.add_event("event", BEGIN, {"at": HEADER_SECRET})
    child.link("not a traceparent")
    child.link(f"00-{'1' * 32}-{'2' * 16}-01")
    child.end(BEGIN, "timeout")
    root.rename("renamed")
    root.end(BEGIN)
    sent.close()
    first, second = sorted(collector.spans, key=lambda span: bool(span.parent_span_id))
    assert (first.name, first.status.code, second.status.code) == ("renamed", 0, 2)
    assert first.start_time_unix_nano == int(BEGIN.timestamp()) * 10**9
    assert second.parent_span_id == first.span_id and second.trace_id == first.trace_id
    assert [link.trace_id.hex() for link in second.links] == ["1" * 32]
    assert root.traceparent.startswith(f"00-{first.trace_id.hex()}-{first.span_id.hex()}-")
    assert attributes_of(first) == {"a": "[redacted]", "b": ["[redacted]"], "c": 1, "d": True}
    assert attributes_of(second) == {"gen_ai.tool.call.result": "kept", "error.type": "timeout"}
    everything = b"".join(collector.bodies)
    assert HEADER_SECRET.encode() not in everything and STRANGER.encode() not in everything
    assert collector.headers[0]["authorization"] == "Bearer x"


def test_a_collector_that_is_gone_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    sent = open_export(CollectorAddress("http://127.0.0.1:9/v1/traces", {}), str)
    sent.start("root", BEGIN, {}).end(BEGIN)
    sent.close(seconds=0.0)
    [record] = [r for r in caplog.records if r.name == "resolver.telemetry"]
    assert "did not take the spans" in record.getMessage()


def test_a_failing_export_is_reported_once_in_a_while() -> None:
    at = 0.0
    reports = RareReports(lambda: at)
    record = logging.LogRecord("x", logging.WARNING, "", 0, "", None, None)
    assert [reports.filter(record) for _ in range(3)] == [True, False, False]
    at = export.SECONDS_BETWEEN_REPORTS
    assert [reports.filter(record) for _ in range(2)] == [True, False]


def test_headers_are_read_as_the_standard_variable_has_them() -> None:
    assert parse_headers("Authorization=Basic%20YTpi, x-team = core") == {
        "authorization": "Basic YTpi",
        "x-team": "core",
    }
    assert parse_headers("") == {}


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/"}, "http://c:4318/v1/traces"),
        ({"RESOLVER_TELEMETRY": "http://c:4318"}, "http://c:4318/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/x"}, "http://c/x"),
    ],
)
def test_the_address_of_the_collector(environment: Mapping[str, str], url: str) -> None:
    assert load_settings({}, environment).telemetry.traces_url == url


def test_the_values_of_headers_are_secrets() -> None:
    environment = {
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20token-1234, x-key=key%2D5678",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "https://user:pass%20word@collector.example",
    }
    settings = load_settings({}, environment)
    secrets = set(settings.secrets)
    assert secrets == {"Bearer token-1234", "token-1234", "key-5678", "pass word", "word"}
    assert "1234" not in repr(settings.telemetry.headers)


@pytest.mark.parametrize(
    ("value", "content"),
    [("true", True), ("SPAN_ONLY", True), ("span_and_event", True), ("NO_CONTENT", False)],
)
def test_content_is_off_unless_the_standard_variable_asks(value: str, content: bool) -> None:
    variable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    assert load_settings({}, {variable: value}).telemetry.content is content
    assert load_settings({}, {}).telemetry.content is False


@pytest.mark.parametrize(
    ("environment", "warning"),
    [
        ({}, ""),
        ({"OTEL_SDK_DISABLED": "true"}, ""),
        ({"OTEL_TRACES_EXPORTER": "none"}, ""),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTLP over HTTP"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317"}, "OTLP over HTTP"),
    ],
)
def test_what_leaves_a_run_without_spans(
    environment: dict[str, str], warning: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"} if environment else {}
    host = RunHost(environment, tmp_path)
    request = run_request(tmp_path)
    settings = load_settings({}, {**endpoint, **environment})
    request = replace(request, host=host)
    assert with_spans(request, settings) is request and request.traceparent == ""
    assert warning in caplog.text and bool(caplog.text) is bool(warning)


def test_a_run_arrives_as_one_trace_and_its_resumption_as_a_linked_one(
    collector: Collector, command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    """The whole way: the standard variables of a command line, a run on a checkout, the log, and
    what the collector got. Nothing else of OpenTelemetry is set up."""
    checkout = make_checkout(tmp_path / "calc", {"calc.py": "def add(a, b):\n    return a - b\n"})
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_HEADERS": f"x-key={HEADER_SECRET}",
    }
    model_endpoint.script(bash(f"echo {HEADER_SECRET}; exit 3"), bash("cat missing"))
    limited = command_line.call_resolve(checkout, "--max-iterations", "2", **environment)
    assert limited.exit_code == 4, limited.stderr
    [root] = [span for span in collector.spans if not span.parent_span_id]
    children = {span.name: span for span in collector.spans}
    assert {"clone", "execute", "sandbox", "chat openai/scripted"} <= set(children)
    attributes = attributes_of(root)
    assert attributes["resolver.state"] == "limit" and attributes["error.type"] == "limit"
    assert children["invoke_agent CodeActAgent"].parent_span_id == children["execute"].span_id
    tools = [attributes_of(span) for span in collector.spans if "execute_bash" in span.name]
    assert [tool["process.exit.code"] for tool in tools] == [3, 1]
    assert limited.outcome["traceparent"].split("-")[1] == root.trace_id.hex()
    assert limited.events[0].traceparent == limited.outcome["traceparent"]  # type: ignore[union-attr]
    assert {headers["x-key"] for headers in collector.headers} == {HEADER_SECRET}
    everything = b"".join(collector.bodies) + limited.everything
    assert HEADER_SECRET.encode() not in everything
    assert b"cat missing" not in b"".join(collector.bodies), "content is off"

    model_endpoint.script(finish("Nothing to do"))
    resumed = command_line.call(
        "resolve", "--resume", limited.output, "--max-iterations", "5", **environment
    )
    newest = [span for span in collector.spans if not span.parent_span_id][-1]
    assert newest.trace_id != root.trace_id, resumed.stderr
    assert [link.trace_id for link in newest.links] == [root.trace_id]
    resource = collector.exports[-1].resource_spans[0].resource
    names = {a.key: a.value.string_value for a in resource.attributes}
    assert names["service.name"] == "resolver"
    assert json.loads((limited.output / "outcome.json").read_text())["traceparent"]
