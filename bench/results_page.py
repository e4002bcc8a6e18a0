"""Renders results.json as a page with one table."""

from collections.abc import Mapping
from typing import Any


def results_page(results: Mapping[str, Any]) -> str:
    """Return the page in Markdown."""
    machine = results["machine"]
    packages = ", ".join(f"{name} {number}" for name, number in results["packages"].items())
    settings = "small settings (`--quick`)" if results["quick"] else "full settings"
    lines = [
        "# Results of the benchmarks",
        "",
        "Written by `make bench`. [README.md](README.md) explains what is measured and how.",
        "",
        f"- Date: {results['date']}; Resolver {results['resolver']}; {settings}",
        f"- Machine: {machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, "
        f"Linux {machine['kernel']}, Python {machine['python']}",
        f"- Versions: {packages}",
        "- Load: the average of the last minute when the benchmark began. With a load above the "
        "number of cores, ratios and counts say more than times.",
        "",
        "| benchmark | load | what | median | least to most | peer | peer's median | ours / peer "
        "| goal |",
        "|---|--:|---|--:|--:|---|--:|--:|---|",
    ]
    for name, result in results["benchmarks"].items():
        for figure, row in result["figures"].items():
            lines += _rows(name, result["load"], figure, row)
    failures = [
        f"- {name}: {result['failure'].splitlines()[-1]}"
        for name, result in results["benchmarks"].items()
        if "failure" in result
    ]
    if failures:
        lines += ["", "Not measured:", "", *failures]
    return "\n".join(lines) + "\n"


def _rows(name: str, load: float, figure: str, row: Mapping[str, Any]) -> list[str]:
    spread = "" if row["rounds"] == 1 else f"{_number(row['least'])} to {_number(row['most'])}"
    start = f"| {name} | {load} | {figure} | {_number(row['median'])} | {spread} |"
    goal = ""
    if "goal" in row:
        reached = "reached" if row["median"] <= row["goal"] else "missed"
        goal = f"at most {_number(row['goal'])}: {reached}"
    if not row["peers"]:
        return [f"{start} | | | {goal} |"]
    return [
        f"{start} {peer} | {_number(its['median'])} | "
        f"{'' if its['ratio'] is None else _number(its['ratio'])} | {goal} |"
        for peer, its in row["peers"].items()
    ]


def _number(value: float) -> str:
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 0.1 else f"{value:.3g}"
