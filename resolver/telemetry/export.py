"""Exports spans by OTLP over HTTP with the SDK of OpenTelemetry.

The SDK is imported when the first span is exported, and nothing of it is made global, so that no
other library of this process exports anything. Spans wait in a bounded queue for a thread of their
own: a collector that does not answer costs the run nothing, and spans that don't fit are dropped.

The SDK reads the standard variables for what is not given here, such as OTEL_SERVICE_NAME,
OTEL_RESOURCE_ATTRIBUTES, OTEL_EXPORTER_OTLP_TIMEOUT, OTEL_BSP_* and OTEL_TRACES_SAMPLER:
https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
"""

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from resolver import __version__
from resolver.telemetry.conventions import CONTENT_ATTRIBUTES, ERROR_TYPE, SCHEMA_URL
from resolver.telemetry.span import Attributes, AttributeValue, SpanRole

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span, SpanContext, Tracer

logger = logging.getLogger("resolver.telemetry")

FLUSH_SECONDS = 3.0
"""Seconds that the end of a run waits for the export of its last spans."""

SERVICE_NAME = "resolver"

SDK_LOGGERS = (
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.sdk._shared_internal",
)
"""The SDK's loggers that report failed exports, one line for each attempt."""

SECONDS_BETWEEN_REPORTS = 600.0

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


class RareReports(logging.Filter):
    """Lets one record pass in `SECONDS_BETWEEN_REPORTS`, so that a collector that is down for the
    whole run is reported, and does not fill the operator's log.

    clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._next_at = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002 - records are alike
        """Return True for a record that is reported."""
        now = self._clock()
        if now < self._next_at:
            return False
        self._next_at = now + SECONDS_BETWEEN_REPORTS
        return True


_RARE_REPORTS = RareReports()


@dataclass(frozen=True)
class Collector:
    """The endpoint that spans are sent to.

    traces_url: complete URL of the endpoint for traces.
    headers: headers of each request, by name.
    """

    traces_url: str
    headers: Mapping[str, str]


class ExportedSpan:
    """A span of the SDK. See `RunSpan` for its methods.

    redact: is applied to all texts but those of the attributes with content, whose texts were
        redacted before they were shortened.
    """

    def __init__(self, span: "Span", tracer: "Tracer", redact: Callable[[str], str]) -> None:
        self._span = span
        self._tracer = tracer
        self._redact = redact

    @property
    def traceparent(self) -> str:
        context = self._span.get_span_context()
        flags = int(context.trace_flags)
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{flags:02x}"

    def start_child(
        self, name: str, at: datetime, attributes: Attributes, role: SpanRole = "internal"
    ) -> "ExportedSpan":
        from opentelemetry.trace import SpanKind, set_span_in_context

        span = self._tracer.start_span(
            self._redact(name),
            context=set_span_in_context(self._span),
            kind=SpanKind.CLIENT if role == "client" else SpanKind.INTERNAL,
            attributes=self._redacted(attributes),
            start_time=nanoseconds(at),
        )
        return ExportedSpan(span, self._tracer, self._redact)

    def set(self, attributes: Attributes) -> None:
        self._span.set_attributes(self._redacted(attributes))

    def rename(self, name: str) -> None:
        self._span.update_name(self._redact(name))

    def add_event(self, name: str, at: datetime, attributes: Attributes) -> None:
        self._span.add_event(name, self._redacted(attributes), nanoseconds(at))

    def link(self, traceparent: str) -> None:
        if context := _span_context(traceparent):
            self._span.add_link(context)

    def end(self, at: datetime, error: str = "") -> None:
        from opentelemetry.trace import Status, StatusCode

        if error:
            self._span.set_attribute(ERROR_TYPE, self._redact(error))
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end(nanoseconds(at))

    def _redacted(self, attributes: Attributes) -> dict[str, AttributeValue]:
        return {
            name: self._redacted_value(value) if name not in CONTENT_ATTRIBUTES else value
            for name, value in attributes.items()
        }

    def _redacted_value(self, value: AttributeValue) -> AttributeValue:
        if isinstance(value, str):
            return self._redact(value)
        if isinstance(value, bool | int | float):
            return value
        return [self._redact(item) for item in value]


class SpanExport:
    """The export of the spans of one run.

    exporter: sends the spans.
    redact: see `ExportedSpan`.
    """

    def __init__(self, exporter: "SpanExporter", redact: Callable[[str], str]) -> None:
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        self._exporter = exporter
        self._redact = redact
        self._provider = _provider()
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("resolver", __version__, schema_url=SCHEMA_URL)

    def start(self, name: str, at: datetime, attributes: Attributes) -> ExportedSpan:
        """Start the root span of a new trace."""
        from opentelemetry.trace import INVALID_SPAN

        # A child of an invalid span has no parent, whatever span is active in this thread.
        origin = ExportedSpan(INVALID_SPAN, self._tracer, self._redact)
        return origin.start_child(name, at, attributes)

    def close(self, seconds: float = FLUSH_SECONDS) -> None:
        """Send what is left, for at most `seconds`."""
        thread = threading.Thread(target=self._provider.shutdown, name="telemetry", daemon=True)
        thread.start()
        thread.join(seconds)
        if thread.is_alive():
            logger.warning("the collector did not take the spans within %g s", seconds)
            self._exporter.shutdown()


def open_export(collector: Collector, redact: Callable[[str], str]) -> SpanExport:
    """Return the export to a collector. Raises ValueError or OSError for variables of the SDK that
    it can't use."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    for name in SDK_LOGGERS:
        logging.getLogger(name).addFilter(_RARE_REPORTS)  # has no effect the second time
    exporter = OTLPSpanExporter(endpoint=collector.traces_url, headers=dict(collector.headers))
    return SpanExport(exporter, redact)


def parse_headers(text: str) -> dict[str, str]:
    """Return the headers in the form of OTEL_EXPORTER_OTLP_HEADERS: `name=value,name=value`, with
    the values percent-encoded."""
    from opentelemetry.util.re import parse_env_headers

    return dict(parse_env_headers(text, liberal=True))


def nanoseconds(at: datetime) -> int:
    """Return the time in nanoseconds since 1970."""
    return int(at.timestamp() * 1_000_000) * 1000


def _provider() -> "TracerProvider":
    """Return a provider whose resource names the service, unless a standard variable does."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider

    own = Resource({"service.name": SERVICE_NAME, "service.version": __version__})
    resource = Resource.create().merge(own).merge(OTELResourceDetector().detect())
    return TracerProvider(resource=resource, shutdown_on_exit=False)


def _span_context(traceparent: str) -> "SpanContext | None":
    from opentelemetry.trace import SpanContext, TraceFlags

    match = _TRACEPARENT.fullmatch(traceparent)
    if match is None:
        return None
    trace_id, span_id, flags = (int(part, 16) for part in match.groups())
    return SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
