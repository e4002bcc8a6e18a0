"""Spans of a run for an OpenTelemetry collector: the run, its stages, model calls and tools.

They are made from the event log when the run has ended, with OpenTelemetry's own tracer, if the
environment names a collector. Attributes are those of the GenAI semantic conventions where these
have one; no prompt, reply or output is among them.

Sources: https://opentelemetry.io/docs/specs/semconv/gen-ai/
https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
"""

import logging
import secrets
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from resolver import __version__
from resolver.config.background import call_in_background
from resolver.errors import RunStopped
from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ActionBase, ObservationBase
from resolver.events.log import Event, parse_logged_event
from resolver.models.run import Completion, RunState
from resolver.runs.stages import RunRequest, RunResult

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

logger = logging.getLogger("resolver.runs.spans")

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"

FLUSH_SECONDS = 3.0
"""Maximum time that a run waits at its end until the collector has its spans."""

Attributes = Mapping[str, str | float | tuple[str, ...] | None]
"""Attributes of a span; those that are None are left out."""

_PROVIDERS = {"gemini": "gcp.gemini", "vertex_ai": "gcp.vertex_ai", "azure": "azure.ai.openai",
              "azure_ai": "azure.ai.inference", "bedrock": "aws.bedrock", "mistral": "mistral_ai",
              "watsonx": "ibm.watsonx.ai", "xai": "x_ai"}  # fmt: skip
"""Well-known values of `gen_ai.provider.name` that differ from litellm's prefix."""

_FAILED_STATES = frozenset({RunState.ERROR, RunState.STUCK, RunState.LIMIT})


