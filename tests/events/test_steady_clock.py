"""The clock of a run, while somebody sets the system's clock."""

import logging
from datetime import UTC, datetime, timedelta

import pytest

from resolver.events.stream import SteadyClock

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Machine:
    """A machine whose clock can be set. elapsed: what its monotonic clock says."""

    def __init__(self) -> None:
        self.elapsed, self.offset = 1000.0, timedelta(0)
        self.clock = SteadyClock(self.system, lambda: self.elapsed)

    def system(self) -> datetime:
        return NOW + timedelta(seconds=self.elapsed - 1000.0) + self.offset


@pytest.mark.parametrize(
    ("jump", "said"),
    [
        (timedelta(days=1), "forward by 86400 seconds"),
        (-timedelta(hours=2), "back by 7200 seconds"),
    ],
)
def test_a_jump_of_the_clock_is_logged_once_and_not_counted(
    jump: timedelta, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    machine = Machine()
    machine.elapsed += 30
    assert machine.clock() == NOW + timedelta(seconds=30)
    assert not caplog.records
    machine.offset = jump
    for seconds in (31, 32):
        machine.elapsed = 1000 + seconds
        assert machine.clock() == NOW + timedelta(seconds=seconds)
    [record] = caplog.records
    assert said in record.getMessage() and record.levelno == logging.WARNING
    machine.offset = timedelta(0)  # set right again
    machine.clock()
    assert len(caplog.records) == 2


def test_small_corrections_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    for _ in range(20):
        machine.offset += timedelta(seconds=1)
        assert machine.clock() == NOW
    assert not caplog.records
