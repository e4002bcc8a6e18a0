"""What recorded runs of mini-swe-agent have cost: the table in docs/explanation/cost.md.

    python bench/recorded_cost.py FOLDER

FOLDER has the recordings (`*.traj.json`) of gruckion/mini-swe-agent. They hold each reply of the
model with its tokens, its time, and its cost as the provider charged it. They don't say whether a
task was solved: that is in SOLVED. The table has the least value, the quartiles and the largest of
the solved and of the other runs.
"""

import json
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

SOLVED = frozenset(
    {
        "django__django-11206",
        "django__django-11292",
        "django__django-12419",
        "django__django-13809",
        "django__django-13837",
        "psf__requests-1142",
        "pydata__xarray-4094",
        "pytest-dev__pytest-5262",
        "pytest-dev__pytest-7236",
        "pytest-dev__pytest-7982",
        "scikit-learn__scikit-learn-11310",
        "scikit-learn__scikit-learn-12973",
        "sphinx-doc__sphinx-10673",
        "sphinx-doc__sphinx-9320",
        "sympy__sympy-13091",
        "sympy__sympy-13551",
        "sympy__sympy-14531",
    }
)
"""The tasks whose hidden tests pass with the recorded change."""


@dataclass(frozen=True)
class RecordedRun:
    """The consumption of a run. Tokens are in thousands, the cost is in US dollars.

    cached: the part of `sent` that the provider had in its cache. seconds: from the first to the
    last reply.
    """

    task: str
    replies: int
    sent: float
    cached: float
    received: float
    cost: float
    seconds: int


ROWS: tuple[tuple[str, Callable[[RecordedRun], float], str], ...] = (
    ("Replies", lambda run: run.replies, ".0f"),
    ("Input tokens, thousands", lambda run: run.sent, ",.0f"),
    ("of these from the cache, thousands", lambda run: run.cached, ",.0f"),
    ("Output tokens, thousands", lambda run: run.received, ".1f"),
    ("US dollars", lambda run: run.cost, ".2f"),
    ("Seconds, first to last reply", lambda run: run.seconds, ".0f"),
)


def read_run(file: Path) -> RecordedRun:
    """Return what the run in a recording used."""
    recording = json.loads(file.read_text())
    replies = [
        message["extra"]["response"]
        for message in recording["messages"]
        if message["role"] == "assistant" and message.get("extra")
    ]
    usages = [reply["usage"] for reply in replies]
    return RecordedRun(
        task=recording["instance_id"],
        replies=len(replies),
        sent=sum(usage["prompt_tokens"] for usage in usages) / 1000,
        cached=sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages) / 1000,
        received=sum(usage["completion_tokens"] for usage in usages) / 1000,
        cost=recording["info"]["model_stats"]["instance_cost"],
        seconds=replies[-1]["created"] - replies[0]["created"],
    )


def quartiles(values: Sequence[float]) -> list[float]:
    """Return the least value, the three quartiles and the largest."""
    return [min(values), *statistics.quantiles(values, n=4, method="inclusive"), max(values)]


def rows_of(title: str, runs: Sequence[RecordedRun]) -> Iterable[str]:
    """Yield the lines of the table for some of the runs."""
    yield f"| **{title} ({len(runs)})** | | | | | |"
    for label, value_of, form in ROWS:
        cells = (f"{value:{form}}" for value in quartiles([value_of(run) for run in runs]))
        yield f"| {label} | {' | '.join(cells)} |"


def cost_table(runs: Sequence[RecordedRun]) -> str:
    """Return the table, and the cost for each solved task."""
    solved = [run for run in runs if run.task in SOLVED]
    others = [run for run in runs if run.task not in SOLVED]
    total = sum(run.cost for run in runs)
    lines = [
        "| | Least | First quarter | Median | Third quarter | Most |",
        "|---|--:|--:|--:|--:|--:|",
        *rows_of("Solved", solved),
        *rows_of("Not solved", others),
        "",
        f"All {len(runs)} runs cost {total:.2f} dollars, which is "
        f"**{total / len(solved):.2f} dollars for each solved task**",
    ]
    return "\n".join(lines)


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit("usage: python bench/recorded_cost.py FOLDER")
    files = sorted(Path(sys.argv[1]).glob("*.traj.json"))
    if len(files) < 2:
        raise SystemExit(f"{sys.argv[1]} has no recordings (*.traj.json)")
    print(cost_table([read_run(file) for file in files]))


if __name__ == "__main__":
    main()