def with_trace(request: RunRequest) -> RunRequest:
    """Return the request with the ids of its trace; the same request if no collector is set.

    Source: https://www.w3.org/TR/trace-context/#traceparent-header
    """
    if not request.host.environment.get(ENDPOINT):
        return request
    return replace(request, traceparent=f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01")


def export_spans(result: RunResult, started_at: datetime) -> None:
    """Send the spans of the run that has just ended, if it has a trace.

    The run has its result, so nothing here ends it: what goes wrong is a warning in the operator's
    log, and a signal only shortens the wait for the collector.
    """
    request = result.request
    if request.traceparent is None:
        return
    redact = request.redactor(request.load_settings({})).redact_text
    with suppress(RunStopped):
        try:
            provider = _open_provider(request.host.environment, request.traceparent)
            writer = SpanWriter(provider.get_tracer("resolver", __version__), redact, request.now())
            root = _add_run(writer, result, started_at)
            writer.add_events(_events_of_attempt(result), root)
            if wait([call_in_background(provider.shutdown, "spans")], FLUSH_SECONDS).not_done:
                logger.warning("the collector did not take the spans within %g s", FLUSH_SECONDS)
        except (ValueError, OSError) as error:
            logger.warning("no spans are exported: %s", redact(str(error)))
        except Exception:
            logger.exception("no spans are exported")


def _open_provider(environment: Mapping[str, str], traceparent: str) -> "TracerProvider":
    """Return the provider that sends spans to the collector; its first span has the given ids."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
    from opentelemetry.util.re import parse_env_headers

    trace, root = (int(part, 16) for part in traceparent.split("-")[1:3])

    root_ids = [root]

    class Ids(RandomIdGenerator):
        def generate_trace_id(self) -> int:
            return trace

        def generate_span_id(self) -> int:
            return root_ids.pop() if root_ids else super().generate_span_id()

    own = Resource({"service.name": "resolver", "service.version": __version__})
    resource = Resource.create().merge(own).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource, shutdown_on_exit=False, id_generator=Ids())
    headers = environment.get("OTEL_EXPORTER_OTLP_HEADERS", "")
    exporter = OTLPSpanExporter(
        endpoint=f"{environment[ENDPOINT].rstrip('/')}/v1/traces",
        headers=dict(parse_env_headers(headers, liberal=True)),
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def _add_run(writer: "SpanWriter", result: RunResult, started_at: datetime) -> "Span":
    """Make the span of the whole run."""
    request, outcome, failure = result.request, result.outcome_file, result.failure
    attributes: Attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "resolver",
        "gen_ai.conversation.id": request.run,
        "resolver.trigger": request.trigger.kind.value,
        "resolver.repository": None if request.is_local else request.trigger.repository,
        "resolver.issue": request.trigger.subject,
        "resolver.state": outcome.state.value,
        "resolver.verdict": outcome.evidence.verdict,
        "resolver.cost": outcome.cost,
        "resolver.iterations": outcome.iterations,
        "process.exit.code": outcome.exit_code,
        "vcs.ref.base.revision": outcome.base,
        "vcs.ref.head.revision": outcome.commit,
    }
    reason = failure.kind if failure is not None else outcome.state.value
    error = reason if outcome.state in _FAILED_STATES else None
    return writer.add("invoke_agent resolver", started_at, writer.until, attributes, error=error)


def _events_of_attempt(result: RunResult) -> Sequence[Event]:
    """Return the events that this process has added: earlier ones belong to another trace."""
    events = result.log.state.events if result.log else []
    starts = (e.id for e in reversed(events) if isinstance(e, life.Resumed))
    return events[next(starts, 0) :]


@dataclass(frozen=True)
class SpanWriter:
    """Makes spans of events. redact: removes secrets. until: the end of what has not ended."""

    tracer: "Tracer"
    redact: Callable[[str], str]
    until: datetime

    def add_events(self, events: Sequence[Event], parent: "Span") -> None:
        """Make the spans of one agent's log, and of the delegates that are nested in it."""
        results = {e.cause: e for e in events if isinstance(e, ObservationBase)}
        tools: dict[int, Span] = {}
        delegates: dict[int, list[Event]] = defaultdict(list)
        for event in events:
            match event:
                case life.DelegateEvent():
                    delegates[event.delegate].append(parse_logged_event(event.event))
                case life.ModelReplied(completion=reply):
                    self._add_past(parent, f"chat {reply.model}", event, *_call(reply, life.AGENT))
                case life.ServiceReplied(completion=reply, service=service):
                    self._add_past(parent, f"chat {reply.model}", event, *_call(reply, service))
                case life.StageCompleted() if event.seconds:
                    self._add_past(parent, event.stage, event, event.seconds, {})
                case life.CheckExecuted(execution=done) if not event.is_cached:
                    attributes = {"resolver.tree": event.at, "process.exit.code": done.exit_code}
                    self._add_past(parent, f"check {event.name}", event, done.seconds, attributes)
                case a.Message() | a.Finish():
                    pass
                case ActionBase():
                    tools[event.id] = self._add_tool(event, results.get(event.id), parent)
        for delegate, nested in delegates.items():
            self.add_events(nested, tools.get(delegate, parent))

    def add(
        self,
        name: str,
        start: datetime,
        end: datetime,
        attributes: Attributes,
        parent: "Span | None" = None,
        *,
        error: str | None = None,
    ) -> "Span":
        """Make a span. error: why it failed, None if it did not."""
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context

        is_call = attributes.get("gen_ai.operation.name") == "chat"
        span = self.tracer.start_span(
            self.redact(name),
            context=set_span_in_context(parent) if parent is not None else Context(),
            kind=SpanKind.CLIENT if is_call else SpanKind.INTERNAL,
            start_time=_nanoseconds(start),
        )
        for key, value in {**attributes, "error.type": error}.items():
            if value is not None:
                span.set_attribute(key, self.redact(value) if isinstance(value, str) else value)
        if error is not None:
            span.set_status(StatusCode.ERROR)
        span.end(_nanoseconds(end))
        return span

    def _add_past(
        self, parent: "Span", name: str, end: Event, seconds: float, attributes: Attributes
    ) -> None:
        start = end.timestamp - timedelta(seconds=max(0.0, seconds))
        self.add(name, start, end.timestamp, attributes, parent)

    def _add_tool(
        self, action: ActionBase, result: ObservationBase | None, parent: "Span"
    ) -> "Span":
        name = str(getattr(action, "kind", ""))
        # A call that could not be read has a name that a model made up.
        if action.tool_call is not None and not isinstance(action, a.Invalid):
            name = action.tool_call.name
        attributes: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "process.exit.code": result.exit_code if isinstance(result, o.CmdOutput) else None,
        }
        end = result.timestamp if result else self.until
        error = result.code if isinstance(result, o.ErrorObservation) else None
        return self.add(
            f"execute_tool {name}", action.timestamp, end, attributes, parent, error=error
        )


def _call(completion: Completion, service: str) -> tuple[float, Attributes]:
    """Return the duration of a model call and the attributes of its span."""
    provider, slash, _ = completion.model.partition("/")
    reason = completion.finish_reason
    return completion.latency, {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider) if slash else "openai",
        "gen_ai.request.model": completion.model,
        "gen_ai.usage.input_tokens": completion.tokens.input,
        "gen_ai.usage.output_tokens": completion.tokens.output,
        "gen_ai.usage.cache_read.input_tokens": completion.tokens.cached,
        "gen_ai.usage.cost": completion.cost,
        "gen_ai.response.finish_reasons": (reason,) if reason else None,
        "resolver.service": service,
    }


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000) * 1000
