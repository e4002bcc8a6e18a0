"""Tests of the server's metrics, its readiness and its log, without a server."""

import logging
import urllib.request
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.registry import Collector

from resolver.config.background import call_in_background
from resolver.entrypoints.http_server import log_to_stderr, logging_run
from resolver.entrypoints.webhook.background_threads import BackgroundThreads
from resolver.entrypoints.webhook.health import check_readiness
from resolver.entrypoints.webhook.metrics import (
    DELIVERIES,
    REGISTRY,
    QueueCollector,
    count_run,
    serve_metrics,
)
from resolver.entrypoints.webhook.request_queue import Backlog
from resolver.errors import ResolverError, UsageError
from resolver.github.comments.report import Report
from resolver.models.run import Publication, Trigger
from resolver.runs.reporting import outcome_file_of
from resolver.runs.stages import RunResult
from resolver.security.redaction import Redactor
from resolver.storage.database import DatabaseError
from tests.github import reports
from tests.runs.plain_values import PULL, executed_values, run_request
from tests.webhook.serving import series_of

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
ASKED = reports.trigger().model_copy(update={"at": AT})


def later(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def counted(collector: Collector | None = None) -> dict[str, float]:
    registry = CollectorRegistry() if collector else REGISTRY
    if collector:
        registry.register(collector)
    return series_of(generate_latest(registry))


def result_of(folder: Path, publication: Publication, trigger: Trigger = ASKED) -> RunResult:
    """The result of a run that has finished."""
    request = replace(run_request(folder), trigger=trigger)
    outcome_file = outcome_file_of(executed_values(request), publication, None, 0)
    report = Report(trigger=trigger, run="run-1", model="m")
    return RunResult(request, report, outcome_file, publication, 0)


def test_the_queue_is_measured_when_the_metrics_are_read() -> None:
    backlog = Backlog(waiting=3, deferred=1, working=2, oldest=AT)
    found = counted(QueueCollector(lambda: backlog, lambda: later(30)))
    assert found["queue_requests waiting"] == 3 and found["queue_requests working"] == 2
    assert found["queue_age_seconds"] == 30 and found["database_up"] == 1
    assert counted(QueueCollector(Backlog))["queue_age_seconds"] == 0


def unusable() -> Backlog:
    raise DatabaseError("the database is gone")


def test_metrics_are_readable_while_the_database_is_gone() -> None:
    assert counted(QueueCollector(unusable)) == {"database_up": 0}


@pytest.mark.attack
def test_no_metric_names_a_repository_and_the_number_of_series_is_bounded(tmp_path: Path) -> None:
    """Requests come from many private repositories: the metrics name none, and stay as many."""
    before = counted()
    for number in range(20):
        changes = {"repository": f"secret-owner/private-{number}", "key": str(number)}
        trigger = ASKED.model_copy(update=changes)
        publication = Publication(pull_request=PULL, comment_url="https://github.com/c/1")
        count_run(result_of(tmp_path / str(number), publication, trigger), lambda: later(90))
    after = counted()
    assert set(after) == set(before) and b"private" not in generate_latest(REGISTRY)
    for name, added in (("runs_total finished", 20), ("pull_request_seconds_sum", 1800)):
        assert after[name] == before[name] + added
    assert "deliveries_total failed" in before


def test_metrics_have_a_port_of_their_own() -> None:
    DELIVERIES.labels("stored").inc()
    address = serve_metrics(Backlog, "127.0.0.1", 0)
    with urllib.request.urlopen(address) as answer:
        assert b'resolver_deliveries_total{result="stored"} ' in answer.read()
    port = int(address.rsplit(":", 1)[1].split("/")[0])
    with pytest.raises(UsageError, match="can't listen"):
        serve_metrics(Backlog, "127.0.0.1", port)


def test_a_server_is_ready_if_its_database_and_its_disk_can_take_a_delivery(tmp_path: Path) -> None:
    def check(queue: Any, folder: Path = tmp_path, min_free: int = 1) -> None:
        check_readiness(queue, folder, BackgroundThreads(), min_free)

    usable = SimpleNamespace(check=lambda: None)
    check(usable)
    with pytest.raises(DatabaseError):
        check(SimpleNamespace(check=unusable))
    with pytest.raises(ResolverError, match="bytes left"):
        check(usable, min_free=10**18)
    with pytest.raises(ResolverError, match="can't be read"):
        check(usable, tmp_path / "gone")


def test_a_line_of_the_log_has_the_id_of_its_run(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    earlier, root.handlers[:] = root.handlers[:], []
    handler = log_to_stderr(Redactor(()))
    log = logging.getLogger("resolver.x")

    try:
        with logging_run("run-7"):
            call_in_background(lambda: log.info("in a thread"), "test").result(60)
            log.info("inside")
        log.info("outside")
    finally:
        root.handlers[:] = earlier
        handler.close()
    lines = [line.partition(" INFO ")[2] for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        "resolver.x run-7 in a thread", "resolver.x run-7 inside", "resolver.x outside",
    ]  # fmt: skip
