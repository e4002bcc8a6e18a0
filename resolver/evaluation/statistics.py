"""Statistics of a comparison of few tasks: confidence intervals of rates, and a paired test."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, sqrt
from statistics import quantiles

Z_95 = 1.959963984540054
"""Quantile of the normal distribution for an interval of 95 percent."""


@dataclass(frozen=True)
class Rate:
    """A share, with its Wilson score interval of 95 percent.

    Wilson's interval stays between 0 and 1, and is useful for few tasks and for shares near 0 or 1.
    Source: E. B. Wilson, Probable Inference, the Law of Succession, and Statistical Inference,
    JASA 22 (1927), 209-212.
    """

    count: int
    total: int

    @property
    def share(self) -> float | None:
        """The share; None without a task."""
        return self.count / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float]:
        """The lower and the upper end; everything without a task."""
        if not self.total:
            return 0.0, 1.0
        n, p, square = self.total, self.count / self.total, Z_95**2
        center = (p + square / (2 * n)) / (1 + square / n)
        margin = Z_95 / (1 + square / n) * sqrt(p * (1 - p) / n + square / (4 * n * n))
        # At the ends the exact value is 0 or 1, which rounding misses by 1e-17.
        low = 0.0 if self.count == 0 else max(0.0, center - margin)
        high = 1.0 if self.count == n else min(1.0, center + margin)
        return low, high


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
