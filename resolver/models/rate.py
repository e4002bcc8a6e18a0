"""A share with its confidence interval, for evaluations and for outcomes of pull requests."""

from dataclasses import dataclass
from math import sqrt

Z_95 = 1.959963984540054
"""Quantile of the normal distribution for an interval of 95 percent."""


@dataclass(frozen=True)
class Rate:
    """A share, with its Wilson score interval of 95 percent.

    Wilson's interval stays between 0 and 1, and is useful for few cases and for shares near 0 or 1.
    Source: E. B. Wilson, Probable Inference, the Law of Succession, and Statistical Inference,
    JASA 22 (1927), 209-212.
    """

    count: int
    total: int

    @property
    def share(self) -> float | None:
        """The share; None without a case."""
        return self.count / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float]:
        """The lower and the upper end; everything without a case."""
        if not self.total:
            return 0.0, 1.0
        n, p, square = self.total, self.count / self.total, Z_95**2
        center = (p + square / (2 * n)) / (1 + square / n)
        margin = Z_95 / (1 + square / n) * sqrt(p * (1 - p) / n + square / (4 * n * n))
        # At the ends the exact value is 0 or 1, which rounding misses by 1e-17.
        low = 0.0 if self.count == 0 else max(0.0, center - margin)
        high = 1.0 if self.count == n else min(1.0, center + margin)
        return low, high
