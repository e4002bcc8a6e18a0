"""Metrics of the server for Prometheus.

No label names a repository, a person or an issue: the number of series is bounded, and who can read
the metrics learns nothing about private repositories. They have a port of their own, because the
port of the webhook is open to the internet.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    start_http_server,
)
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from resolver.entrypoints.webhook.request_queue import Backlog
from resolver.errors import UsageError
from resolver.events.lifecycle import Resumed, RunStarted, StageCompleted
from resolver.events.log import Event
from resolver.events.run_log import reply_in
from resolver.events.stream import Clock, utc_now
from resolver.github.forge import Forge
from resolver.models.run import ACTIVE_STATES, Completion, RunState, Trigger
from resolver.runs.stages import RunRequest, RunResult, StageValues
from resolver.storage.database import DatabaseError

logger = logging.getLogger("resolver.entrypoints.webhook")

MAX_REMEMBERED = 10_000
"""Maximum number of answered requests that are remembered."""

COMMENT_BUCKETS = (1, 2, 5, 10, 30, 60, 300, 900, 3600)
PULL_REQUEST_BUCKETS = (60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400)
SANDBOX_BUCKETS = (0.25, 0.5, 1, 2, 5, 10, 30, 60, 120)

TOKEN_DIRECTIONS = ("input", "output", "cached_input")
"""Labels of the counted tokens; those of `cached_input` are part of `input` too."""

DELIVERY_RESULTS = ("stored", "ignored", "pong", "unsigned", "malformed", "failed")
"""Results of a delivery. One that `failed` could not be stored and is delivered again."""


Pipeline = Callable[[RunRequest, Forge], RunResult]
"""Executes a run, like `run_pipeline`. Raises nothing but LeaseLost."""


class ServerMetrics:
    """Counts what the server does.

    backlog: returns what waits in the queue, when the metrics are read.
    """

    def __init__(self, backlog: Callable[[], Backlog], now: Clock = utc_now) -> None:
        self._now = now
        self._answered: dict[str, None] = {}
        self.registry = registry = CollectorRegistry()
        registry.register(_QueueCollector(backlog, now))
        ProcessCollector(registry=registry)

        def counter(
            name: str, meaning: str, label: str = "", values: Iterable[str] = ()
        ) -> Counter:
            made = Counter(name, meaning, [label] if label else [], registry=registry)
            for value in values:
                made.labels(value)
            return made

        def seconds(name: str, meaning: str, buckets: Sequence[float]) -> Histogram:
            return Histogram(name, meaning, buckets=buckets, registry=registry)

        self._deliveries = counter(
            "resolver_deliveries", "Deliveries of webhooks.", "result", DELIVERY_RESULTS
        )
        self._failed_tasks = counter(
            "resolver_failed_tasks",
            "Failures of tasks of this process, which are then started again.",
            "task",
        )
        ended = [state.value for state in set(RunState) - ACTIVE_STATES]
        self._runs = counter("resolver_runs", "Attempts of runs that ended.", "outcome", ended)
        self._tokens = counter(
            "resolver_tokens", "Tokens of models.", "direction", TOKEN_DIRECTIONS
        )
        self._cost = counter(
            "resolver_cost_dollars", "Cost of replies with a known price, in US dollars."
        )
        self._first_comment = seconds(
            "resolver_first_comment_seconds",
            "Time from a request to the first comment about it.",
            COMMENT_BUCKETS,
        )
        self._pull_request = seconds(
            "resolver_pull_request_seconds",
            "Time from a request to its new pull request.",
            PULL_REQUEST_BUCKETS,
        )
        self._sandbox = seconds(
            "resolver_sandbox_start_seconds",
            "Time to start the sandbox of an agent.",
            SANDBOX_BUCKETS,
        )

    def instrument(self, execute: Pipeline) -> Pipeline:
        """Return `execute`, with its runs counted."""

        def counted(request: RunRequest, forge: Forge) -> RunResult:
            def observe(values: StageValues) -> None:
                self.observe_stage(values)
                request.observe(values)

            result = execute(replace(request, observe=observe), forge)
            self.observe_result(result)
            return result

        return counted

    def count_delivery(self, result: str) -> None:
        """Count a delivery. result: one of DELIVERY_RESULTS."""
        self._deliveries.labels(result).inc()

    def count_failed_task(self, name: str) -> None:
        """Count the failure of a task of `BackgroundThreads`."""
        self._failed_tasks.labels(name).inc()

    def observe_comment(self, trigger: Trigger) -> None:
        """Record that the request is answered in its conversation. Only the first answer counts."""
        if trigger.key in self._answered:
            return
        self._answered[trigger.key] = None
        if len(self._answered) > MAX_REMEMBERED:
            self._answered.pop(next(iter(self._answered)))
        self._first_comment.observe(_seconds_since(trigger.at, self._now()))

    def observe_stage(self, values: StageValues) -> None:
        """Record what a run has reached. See `RunRequest.observe`."""
        if values.executed is None and values.progress and values.progress.comment_id is not None:
            self.observe_comment(values.request.trigger)

    def observe_result(self, result: RunResult) -> None:
        """Record the end of an attempt of a run."""
        trigger, publication = result.request.trigger, result.publication
        self._runs.labels(result.outcome_file.state.value).inc()
        if publication.comment_url:
            self.observe_comment(trigger)
        is_new = publication.pull_request is not None and publication.how == "new"
        if is_new and not publication.repeated:
            self._pull_request.observe(_seconds_since(trigger.at, self._now()))
        for event in events_of_attempt(result.log.state.events) if result.log else ():
            if isinstance(event, StageCompleted) and event.stage == "sandbox":
                self._sandbox.observe(event.seconds)
            reply = reply_in(event)
            if reply is not None and isinstance(reply[1], Completion):
                tokens = reply[1].tokens
                for direction, number in zip(
                    TOKEN_DIRECTIONS, (tokens.input, tokens.output, tokens.cached), strict=True
                ):
                    self._tokens.labels(direction).inc(number)
                self._cost.inc(reply[1].cost or 0.0)


class _QueueCollector(Collector):
    """Reads the queue when the metrics are read."""

    def __init__(self, backlog: Callable[[], Backlog], now: Clock) -> None:
        self._backlog = backlog
        self._now = now

    def collect(self) -> Iterable[Metric]:
        """Yield the length and the age of the queue; if the database is down, only that."""
        is_up = GaugeMetricFamily("resolver_database_up", "1 if the database can be used, else 0.")
        try:
            backlog = self._backlog()
        except DatabaseError as error:
            logger.error("the queue can't be measured: %s", error.what)
            is_up.add_metric([], 0)
            yield is_up
            return
        is_up.add_metric([], 1)
        yield is_up
        length = GaugeMetricFamily(
            "resolver_queue_requests", "Requests in the queue.", labels=["state"]
        )
        for state in ("waiting", "deferred", "working"):
            length.add_metric([state], getattr(backlog, state))
        yield length
        age = GaugeMetricFamily(
            "resolver_queue_age_seconds", "Time since the oldest waiting request was stored."
        )
        age.add_metric([], backlog.age(self._now()))
        yield age


def events_of_attempt(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events since the newest start or resumption, which earlier attempts have not
    counted."""
    for position in range(len(events) - 1, -1, -1):
        if isinstance(events[position], RunStarted | Resumed):
            return events[position:]
    return events


def serve_metrics(metrics: ServerMetrics, host: str, port: int) -> str:
    """Serve `GET /metrics` in a thread, and return its address. Raises UsageError if the address
    can't be used."""
    try:
        server, _ = start_http_server(port, host, metrics.registry)
    except OSError as error:
        raise UsageError(
            f"can't listen on {host}:{port}: {error.strerror}",
            "choose another --metrics-host or --metrics-port",
        ) from error
    return f"http://{host}:{server.server_port}/metrics"


def _seconds_since(at: datetime, now: datetime) -> float:
    return max(0.0, (now - at).total_seconds())
