"""Renders results.json as a page: an overview, then a table for each benchmark."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.benchmarks import BENCHMARKS, Benchmark


def results_page(results: Mapping[str, Any], benchmarks: Sequence[Benchmark] = BENCHMARKS) -> str:
    """Return the page in Markdown. Each benchmark has a heading, also one that was not measured."""
    settings = "small settings (`--quick`)" if results["quick"] else "full settings"
    measured = results["benchmarks"]
    conditions = _distinct(result["conditions"] for result in measured.values())
    lines = [
        "# Results of the benchmarks",
        "",
        f"Written by `make bench`, with {settings}. [README.md](README.md) explains what is "
        "measured and how. A benchmark was measured under the conditions with its number:",
        "",
        *(f"{number}. {_in_words(its)}" for number, its in enumerate(conditions, 1)),
        "",
        "The load is the average of the last minute when the benchmark began. With a load above "
        "the number of cores, ratios and counts say more than times.",
        "",
        "| benchmark | what | conditions | load | figures | goals reached |",
        "|---|---|--:|--:|--:|---|",
        *(
            _overview(benchmark, measured.get(benchmark.name), conditions)
            for benchmark in benchmarks
        ),
    ]
    for benchmark in benchmarks:
        lines += ["", f"## {benchmark.name}", "", f"{benchmark.title}.", ""]
        lines += _section(measured.get(benchmark.name))
    return "\n".join(lines) + "\n"


def _distinct(items: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the items without repetitions, in order of their date."""
    distinct: list[Mapping[str, Any]] = []
    for item in items:
        if item not in distinct:
            distinct.append(item)
    return sorted(distinct, key=lambda item: str(item["date"]))


def _in_words(conditions: Mapping[str, Any]) -> str:
    machine = conditions["machine"]
    packages = ", ".join(f"{name} {number}" for name, number in conditions["packages"].items())
    return (
        f"{conditions['date']}: Resolver {conditions['resolver']}; {machine['processor']}, "
        f"{machine['cores']} cores, {machine['memory_gb']} GB, Linux {machine['kernel']}; "
        f"Python {machine['python']}, {packages}"
    )


def _overview(
    benchmark: Benchmark,
    result: Mapping[str, Any] | None,
    conditions: Sequence[Mapping[str, Any]],
) -> str:
    start = f"| [{benchmark.name}](#{benchmark.name}) | {benchmark.title}"
    if result is None or "failure" in result:
        return f"{start} | | | not measured | |"
    rows = result["figures"].values()
    goals = [row["median"] <= row["goal"] for row in rows if "goal" in row]
    reached = f"{sum(goals)} of {len(goals)}" if goals else ""
    number = conditions.index(result["conditions"]) + 1
    return f"{start} | {number} | {result['load']} | {len(rows)} | {reached} |"


def _section(result: Mapping[str, Any] | None) -> list[str]:
    if result is None:
        return ["Not measured."]
    if "failure" in result:
        return [f"Not measured: {result['failure'].splitlines()[-1]}"]
    figures = result["figures"]
    columns = ["what", "median", "least to most"]
    has_peers = any(row["peers"] for row in figures.values())
    has_goals = any("goal" in row for row in figures.values())
    if has_peers:
        columns += ["peer", "peer's median", "ours / peer"]
    if has_goals:
        columns += ["goal"]
    numbers = {"median", "peer's median", "ours / peer"}
    lines = [
        f"| {' | '.join(columns)} |",
        f"|{'|'.join('--:' if column in numbers else '---' for column in columns)}|",
    ]
    for figure, row in figures.items():
        for peer in _peer_cells(row) if has_peers else ([],):
            cells = [figure, _number(row["median"]), _spread(row), *peer]
            lines.append(f"| {' | '.join(cells + ([_goal(row)] if has_goals else []))} |")
    return lines


def _peer_cells(row: Mapping[str, Any]) -> list[list[str]]:
    """Return the three cells of each peer of a figure."""
    return [
        [peer, _number(its["median"]), "" if its["ratio"] is None else _number(its["ratio"])]
        for peer, its in row["peers"].items()
    ] or [["", "", ""]]


def _spread(row: Mapping[str, Any]) -> str:
    return "" if row["rounds"] == 1 else f"{_number(row['least'])} to {_number(row['most'])}"


def _goal(row: Mapping[str, Any]) -> str:
    if "goal" not in row:
        return ""
    reached = "reached" if row["median"] <= row["goal"] else "missed"
    return f"at most {_number(row['goal'])}: {reached}"


def _number(value: float) -> str:
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 0.1 else f"{value:.3g}"
