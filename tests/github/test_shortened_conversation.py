"""Tests of shortening a long conversation in the middle, with the number of omitted comments."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from resolver.models.run import Comment
from resolver.models.truncate import shorten_thread

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def thread(*sizes: int) -> tuple[Comment, ...]:
    return tuple(
        Comment(id=n, author="a", created_at=NOW, body="x" * size) for n, size in enumerate(sizes)
    )


def test_the_first_of_the_newest_comments_counts_the_missing_ones() -> None:
    result = shorten_thread(thread(*[10] * 20), 80)
    assert [(c.id, c.skipped) for c in result] == [
        (0, 0), (1, 0), (14, 12), (15, 0), (16, 0), (17, 0), (18, 0), (19, 0),
    ]  # fmt: skip


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(0, 400), st.integers(0, 400))
def test_any_conversation_fits_and_all_comments_are_counted(
    sizes: list[int], room: int, less: int
) -> None:
    result = shorten_thread(thread(*sizes), room)
    assert sum(len(c.body) for c in result) <= room or len(result) == len(sizes)
    if result and result[-1].id == len(sizes) - 1:
        assert len(result) + sum(c.skipped for c in result) == len(sizes)
        again = shorten_thread(result, min(room, less))
        if again and again[-1].id == len(sizes) - 1:
            assert len(again) + sum(c.skipped for c in again) == len(sizes)
