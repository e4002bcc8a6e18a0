"""Tests of checking many cases in one test."""

import pytest

from tests.parts.cases import check_each


def test_each_case_that_fails_is_named_with_its_error() -> None:
    def check(number: int) -> None:
        assert number != 2, "two"
        if number == 3:
            raise ValueError("three")

    with pytest.raises(AssertionError) as failed:
        check_each([1, 2, 3, 4], check, lambda number: f"case {number}")
    first, *_, last = str(failed.value).splitlines()
    assert first == "case 2: AssertionError: two"
    assert last == "case 3: ValueError: three"
    assert "case 1" not in str(failed.value) and "case 4" not in str(failed.value)


def test_a_test_without_a_case_fails() -> None:
    with pytest.raises(AssertionError, match="there is no case"):
        check_each([], print)
