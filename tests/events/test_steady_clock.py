"""The clock of a run, while somebody sets the system's clock."""

from datetime import UTC, datetime, timedelta

from resolver.events.stream import SteadyClock

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_only_the_monotonic_clock_advances_the_time() -> None:
    system, elapsed = [NOW], [1000.0]
    clock = SteadyClock(lambda: system[0], lambda: elapsed[0])
    for jump in (timedelta(0), timedelta(days=1), -timedelta(hours=2)):
        system[0], elapsed[0] = NOW + jump, elapsed[0] + 30
        assert clock() == NOW + timedelta(seconds=elapsed[0] - 1000)
