"""Tests of the thread of a run's stages."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from resolver.controller.control import Stop
from resolver.errors import RunStopped
from resolver.runs.stage_thread import ORDERLY_SECONDS, StageThread
from resolver.runs.stages import StageValues
from tests.runs.plain_values import run_log, run_request


def test_a_stop_does_not_wait_for_a_resumed_run_that_has_not_begun_to_work(tmp_path: Path) -> None:
    request, released = run_request(tmp_path), threading.Event()
    values = StageValues(request, request.load_settings({}))
    log = run_log(request.output.log)

    def stages(values: StageValues) -> Iterator[StageValues]:
        yield replace(values, log=log)
        request.control.send(Stop())
        released.wait(30)  # a clone
        yield values

    started = time.monotonic()
    with log, pytest.raises(RunStopped):
        StageThread(values, stages).run()  # type: ignore[arg-type]
    released.set()
    assert time.monotonic() - started < ORDERLY_SECONDS
