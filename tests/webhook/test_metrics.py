"""Tests of the server's metrics, its readiness and its log, without a server."""

import logging
import threading
import urllib.request
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import generate_latest

from resolver.entrypoints.http_server import log_to_stderr, logging_run
from resolver.entrypoints.webhook.health import MIN_FREE_BYTES, ReadinessCheck
from resolver.entrypoints.webhook.metrics import (
    DELIVERY_RESULTS,
    ServerMetrics,
    serve_metrics,
)
from resolver.entrypoints.webhook.request_queue import Backlog
from resolver.errors import ResolverError, UsageError
from resolver.events.base import EventBase
from resolver.events.lifecycle import ModelReplied, Resumed, ServiceReplied, StageCompleted
from resolver.github.comments.report import Report
from resolver.models.run import Completion, Publication, Tokens, Trigger
from resolver.runs.conversation.watch import background_poll
from resolver.runs.output import build_outcome_file
from resolver.runs.stages import RunResult
from resolver.security.redaction import Redactor
from resolver.storage.database import DatabaseError
from tests.github import reports
from tests.runs.plain_values import PULL, run_request
from tests.runs.test_spans import opening
from tests.webhook.serving import series_of

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
ASKED = reports.trigger().model_copy(update={"at": AT})


def later(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def numbers(metrics: ServerMetrics) -> dict[str, float]:
    return series_of(generate_latest(metrics.registry))


def log_of(*events: EventBase) -> Any:
    """Return the part of a run's log that metrics read."""
    return SimpleNamespace(state=SimpleNamespace(events=list(events)))


def result_of(
    folder: Path, publication: Publication, *events: EventBase, trigger: Trigger = ASKED
) -> RunResult:
    """The result of a run that has finished."""
    request = replace(run_request(folder), trigger=trigger)
    outcome_file = build_outcome_file(
        run="run-1",
        trigger=trigger,
        model="m",
        exit_code=0,
        outcome=reports.outcome(),
        failure=None,
        log_state=None,
        publication=publication,
    )
    report = Report(trigger=trigger, run="run-1", model="m")
    return RunResult(request, report, outcome_file, publication, 0, log=log_of(*events))


def test_what_a_run_did_is_counted(tmp_path: Path) -> None:
    metrics = ServerMetrics(Backlog, lambda: later(90))
    completion = Completion(model="m", tokens=Tokens(input=100, output=7, cached=60), cost=0.5)
    unpriced = completion.model_copy(update={"cost": None})
    events = (
        opening(),
        ModelReplied(completion=completion),
        Resumed(version="1", run="run-1"),
        StageCompleted(stage="sandbox", seconds=3.0),
        ModelReplied(completion=completion),
        ServiceReplied(service="condenser", completion=unpriced),
    )
    publication = Publication(pull_request=PULL, comment_url="https://github.com/c/1")
    metrics.count_run(result_of(tmp_path, publication, *events))
    counted = numbers(metrics)
    assert counted["runs_total finished"] == 1 and counted["runs_total error"] == 0
    assert counted["tokens_total input"] == 200, "an earlier attempt counted its replies"
    assert counted["tokens_total output"] == 14 and counted["tokens_total cached_input"] == 120
    assert counted["cost_dollars_total"] == 0.5
    assert counted["sandbox_start_seconds_sum"] == 3
    assert counted["pull_request_seconds_sum"] == 90


def test_the_queue_is_measured_when_the_metrics_are_read() -> None:
    backlog = Backlog(waiting=3, deferred=1, working=2, oldest=AT)
    counted = numbers(ServerMetrics(lambda: backlog, lambda: later(30)))
    assert counted["queue_requests waiting"] == 3 and counted["queue_requests working"] == 2
    assert counted["queue_age_seconds"] == 30 and counted["database_up"] == 1
    assert numbers(ServerMetrics(Backlog))["queue_age_seconds"] == 0


def unusable() -> Backlog:
    raise DatabaseError("the database is gone")


def test_metrics_are_readable_while_the_database_is_gone() -> None:
    counted = numbers(ServerMetrics(unusable))
    assert counted["database_up"] == 0 and "queue_age_seconds" not in counted


@pytest.mark.attack
def test_no_metric_names_a_repository_and_the_number_of_series_is_bounded(tmp_path: Path) -> None:
    """Requests come from many private repositories: the metrics name none, and stay as many."""
    metrics = ServerMetrics(Backlog, lambda: later(1))
    before = set(numbers(metrics))
    for number in range(20):
        changes = {"repository": f"secret-owner/private-{number}", "key": str(number)}
        trigger = ASKED.model_copy(update=changes)
        publication = Publication(pull_request=PULL, comment_url="https://github.com/c/1")
        metrics.count_run(
            result_of(tmp_path / str(number), publication, opening(), trigger=trigger)
        )
    assert set(numbers(metrics)) == before
    assert b"private" not in generate_latest(metrics.registry)
    assert {f"deliveries_total {result}" for result in DELIVERY_RESULTS} <= before


def test_metrics_have_a_port_of_their_own() -> None:
    metrics = ServerMetrics(Backlog)
    metrics.count_delivery("stored")
    address = serve_metrics(metrics, "127.0.0.1", 0)
    with urllib.request.urlopen(address) as answer:
        assert b'resolver_deliveries_total{result="stored"} 1.0' in answer.read()
    port = int(address.rsplit(":", 1)[1].split("/")[0])
    with pytest.raises(UsageError, match="can't listen"):
        serve_metrics(metrics, "127.0.0.1", port)


class Queue:
    """A queue that can be out of order."""

    def __init__(self, failure: ResolverError | None = None) -> None:
        self._failure = failure

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def backlog(self) -> Backlog:
        return Backlog(waiting=2, oldest=AT)


def ready(folder: Path, queue: Queue, free: int = 10**9) -> Mapping[str, Any]:
    check = ReadinessCheck(queue, folder, lambda: later(5), lambda _: free)  # type: ignore[arg-type]
    return check()


def test_a_server_is_ready_if_its_database_and_its_disk_can_take_a_delivery(tmp_path: Path) -> None:
    facts = {"disk_free_bytes": 10**9, "queue_length": 2, "queue_age_seconds": 5.0}
    assert ready(tmp_path, Queue()) == facts
    with pytest.raises(DatabaseError):
        ready(tmp_path, Queue(DatabaseError("gone")))
    with pytest.raises(ResolverError, match="bytes left"):
        ready(tmp_path, Queue(), MIN_FREE_BYTES - 1)
    gone = ReadinessCheck(Queue(), tmp_path / "gone")  # type: ignore[arg-type]
    with pytest.raises(ResolverError, match="can't be read"):
        gone()


def test_a_line_of_the_log_has_the_id_of_its_run(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    earlier, root.handlers[:] = root.handlers[:], []
    handler = log_to_stderr(Redactor(()))
    log, polled = logging.getLogger("resolver.x"), threading.Event()

    def poll(ended: threading.Event) -> None:
        log.info("in a thread")
        polled.set()

    try:
        with logging_run("run-7"), background_poll(poll, "test"):
            assert polled.wait(60)
            log.info("inside")
        log.info("outside")
    finally:
        root.handlers[:] = earlier
        handler.close()
    lines = [line.partition(" INFO ")[2] for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        "resolver.x run-7 in a thread", "resolver.x run-7 inside", "resolver.x outside",
    ]  # fmt: skip
