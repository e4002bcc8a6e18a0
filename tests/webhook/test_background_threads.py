"""Tasks of a process that fail are logged, counted and started again."""

import threading
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from resolver.entrypoints.webhook.background_threads import BackgroundThreads
from resolver.entrypoints.webhook.health import add_health, check_readiness
from resolver.entrypoints.webhook.metrics import FAILED_TASKS
from resolver.entrypoints.webhook.request_queue import RequestQueue
from resolver.storage.database import DatabaseError, parse_database_url
from tests.parts.waiting import until


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (KeyError("x"), "the task recovery failed and is started again"),
        (DatabaseError("no answer"), "the task recovery has to wait: no answer"),
    ],
)
def test_a_server_is_not_ready_while_a_task_is_down(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception, logged: str
) -> None:
    queue = RequestQueue(parse_database_url(f"sqlite:///{tmp_path}/resolver.db"))
    threads = BackgroundThreads(restart_seconds=0.5)
    failed = FAILED_TASKS.labels("recovery")._value
    before = failed.get()
    app = FastAPI()
    add_health(app, lambda: check_readiness(queue, tmp_path, threads, min_free_bytes=1))
    client = TestClient(app)
    failures, is_running = [error, error], threading.Event()

    def work() -> None:
        if failures:
            raise failures.pop()
        is_running.set()

    assert client.get("/readyz").status_code == 200
    threads.start("recovery", work)
    until(lambda: threads.down == {"recovery"})
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").status_code == 200
    assert is_running.wait(60)
    assert client.get("/readyz").status_code == 200
    assert logged in caplog.text
    assert failed.get() == before + 2
    queue.close()
