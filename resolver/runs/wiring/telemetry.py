"""Opens the spans of a run if the settings name a collector, and ends them with the run's result.

Only the operator names a collector: the setting is not one that a repository can set.
"""

import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from resolver.config.settings import Settings
from resolver.errors import RunStopped
from resolver.models.trigger import Trigger
from resolver.runs.output import OutcomeFile
from resolver.runs.stages import RunRequest, RunResult, StageValues
from resolver.runs.wiring.models import REPLAY
from resolver.telemetry import conventions as c
from resolver.telemetry.attributes import FAILED_STATES
from resolver.telemetry.content import ContentWriter
from resolver.telemetry.export import Collector, open_export, parse_headers
from resolver.telemetry.run_spans import RunSpans
from resolver.telemetry.span import AttributeValue

logger = logging.getLogger("resolver.runs.telemetry")


def with_spans(request: RunRequest, settings: Settings) -> RunRequest:
    """Return the request with its started spans; the same request if no collector is set.

    A collector that can't be used is a warning in the operator's log and never ends a run.
    """
    telemetry = settings.telemetry
    if not telemetry.traces_url or _is_disabled(telemetry.traces_url, request.host.environment):
        return request
    redact = request.redactor(settings).redact_text
    headers = telemetry.headers.get_secret_value() if telemetry.headers else ""
    try:
        collector = Collector(telemetry.traces_url, parse_headers(headers))
        export = open_export(collector, redact)
    except (ValueError, OSError) as error:
        logger.warning("no spans are exported: %s", redact(str(error)))
        return request
    content = ContentWriter(redact) if telemetry.content else None
    attributes = _request_attributes(request, settings)
    return replace(request, spans=RunSpans(export, attributes, content, request.now))


def report_phase(earlier: StageValues, newest: StageValues) -> None:
    """Tell the caller of the run what it has reached, and end the span of the phase that led
    there."""
    newest.request.observe(newest)
    if newest.request.spans is None:
        return
    for name in newest.reached_since(earlier):
        newest.request.spans.reach(name)


def end_spans(result: RunResult) -> RunResult:
    """End the run's spans, send them, and return the result as it is."""
    spans, outcome, failure = result.request.spans, result.outcome_file, result.failure
    if spans is None:
        return result
    error = failure.kind if failure is not None else outcome.state.value
    # The run has its result: a signal only shortens the wait for the collector.
    with suppress(RunStopped):
        spans.end(_outcome_attributes(outcome), error if outcome.state in FAILED_STATES else "")
    return result


def _is_disabled(traces_url: str, environment: Mapping[str, str]) -> bool:
    """Return True if a standard variable disables spans, or asks for a protocol that Resolver does
    not support. The settings are still valid: the variables may be meant for other programs."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return True
    if environment.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() == "none":
        return True
    names = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    protocol = next((environment[name] for name in names if environment.get(name)), "")
    if protocol in {"", "http/protobuf"} and re.match(r"https?://[^/\s]", traces_url):
        return False
    logger.warning(
        "no spans are exported: Resolver sends them by OTLP over HTTP (http/protobuf) only. Set "
        "OTEL_EXPORTER_OTLP_ENDPOINT to an address like http://localhost:4318, and remove "
        "OTEL_EXPORTER_OTLP_PROTOCOL"
    )
    return True


def _request_attributes(request: RunRequest, settings: Settings) -> dict[str, AttributeValue]:
    """Return what is known of a run when it starts."""
    trigger = request.trigger
    attributes: dict[str, AttributeValue] = {
        c.OPERATION: c.INVOKE_WORKFLOW,
        c.AGENT_NAME: "resolver",
        c.RUN: request.run,
        c.TRIGGER: trigger.kind.value,
        **_repository_attributes(request, trigger),
    }
    if trigger.subject is not None:
        attributes[c.ISSUE] = trigger.subject
    if settings.model.startswith(REPLAY):
        attributes[c.REPLAY] = True
    return attributes


def _repository_attributes(request: RunRequest, trigger: Trigger) -> dict[str, AttributeValue]:
    if request.is_local:
        return {}
    owner, _, name = trigger.repository.partition("/")
    return {c.VCS_PROVIDER: "github", c.VCS_OWNER: owner, c.VCS_REPOSITORY: name}


def _outcome_attributes(outcome: OutcomeFile) -> dict[str, AttributeValue]:
    """Return how the run ended."""
    known: dict[str, AttributeValue | None] = {
        c.STATE: outcome.state.value,
        c.EXIT_CODE: outcome.exit_code,
        c.VERDICT: outcome.evidence.verdict,
        c.RUN_COST: outcome.cost,
        f"{c.RUN_TOKENS}.input": outcome.tokens.input,
        f"{c.RUN_TOKENS}.output": outcome.tokens.output,
        f"{c.RUN_TOKENS}.cached": outcome.tokens.cached,
        c.ITERATIONS: outcome.iterations,
        c.VCS_BASE_REVISION: outcome.base,
        c.VCS_HEAD_REVISION: outcome.commit,
    }
    if outcome.pull_request is not None and outcome.pull_request.number is not None:
        known[c.VCS_CHANGE] = str(outcome.pull_request.number)
    return {name: value for name, value in known.items() if value is not None}
