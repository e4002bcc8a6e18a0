"""Tests of signals that end a run."""

import os
import signal

import pytest

from resolver.errors import RunStopped
from resolver.runs.common import stop_on_signals
from tests.parts.waiting import until


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_run_where_it_is(number: signal.Signals) -> None:
    with stop_on_signals() as stopping, pytest.raises(RunStopped, match=number.name):
        os.kill(os.getpid(), number)
        until(lambda: False)
    assert stopping.is_set()
