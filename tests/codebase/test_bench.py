"""Tests of the benchmarks' runner: figures are read, compared and shown."""

from typing import Any

import pytest

from bench.benchmarks import BENCHMARKS, Benchmark, Pair
from bench.compare import regressions
from bench.figures import read_figures
from bench.results_page import results_page
from bench.run_all import ROOT, arguments_of, summarize

TABLE = """\
| events | what | ours | openhands-sdk | ours / theirs |
|--:|---|--:|--:|--:|
| 1,000 | open, ms | 31.23 | 125.30 | 0.25 |
"""


def test_figures_are_read_from_tables_json_and_labels() -> None:
    text = f'{TABLE}\nresolved: 6 of 6\n{{"server": "a", "p50_ms": 3.5, "answers": {{"1": 2}}}}\n'
    assert read_figures(text, ("what", "server")) == {
        "1,000 events, open, ms: ours": 31.23,
        "1,000 events, open, ms: openhands-sdk": 125.3,
        "1,000 events, open, ms: ours / theirs": 0.25,
        "resolved": 6.0,
        "a: p50_ms": 3.5,
    }


def test_every_benchmark_has_a_script_and_its_own_name() -> None:
    assert len({benchmark.name for benchmark in BENCHMARKS}) == len(BENCHMARKS)
    assert [b.file for b in BENCHMARKS if not (ROOT / "bench" / b.file).is_file()] == []


def test_the_arguments_of_a_missing_peer_are_left_out() -> None:
    benchmark = Benchmark("x", "X", full=("--size", "1", "--peer", "{openhands}", "--last"))
    assert arguments_of(benchmark, False, {}) == ["--size", "1", "--last"]
    pythons = {"openhands": "/bin/python"}
    assert arguments_of(benchmark, False, pythons)[3] == "/bin/python"


def results(*rounds: dict[str, float], processor: str = "P", **more: Any) -> dict[str, Any]:
    benchmark = Benchmark(
        "x", "X", pairs=(Pair("them", ": ours", ": theirs"),), exact=("requests",), goals={"b": 3.0}
    )
    machine = {"processor": processor, "cores": 2, "memory_gb": 1, "kernel": "6", "python": "3.11"}
    measured = {"title": "X", "load": 0.1, "figures": summarize(benchmark, rounds), **more}
    return {
        "date": "2026-01-02",
        "resolver": "1",
        "quick": True,
        "machine": machine,
        "packages": {"httpx": "1"},
        "benchmarks": {"x": measured},
    }


@pytest.mark.parametrize(
    ("before", "now", "processor", "found"),
    [
        pytest.param([1.0, 1.2], [1.15, 1.3], "P", 0, id="within the spread"),
        pytest.param([1.0, 1.2], [1.4, 1.5], "P", 1, id="beyond the spread"),
        pytest.param([1.0, 1.01], [1.02, 1.03], "P", 0, id="below the tolerance"),
        pytest.param([1.0, 1.2], [1.4, 1.5], "Q", 0, id="another machine"),
        pytest.param([1.0], [1.4], "P", 0, id="one round"),
        pytest.param([1.0], [1.6], "P", 1, id="one round, far beyond"),
    ],
)
def test_a_regression_is_worse_than_the_spread(
    before: list[float], now: list[float], processor: str, found: int
) -> None:
    old = results(*({"a": value} for value in before))
    new = results(*({"a": value} for value in now), processor=processor)
    assert len(list(regressions(old, new))) == found


def test_counts_and_ratios_are_compared_between_machines() -> None:
    old = results({"requests": 20.0, "m: ours": 1.0, "m: theirs": 2.0})
    new = results({"requests": 30.0, "m: ours": 3.0, "m: theirs": 2.0}, processor="Q")
    assert list(regressions(old, new)) == [
        "x, requests: 20 before, 30 now",
        "x, m: ours: 0.50 of them before, 1.50 now",
    ]


def test_a_failed_benchmark_is_a_regression() -> None:
    new = results(failure="Traceback\nKeyError: 1")
    assert list(regressions(results({"a": 1.0}), new)) == ["x failed: KeyError: 1"]


def test_the_page_shows_spread_peers_and_goals() -> None:
    page = results_page(results({"m: ours": 1.0, "m: theirs": 4.0, "b": 2.0}, {"b": 4.0}))
    assert "| x | 0.1 | m: ours | 1 |  | them | 4 | 0.25 |  |" in page
    assert "| x | 0.1 | b | 3 | 2 to 4 | | | | at most 3: reached |" in page
