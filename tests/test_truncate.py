"""Tests of truncating a long output at the start of a line or a word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.models.truncate import keep_last_lines


@pytest.mark.parametrize(
    ("text", "limit", "kept"),
    [
        ("short", 10, "short"),
        ("first line\nsecond\nthird", 15, "second\nthird"),
        ("first line\nsecond\nthird", 12, "second\nthird"),
        ("a line of several words", 12, "words"),
        ("x" * 20, 5, "x" * 5),
        ("first\nsecond", 0, ""),
    ],
)
def test_an_excerpt_begins_at_a_line_or_a_word(text: str, limit: int, kept: str) -> None:
    assert keep_last_lines(text, limit) == kept


@given(st.text(alphabet="ab \n", max_size=60), st.integers(0, 60))
def test_an_excerpt_is_the_end_of_the_text_and_fits(text: str, limit: int) -> None:
    kept = keep_last_lines(text, limit)
    assert text.endswith(kept) and len(kept) <= limit
