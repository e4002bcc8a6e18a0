"""One test for many cases that take microseconds each: a test of its own for each would take
milliseconds, in each worker that collects it."""

from collections.abc import Callable, Iterable
from typing import TypeVar

Case = TypeVar("Case")


def check_each(
    cases: Iterable[Case], check: Callable[[Case], object], name: Callable[[Case], str] = str
) -> None:
    """Call `check` with each case. Fails with the name and the error of each case it raises for,
    and if there is no case."""
    failures, count = [], 0
    for case in cases:
        count += 1
        try:
            check(case)
        except Exception as error:  # noqa: BLE001 what else it raises is a failure of the case, too
            failures.append(f"{name(case)}: {type(error).__name__}: {error}")
    assert count, "there is no case"
    assert not failures, "\n".join(failures)
