"""Tests of the agent's queries to the index and their answers."""

import subprocess
import sys
import threading
from pathlib import Path

from resolver.code_index.index import (
    MAX_ANSWER_CHARACTERS,
    IndexBounds,
    ProcessorTimeLimit,
    index_action_handlers,
)
from resolver.code_index.worker import processor_time_past
from resolver.events import actions as a
from resolver.events.observations import CodeResult, ErrorObservation
from tests.code_index.scenario import REPOSITORIES, index_of


def test_a_search_is_answered_with_definitions_code_and_passages(tmp_path: Path) -> None:
    with index_of(tmp_path, REPOSITORIES["python"]) as index:
        search = index_action_handlers(index)[a.CodeSearch]
        result = search(a.CodeSearch(terms=("total", "src/shop/price.py::total", "nowhere_at_all")))
    assert isinstance(result, CodeResult)
    assert result.commit == index.commit
    assert result.content.startswith(
        "## total\n- function src/shop/price.py::total [1-2]  def total(x):\n"
        "Passages with its words:\n"
    )
    assert "\n     1  def total(x):\n     2      return x\n" in result.content
    assert "Nothing has this name, and its words occur nowhere." in result.content
    assert f"[index of commit {index.commit[:12]}, from which" in result.content
    assert "\n\n\n" not in result.content


def test_a_walk_is_answered_as_a_tree(tmp_path: Path) -> None:
    with index_of(tmp_path, REPOSITORIES["python"]) as index:
        explore = index_action_handlers(index)[a.CodeExplore]
        result = explore(a.CodeExplore(start=("Cart.pay", "gone"), edges=("calls",)))
    pay = "method src/shop/cart.py::Cart.pay [5-6]"
    assert result.content.startswith(
        f"{pay}, upstream: nothing\n\n{pay}, downstream\n"
        "  -> calls method src/shop/cart.py::Cart.check [8-9]\n"
        "  -> calls function src/shop/price.py::total [1-2]\n\nThe index has no gone."
    )


def test_lines_after_the_end_of_a_file_are_reported_as_missing(tmp_path: Path) -> None:
    with index_of(tmp_path, {"a.py": "x = 1\n"}) as index:
        search = index_action_handlers(index)[a.CodeSearch]
        result = search(a.CodeSearch(terms=("a.py:900", "a.py:1")))
    assert result.content.startswith("## a.py:900\na.py has no such lines.\n\n## a.py:1\na.py:\n")


def test_names_that_are_not_in_the_index_are_reported(tmp_path: Path) -> None:
    files = {"big.py": "x = 1\n" * 100, "a.py": "y = 1\n"}
    with index_of(tmp_path, files, IndexBounds(file_bytes=50)) as index:
        result = index_action_handlers(index)[a.CodeSearch](a.CodeSearch(terms=("y",)))
    assert isinstance(result, CodeResult)
    assert result.left_out == 1
    assert "; 1 source file is not, or only partly, in it" in result.content


def test_an_index_that_fails_is_an_observation(tmp_path: Path) -> None:
    with index_of(
        tmp_path, {"a.py": "x = 1\n"}, IndexBounds(seconds=0.0, end_seconds=0.0)
    ) as index:
        result = [
            index_action_handlers(index)[a.CodeSearch](a.CodeSearch(terms=("y",))) for _ in range(3)
        ]
    assert all(isinstance(observation, ErrorObservation) for observation in result)
    assert "time or memory" in result[0].content
    assert "not tried again" in result[2].content


def test_an_answer_is_bounded(tmp_path: Path) -> None:
    wide = "def f():\n" + "".join(f"    x{n} = {'y' * 300!r}\n" for n in range(300))
    with index_of(tmp_path, {f"m{n}.py": wide for n in range(8)}) as index:
        terms = tuple(f"m{n}.py::f" for n in range(8))
        result = index_action_handlers(index)[a.CodeSearch](a.CodeSearch(terms=terms))
    assert MAX_ANSWER_CHARACTERS / 2 < len(result.content) < MAX_ANSWER_CHARACTERS + 1_000
    assert result.content.endswith("later edits are not in it]")


def test_time_without_the_processor_does_not_count() -> None:
    """Neither for a file that is parsed nor for the index as a whole."""
    is_late = processor_time_past(0.2)
    subprocess.run([sys.executable, "-c", "import time; time.sleep(0.5)"], check=True)
    assert not is_late()
    ended = threading.Event()
    used = iter([5.0, 5.0, 5.05, 5.2])
    with ProcessorTimeLimit(0.1, lambda: next(used), 1e6, ended.set) as time_left:
        assert ended.wait(60), "it looks until the time is used"
    assert not time_left() and next(used, None) is None


def test_a_process_that_never_runs_is_abandoned() -> None:
    ended = threading.Event()
    with ProcessorTimeLimit(0.01, lambda: 0.0, 2.0, ended.set):
        assert ended.wait(60)
