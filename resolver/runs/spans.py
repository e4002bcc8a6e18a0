"""Spans of a run for an OpenTelemetry collector: the run, its stages, model calls and tools.

They are made from the run's event log with OpenTelemetry's own tracer. Attributes are those of the
GenAI semantic conventions where these have one; no prompt, reply or output is among them.

Source: https://opentelemetry.io/docs/specs/semconv/gen-ai/
"""

import logging
import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from resolver import __version__
from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ActionBase, ObservationBase
from resolver.events.log import Event, parse_logged_event
from resolver.models.run import Completion

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

logger = logging.getLogger("resolver.runs.spans")

FLUSH_SECONDS = 3.0
"""Maximum time that a run waits at its end until the collector has its spans."""

AttributeValue = str | bool | int | float | tuple[str, ...]

_PROVIDERS = {"gemini": "gcp.gemini", "vertex_ai": "gcp.vertex_ai", "azure": "azure.ai.openai",
              "bedrock": "aws.bedrock", "mistral": "mistral_ai", "xai": "x_ai"}  # fmt: skip
"""Well-known values of `gen_ai.provider.name` that differ from litellm's prefix."""


class RunSpans:
    """The spans of one run. A subscriber of its event log and of those of its delegates.

    provider: makes the spans and sends them.
    redact: removes secrets from the text of every attribute.
    """

    def __init__(
        self,
        provider: "TracerProvider",
        redact: Callable[[str], str],
        attributes: Mapping[str, AttributeValue],
        start: datetime,
    ) -> None:
        self._provider = provider
        self._redact = redact
        self._tracer = provider.get_tracer("resolver", __version__)
        self._tools: dict[tuple[int, ...], Span] = {}
        self._root = self._start("invoke_agent resolver", start, attributes)

    @property
    def traceparent(self) -> str:
        """The ids of the trace and of its root span, as in the header of that name.

        Source: https://www.w3.org/TR/trace-context/#traceparent-header
        """
        context = self._root.get_span_context()
        flags = int(context.trace_flags)
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{flags:02x}"

    def __call__(self, event: Event) -> None:
        """Make the spans that the event starts or ends."""
        self._add(event, ())

    def _add(self, event: Event, delegates: tuple[int, ...]) -> None:
        """Make the spans of an event. delegates: the actions that started its agent, outermost
        first; () for the run's own."""
        parent = self._tools.get(delegates, self._root)
        match event:
            case life.DelegateEvent():
                self._add(parse_logged_event(event.event), (*delegates, event.delegate))
            case life.ModelReplied():
                self._add_call(event, event.completion, life.AGENT, parent)
            case life.ServiceReplied():
                self._add_call(event, event.completion, event.service, parent)
            case life.StageCompleted() if event.seconds:
                self._add_past(event.stage, event.timestamp, event.seconds, {}, parent)
            case life.CheckExecuted() if not event.is_cached:
                done = event.execution
                attributes = known_attributes(
                    {"resolver.tree": event.at, "process.exit.code": done.exit_code}
                )
                name = f"check {event.name}"
                self._add_past(name, event.timestamp, done.seconds, attributes, parent)
            case a.Message() | a.Finish():
                return
            case ActionBase():
                name = _tool_name(event)
                attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
                span = self._start(f"execute_tool {name}", event.timestamp, attributes, parent)
                self._tools[*delegates, event.id] = span
            case ObservationBase() if event.cause is not None:
                self._end_tool(event, (*delegates, event.cause))

    def end(
        self,
        attributes: Mapping[str, AttributeValue],
        at: datetime,
        error: str | None,
        seconds: float = FLUSH_SECONDS,
    ) -> None:
        """End all spans and send them, in at most `seconds`. error: None if there was none."""
        for span in self._tools.values():
            span.end(_nanoseconds(at))
        self._root.set_attributes(self._clean(attributes))
        self._end(self._root, at, error)
        thread = threading.Thread(target=self._provider.shutdown, name="spans", daemon=True)
        thread.start()
        thread.join(seconds)
        if thread.is_alive():
            logger.warning("the collector did not take the spans within %g s", seconds)

    def _add_call(self, event: Event, completion: Completion, service: str, parent: "Span") -> None:
        attributes = known_attributes(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": _provider_of(completion.model),
                "gen_ai.request.model": completion.model,
                "gen_ai.usage.input_tokens": completion.tokens.input,
                "gen_ai.usage.output_tokens": completion.tokens.output,
                "gen_ai.usage.cache_read.input_tokens": completion.tokens.cached,
                "gen_ai.usage.cost": completion.cost,
                "resolver.service": service,
            }
        )
        if completion.finish_reason:
            attributes["gen_ai.response.finish_reasons"] = (completion.finish_reason,)
        name = f"chat {completion.model}"
        self._add_past(name, event.timestamp, completion.latency, attributes, parent, is_call=True)

    def _end_tool(self, observation: ObservationBase, key: tuple[int, ...]) -> None:
        if (span := self._tools.pop(key, None)) is None:
            return
        if isinstance(observation, o.CmdOutput) and observation.exit_code is not None:
            span.set_attribute("process.exit.code", observation.exit_code)
        error = observation.code if isinstance(observation, o.ErrorObservation) else None
        self._end(span, observation.timestamp, error)

    def _add_past(
        self,
        name: str,
        end: datetime,
        seconds: float,
        attributes: Mapping[str, AttributeValue],
        parent: "Span",
        *,
        is_call: bool = False,
    ) -> None:
        """Add a span that has ended."""
        start = end - timedelta(seconds=max(0.0, seconds))
        span = self._start(name, start, attributes, parent, is_call=is_call)
        span.end(_nanoseconds(end))

    def _start(
        self,
        name: str,
        at: datetime,
        attributes: Mapping[str, AttributeValue],
        parent: "Span | None" = None,
        *,
        is_call: bool = False,
    ) -> "Span":
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind, set_span_in_context

        return self._tracer.start_span(
            self._redact(name),
            context=set_span_in_context(parent) if parent is not None else Context(),
            kind=SpanKind.CLIENT if is_call else SpanKind.INTERNAL,
            attributes=self._clean(attributes),
            start_time=_nanoseconds(at),
        )

    def _end(self, span: "Span", at: datetime, error: str | None) -> None:
        from opentelemetry.trace import StatusCode

        if error:
            span.set_attribute("error.type", self._redact(error))
            span.set_status(StatusCode.ERROR)
        span.end(_nanoseconds(at))

    def _clean(self, attributes: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
        return {
            name: self._redact(value) if isinstance(value, str) else value
            for name, value in attributes.items()
        }


def known_attributes(
    values: Mapping[str, AttributeValue | None],
) -> dict[str, AttributeValue]:
    """Return the attributes that have a value."""
    return {name: value for name, value in values.items() if value is not None}


def _tool_name(action: ActionBase) -> str:
    """Return the name of the tool. A call that could not be read has one that a model made up."""
    if action.tool_call is None or isinstance(action, a.Invalid):
        return str(getattr(action, "kind", ""))
    return action.tool_call.name


def _provider_of(model: str) -> str:
    prefix, slash, _ = model.partition("/")
    return _PROVIDERS.get(prefix, prefix) if slash else "openai"


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000) * 1000
