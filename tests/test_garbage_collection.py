"""Tests of the pause of the garbage collector during imports."""

import gc
from collections.abc import Iterator

import pytest

from resolver.config.garbage_collection import paused_collection


@pytest.fixture(autouse=True)
def enabled_collection() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()
    gc.unfreeze()
    gc.freeze()  # as tests/conftest.py leaves it


def collections() -> int:
    return sum(generation["collections"] for generation in gc.get_stats())


def test_nothing_is_collected_in_the_block_and_what_it_made_is_exempt_afterwards() -> None:
    enough = 2 * gc.get_threshold()[0] + 2
    before = collections()
    with paused_collection():
        made = [[] for _ in range(enough)]  # type: ignore[var-annotated]
        assert collections() == before
    assert gc.isenabled()
    assert gc.get_freeze_count() >= len(made)
    more = [[] for _ in range(enough)]  # type: ignore[var-annotated]
    assert collections() > before, len(more)


def test_the_outermost_block_ends_the_pause() -> None:
    with paused_collection():
        with paused_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_ends_the_pause() -> None:
    with pytest.raises(ImportError), paused_collection():
        raise ImportError("no such module")
    assert gc.isenabled()


def test_a_collector_that_was_disabled_stays_so() -> None:
    gc.disable()
    with paused_collection():
        pass
    assert not gc.isenabled()
