"""Distributions of values, and the paired test that compares two runs of the same tasks."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import quantiles


@dataclass(frozen=True)
class Distribution:
    """The minimum, the quartiles and the maximum of some values."""

    low: float
    first_quartile: float
    median: float
    third_quartile: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Distribution | None":
        """Return the distribution of the values; None if there are none."""
        if not values:
            return None
        # One value has no quantiles; two of the same have them.
        several = values if len(values) > 1 else [*values, *values]
        first, middle, third = quantiles(several, method="inclusive")
        return cls(min(values), first, middle, third, max(values))


@dataclass(frozen=True)
class PairedComparison:
    """Two runs of the same tasks.

    only_first, only_second: tasks that only one of them resolved.
    """

    first: str
    second: str
    both: int
    neither: int
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]

    @property
    def total(self) -> int:
        """The number of tasks with a result of both."""
        return self.both + self.neither + len(self.only_first) + len(self.only_second)

    @property
    def p_value(self) -> float:
        """The two-sided p-value of McNemar's exact test."""
        return mcnemar_exact(len(self.only_first), len(self.only_second))


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Return the two-sided p-value of McNemar's exact test.

    It is the probability of a split at least as uneven, if each task that only one of the two
    resolved was equally likely to be resolved by either.

    Source: Q. McNemar, Note on the sampling error of the difference between correlated proportions
    or percentages, Psychometrika 12 (1947), 153-157.
    """
    n = only_first + only_second
    tail = sum(comb(n, k) for k in range(min(only_first, only_second) + 1))
    return min(1.0, 2 * tail / float(2**n))
