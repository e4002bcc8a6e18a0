"""Tests of signals that end a run."""

import os
import signal
from typing import Any

import pytest
from pydantic_core import CoreSchema, core_schema

from resolver.errors import RunStopped
from resolver.models.base import DeferredModel
from resolver.runs.common import stop_on_signals
from tests.parts.waiting import until


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_run_where_it_is(number: signal.Signals) -> None:
    with stop_on_signals() as stopping, pytest.raises(RunStopped, match=number.name):
        os.kill(os.getpid(), number)
        until(lambda: False)
    assert stopping.is_set()


class SignallingValue:
    """A value of a literal type. Hashing it, as pydantic does in a build, sends a signal."""

    def __hash__(self) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        return 1

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> CoreSchema:
        return core_schema.literal_schema([cls()])


def test_a_signal_while_a_model_is_built_ends_the_run_after_that() -> None:
    class Model(DeferredModel):
        value: SignallingValue | None = None

    alarm = signal.getsignal(signal.SIGALRM)
    built = []
    with stop_on_signals() as stopping, pytest.raises(RunStopped, match="SIGTERM"):
        built.append(Model())
        assert stopping.is_set()
        until(lambda: False)
    assert built == [Model()]
    assert signal.getsignal(signal.SIGALRM) == alarm


def test_a_block_that_ends_before_the_signal_is_handled_leaves_no_alarm() -> None:
    class Model(DeferredModel):
        value: SignallingValue | None = None

    before = signal.getsignal(signal.SIGALRM)
    with stop_on_signals() as stopping:
        Model()
    assert stopping.is_set()
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0.0
