"""Opens the spans of a run if the environment names a collector, and ends them with the run's
result.

The variables are OpenTelemetry's own:
https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
"""

import logging
from contextlib import suppress
from dataclasses import replace

from resolver import __version__
from resolver.config.settings import Settings
from resolver.errors import RunStopped
from resolver.models.run import RunState
from resolver.runs.output import OutcomeFile
from resolver.runs.spans import AttributeValue, RunSpans, known_attributes
from resolver.runs.stages import RunRequest, RunResult

logger = logging.getLogger("resolver.runs.telemetry")

_FAILED_STATES = frozenset({RunState.ERROR, RunState.STUCK, RunState.LIMIT})


def with_spans(request: RunRequest, settings: Settings) -> RunRequest:
    """Return the request with its started spans; the same request if no collector is set.

    A collector that can't be used is a warning in the operator's log and never ends a run.
    """
    environment = request.host.environment
    endpoint = environment.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
    if not endpoint:
        return request
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.util.re import parse_env_headers

    redact = request.redactor(settings).redact_text
    headers = environment.get("OTEL_EXPORTER_OTLP_HEADERS", "")
    own = Resource({"service.name": "resolver", "service.version": __version__})
    try:
        resource = Resource.create().merge(own).merge(OTELResourceDetector().detect())
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        exporter = OTLPSpanExporter(
            endpoint=f"{endpoint.rstrip('/')}/v1/traces",
            headers=dict(parse_env_headers(headers, liberal=True)),
        )
        provider.add_span_processor(BatchSpanProcessor(exporter))
    except (ValueError, OSError) as error:
        logger.warning("no spans are exported: %s", redact(str(error)))
        return request
    spans = RunSpans(provider, redact, _request_attributes(request), request.now())
    return replace(request, spans=spans)


def end_spans(result: RunResult) -> RunResult:
    """End the run's spans, send them, and return the result as it is."""
    spans, outcome, failure = result.request.spans, result.outcome_file, result.failure
    if spans is None:
        return result
    error = failure.kind if failure is not None else outcome.state.value
    # The run has its result: a signal only shortens the wait for the collector.
    with suppress(RunStopped):
        spans.end(
            _outcome_attributes(outcome),
            result.request.now(),
            error if outcome.state in _FAILED_STATES else None,
        )
    return result


def _request_attributes(request: RunRequest) -> dict[str, AttributeValue]:
    trigger = request.trigger
    return known_attributes(
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "resolver",
            "gen_ai.conversation.id": request.run,
            "resolver.trigger": trigger.kind.value,
            "resolver.repository": None if request.is_local else trigger.repository,
            "resolver.issue": trigger.subject,
        }
    )


def _outcome_attributes(outcome: OutcomeFile) -> dict[str, AttributeValue]:
    return known_attributes(
        {
            "resolver.state": outcome.state.value,
            "resolver.verdict": outcome.evidence.verdict,
            "resolver.cost": outcome.cost,
            "resolver.iterations": outcome.iterations,
            "process.exit.code": outcome.exit_code,
            "vcs.ref.base.revision": outcome.base,
            "vcs.ref.head.revision": outcome.commit,
        }
    )
