"""Tests of modules that are imported on first use, and of the garbage collector's pause."""

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from resolver.config.startup import paused_collection

CODE = """
import sys
from resolver.config.startup import import_lazy_modules, lazy_module

colors, tabnanny = lazy_module("colorsys"), lazy_module("tabnanny")
print("colorsys" in sys.modules, "tabnanny" in sys.modules)
print(colors.rgb_to_hsv(0, 0, 0), "colorsys" in sys.modules, "tabnanny" in sys.modules)
import_lazy_modules()
print("tabnanny" in sys.modules, hasattr(tabnanny, "nothing"))
missing = lazy_module("no_such_module")
try:
    missing.anything
except ModuleNotFoundError as error:
    print(error.name)
"""


def test_a_module_is_imported_when_it_is_used_or_when_all_are() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "False False",
        "(0.0, 0.0, 0) True False",
        "True False",
        "no_such_module",
    ], done.stderr


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
