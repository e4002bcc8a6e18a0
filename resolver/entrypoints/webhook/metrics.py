"""Metrics of the server for Prometheus.

No label names a repository, a person or an issue: the number of series is bounded, and who can read
the metrics learns nothing about private repositories. They have a port of their own, because the
port of the webhook is open to the internet.
"""

import logging
from collections.abc import Callable, Iterable, Sequence

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
from resolver.models.run import ACTIVE_STATES, Completion, RunState
from resolver.runs.stages import RunResult
from resolver.storage.database import DatabaseError

logger = logging.getLogger("resolver.entrypoints.webhook")

PULL_REQUEST_BUCKETS = (60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400)
SANDBOX_BUCKETS = (0.25, 0.5, 1, 2, 5, 10, 30, 60, 120)

TOKEN_DIRECTIONS = ("input", "output", "cached_input")
"""Labels of the counted tokens; those of `cached_input` are part of `input` too."""

DELIVERY_RESULTS = ("stored", "ignored", "pong", "unsigned", "malformed", "failed")
"""Results of a delivery. One that `failed` could not be stored and is delivered again."""


class ServerMetrics:
    """Counts what the server does.

    backlog: returns what waits in the queue, when the metrics are read.
    """

    def __init__(self, backlog: Callable[[], Backlog], now: Clock = utc_now) -> None:
        self._now = now
        self.registry = registry = CollectorRegistry()
        registry.register(_QueueCollector(backlog, now))
        ProcessCollector(registry=registry)

        def counter(name: str, meaning: str, label: str, values: Iterable[str] = ()) -> Counter:
            made = Counter(name, meaning, [label], registry=registry)
            for value in values:
                made.labels(value)
            return made

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
        self._cost = Counter(
            "resolver_cost_dollars",
            "Cost of replies with a known price, in US dollars.",
            registry=registry,
        )
        self._pull_request = Histogram(
            "resolver_pull_request_seconds",
            "Time from a request to its new pull request.",
            buckets=PULL_REQUEST_BUCKETS,
            registry=registry,
        )
        self._sandbox = Histogram(
            "resolver_sandbox_start_seconds",
            "Time to start the sandbox of an agent.",
            buckets=SANDBOX_BUCKETS,
            registry=registry,
        )

    def count_delivery(self, result: str) -> None:
        """Count a delivery. result: one of DELIVERY_RESULTS."""
        self._deliveries.labels(result).inc()

    def count_failed_task(self, name: str) -> None:
        """Count the failure of a task of `BackgroundThreads`."""
        self._failed_tasks.labels(name).inc()

    def count_run(self, result: RunResult) -> None:
        """Count an attempt of a run that has ended."""
        trigger, publication = result.request.trigger, result.publication
        self._runs.labels(result.outcome_file.state.value).inc()
        is_new = publication.pull_request is not None and publication.how == "new"
        if is_new and not publication.repeated:
            self._pull_request.observe(max(0.0, (self._now() - trigger.at).total_seconds()))
        for event in _events_of_attempt(result.log.state.events) if result.log else ():
            if isinstance(event, StageCompleted) and event.stage == "sandbox":
                self._sandbox.observe(event.seconds)
            reply = reply_in(event)
            if reply is not None and isinstance(reply[1], Completion):
                tokens = reply[1].tokens
                counts = (tokens.input, tokens.output, tokens.cached)
                for direction, number in zip(TOKEN_DIRECTIONS, counts, strict=True):
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


def _events_of_attempt(events: Sequence[Event]) -> Sequence[Event]:
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
