"""Tests of the statistics, against values that other programs give."""

import pytest

from resolver.evaluation.statistics import Distribution, PairedComparison, mcnemar_exact
from resolver.models.rate import Rate


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [
        # binom.confint(x, n, methods = "wilson") of R's package binom
        (8, 10, 0.4901625, 0.9433178),
        (0, 10, 0.0, 0.2775328),
        (10, 10, 0.7224672, 1.0),
        (1, 2, 0.0945312, 0.9054688),
        (50, 100, 0.4038315, 0.5961685),
    ],
)
def test_the_interval_of_a_rate_is_wilsons(count: int, total: int, low: float, high: float) -> None:
    assert Rate(count, total).interval == pytest.approx((low, high), abs=1e-6)


def test_a_rate_without_a_task_says_nothing() -> None:
    assert Rate(0, 0).share is None
    assert Rate(0, 0).interval == (0.0, 1.0)


@pytest.mark.parametrize(
    ("first", "second", "p"),
    # binom.test(b, b + c, 0.5) of R, which is two-sided
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (0, 6, 0.03125), (8, 2, 0.109375), (3, 3, 1.0)],
)
def test_the_paired_test_is_exact(first: int, second: int, p: float) -> None:
    assert mcnemar_exact(first, second) == pytest.approx(p)


def test_a_comparison_counts_each_task_once() -> None:
    comparison = PairedComparison("a", "b", 3, 2, ("x",), ("y", "z"))
    assert comparison.total == 8
    assert comparison.p_value == 1.0


def test_a_distribution_has_the_quartiles() -> None:
    assert Distribution.of([]) is None
    assert Distribution.of([3]) == Distribution(3, 3, 3, 3, 3)
    assert Distribution.of([5, 1, 3, 2, 4]) == Distribution(1, 2, 3, 4, 5)
