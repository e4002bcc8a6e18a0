"""Tests of the benchmarks' runner: figures are read, compared and shown."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import run_all
from bench.benchmarks import BENCHMARKS, Benchmark, Pair
from bench.compare import regressions
from bench.figures import read_figures
from bench.recorded_cost import SOLVED, cost_table, read_run
from bench.results_page import results_page
from bench.run_all import ROOT, arguments_of, peers_of, require_pairs, summarize

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


def test_only_the_peers_of_the_chosen_benchmarks_are_installed() -> None:
    alone = Benchmark("x", "X", full=("--size", "1"))
    compared = Benchmark("y", "Y", full=("--peer-python", "mini={mini}"), quick=("--size", "1"))
    assert peers_of([alone, compared], quick=False) == ["mini"]
    assert peers_of([alone, compared], quick=True) == []


def test_a_benchmark_that_is_measured_alone_keeps_the_figures_of_all_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def measured(benchmark: Benchmark, *_: object) -> dict[str, Any]:
        return {"seconds": 1.0, "load": 1.0, "rounds": 1, "figures": {benchmark.name: [1.0]}}

    monkeypatch.setattr(run_all, "measure", measured)
    monkeypatch.setattr(run_all, "results_page", lambda results: "")
    for names in ("risk", "events,steps", "whole_run", "steps"):
        monkeypatch.setattr(
            sys, "argv", ["run_all", "--no-peers", "--only", names, "--output", str(tmp_path)]
        )
        assert run_all.main() == 0
    kept = json.loads((tmp_path / "results.json").read_text())["benchmarks"]
    assert list(kept) == ["whole_run", "events", "steps", "risk"]
    monkeypatch.setattr(run_all, "machine", lambda: "another")
    assert run_all.main() == 0
    written = json.loads((tmp_path / "results.json").read_text())["benchmarks"]
    others = [name for name in written if written[name]["conditions"]["machine"] == "another"]
    assert list(written) == list(kept) and others == ["steps"]
    (tmp_path / "results.json").write_text(json.dumps({"quick": True, "benchmarks": written}))
    assert run_all.main() == 0
    assert list(json.loads((tmp_path / "results.json").read_text())["benchmarks"]) == ["steps"]


def test_a_pair_that_names_no_figure_is_an_error() -> None:
    benchmark = Benchmark("x", "X", pairs=(Pair("httpx", ": ours_ms", ": httpx_ms"),))
    with pytest.raises(RuntimeError, match="': ours_ms'"):
        require_pairs(benchmark, ["10 messages: resolver_ms", "10 messages: httpx_ms"])


def results(*rounds: dict[str, float], processor: str = "P", **more: Any) -> dict[str, Any]:
    benchmark = Benchmark(
        "x", "X", pairs=(Pair("them", ": ours", ": theirs"),), exact=("requests",), goals={"b": 3.0}
    )
    machine = {"processor": processor, "cores": 2, "memory_gb": 1, "kernel": "6", "python": "3.11"}
    conditions = {
        "date": "2026-01-02",
        "resolver": "1",
        "machine": machine,
        "packages": {"httpx": "1"},
    }
    measured = {"title": "X", "load": 0.1, "figures": summarize(benchmark, rounds), **more}
    return {"quick": True, "benchmarks": {"x": {**measured, "conditions": conditions}}}


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
    found = results({"m: ours": 1.0, "m: theirs": 4.0, "b": 2.0}, {"b": 4.0})
    page = results_page(found, [Benchmark("x", "X"), Benchmark("y", "Y")])
    assert "\n1. 2026-01-02: Resolver 1; P, 2 cores, 1 GB, Linux 6; Python 3.11, httpx 1\n" in page
    assert "| [x](#x) | X | 1 | 0.1 | 2 | 1 of 1 |" in page
    assert "| m: ours | 1 |  | them | 4 | 0.25 |  |" in page
    assert "| b | 3 | 2 to 4 |  |  |  | at most 3: reached |" in page
    assert "## y\n\nY.\n\nNot measured" in page


def test_the_page_tells_conditions_apart() -> None:
    found = results({"a": 1.0}, processor="P")
    found["benchmarks"]["y"] = results({"a": 1.0}, processor="Q")["benchmarks"]["x"]
    page = results_page(found, [Benchmark("x", "X"), Benchmark("y", "Y")])
    assert "\n1. 2026-01-02: Resolver 1; P," in page and "\n2. 2026-01-02: Resolver 1; Q," in page
    assert "| [x](#x) | X | 1 |" in page and "| [y](#y) | Y | 2 |" in page


def test_the_page_of_results_is_that_of_the_file() -> None:
    folder = ROOT / "bench"
    written = results_page(json.loads((folder / "results.json").read_text()))
    assert (folder / "RESULTS.md").read_text() == written


def recording(folder: Path, task: str, replies: int) -> Path:
    """Write a recording whose replies have 1,000 tokens of input each."""
    usage = {
        "prompt_tokens": 1000,
        "prompt_tokens_details": {"cached_tokens": 500},
        "completion_tokens": 100,
    }
    messages = [
        {"role": "assistant", "extra": {"response": {"usage": usage, "created": 60 * number}}}
        for number in range(replies)
    ]
    info = {"model_stats": {"instance_cost": replies / 10}}
    file = folder / f"{task}.traj.json"
    content = {"instance_id": task, "info": info, "messages": [{"role": "user"}, *messages]}
    file.write_text(json.dumps(content))
    return file


def test_the_cost_of_recorded_runs_is_their_quartiles(tmp_path: Path) -> None:
    tasks = [*sorted(SOLVED)[:3], "unsolved-1", "unsolved-2"]
    runs = [read_run(recording(tmp_path, task, n)) for n, task in enumerate(tasks, 2)]
    table = cost_table(runs)
    assert "| **Solved (3)** | | | | | |\n| Replies | 2 | 2 | 3 | 4 | 4 |" in table
    assert "| Input tokens, thousands | 5 | 5 | 6 | 6 | 6 |" in table
    assert "| US dollars | 0.20 | 0.25 | 0.30 | 0.35 | 0.40 |" in table
    assert "| Seconds, first to last reply | 60 | 90 | 120 | 150 | 180 |" in table
    assert table.endswith("cost 2.00 dollars, which is **0.67 dollars for each solved task**")
