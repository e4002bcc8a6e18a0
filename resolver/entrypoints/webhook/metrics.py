"""Metrics of the server for Prometheus.

No label names a repository, a person or an issue: the number of series is bounded, and who can read
the metrics learns nothing about private repositories. They have a port of their own, because the
port of the webhook is open to the internet.
"""

import logging
from collections.abc import Callable, Iterable

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
from resolver.events.stream import Clock, utc_now
from resolver.models.run import ACTIVE_STATES, RunState
from resolver.runs.stages import RunResult
from resolver.storage.database import DatabaseError

logger = logging.getLogger("resolver.entrypoints.webhook")

REGISTRY = CollectorRegistry()
"""The metrics of this process."""

DELIVERIES = Counter(
    "resolver_deliveries", "Deliveries of webhooks.", ["result"], registry=REGISTRY
)
"""One that `failed` could not be stored and is delivered again."""

FAILED_TASKS = Counter(
    "resolver_failed_tasks",
    "Failures of tasks of this process, which are then started again.",
    ["task"],
    registry=REGISTRY,
)

RUNS = Counter("resolver_runs", "Attempts of runs that ended.", ["outcome"], registry=REGISTRY)

PULL_REQUEST = Histogram(
    "resolver_pull_request_seconds",
    "Time from a request to its new pull request.",
    buckets=(60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400),
    registry=REGISTRY,
)

# The series of a counter are there from the start, so that an alert sees the first event.
for _result in ("stored", "ignored", "pong", "unsigned", "malformed", "failed"):
    DELIVERIES.labels(_result)
for _state in set(RunState) - ACTIVE_STATES:
    RUNS.labels(_state.value)
ProcessCollector(registry=REGISTRY)


def count_run(result: RunResult, now: Clock = utc_now) -> None:
    """Count an attempt of a run that has ended."""
    publication = result.publication
    RUNS.labels(result.outcome_file.state.value).inc()
    is_new = publication.pull_request is not None and publication.how == "new"
    if is_new and not publication.repeated:
        seconds = (now() - result.request.trigger.at).total_seconds()
        PULL_REQUEST.observe(max(0.0, seconds))


class QueueCollector(Collector):
    """Measures the queue when the metrics are read. backlog: returns what waits in it."""

    def __init__(self, backlog: Callable[[], Backlog], now: Clock = utc_now) -> None:
        self._backlog, self._now = backlog, now

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


def serve_metrics(backlog: Callable[[], Backlog], host: str, port: int) -> str:
    """Serve `GET /metrics` in a thread, and return its address. Raises UsageError if the address
    can't be used."""
    REGISTRY.register(QueueCollector(backlog))
    try:
        server, _ = start_http_server(port, host, REGISTRY)
    except OSError as error:
        raise UsageError(
            f"can't listen on {host}:{port}: {error.strerror}",
            "choose another --metrics-host or --metrics-port",
        ) from error
    return f"http://{host}:{server.server_port}/metrics"
