"""An OpenTelemetry collector of the tests: takes OTLP over HTTP and keeps the spans."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # each worker imports this module, and few tests need what takes so long
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue
    from opentelemetry.proto.trace.v1.trace_pb2 import Span


def plain(value: "AnyValue") -> Any:
    """Return the value of an attribute as Python has it."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(item) for item in value.array_value.values]
    return getattr(value, kind) if kind else None


def attributes_of(span: "Span") -> dict[str, Any]:
    """Return the attributes of a span by name."""
    return {attribute.key: plain(attribute.value) for attribute in span.attributes}


class Collector:
    """Keeps each request, and decodes it by the classes that OpenTelemetry publishes."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.headers.append({n.lower(): v for n, v in self.headers.items()})
                collector.bodies.append(body)
                self.send_response(200 if self.path == "/v1/traces" else 404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Be quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def exports(self) -> "list[ExportTraceServiceRequest]":
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

        return [trace_service_pb2.ExportTraceServiceRequest.FromString(b) for b in self.bodies]

    @property
    def spans(self) -> "list[Span]":
        """All spans so far, in the order of their start."""
        spans = [
            span
            for export in self.exports
            for resource in export.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        return sorted(spans, key=lambda span: span.start_time_unix_nano)

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    started = Collector()
    yield started
    started.close()
