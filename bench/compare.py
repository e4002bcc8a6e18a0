"""Compares two files of results and fails if a figure is worse than the spread explains.

    python bench/compare.py BASELINE.json NEW.json

A figure is a regression if its best value is worse than the worst value of the baseline, and its
median by more than 10% (or, for figures of one round, by more than 50%). Times and memory are
compared only between machines of the same kind; ratios to peers, counts and bytes always.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

TOLERANCE = 0.10
TOLERANCE_OF_ONE_ROUND = 0.50
SAME_KIND = ("processor", "cores")


def regressions(baseline: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each figure that has become worse."""
    if baseline["quick"] != new["quick"]:
        raise SystemExit("one of the files was measured with --quick and the other was not")
    for name, result in new["benchmarks"].items():
        if "failure" in result:
            yield f"{name} failed: {result['failure'].splitlines()[-1]}"
        elif name in baseline["benchmarks"]:
            yield from _of_benchmark(name, baseline["benchmarks"][name], result)


def _of_benchmark(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    machine_before, machine_now = (its["conditions"]["machine"] for its in (before, now))
    same_machine = all(machine_before[key] == machine_now[key] for key in SAME_KIND)
    earlier = before["figures"]
    for figure, row in now["figures"].items():
        if figure in earlier:
            yield from _of_figure(f"{name}, {figure}", earlier[figure], row, same_machine)
    for figure in earlier.keys() - now["figures"].keys():
        yield f"{name}, {figure} was not measured"


def _of_figure(
    label: str, before: Mapping[str, Any], now: Mapping[str, Any], same_machine: bool
) -> Iterator[str]:
    if (same_machine or now["exact"]) and is_worse(before, now):
        yield f"{label}: {before['median']:g} before, {now['median']:g} now"
    tolerance = _tolerance(before, now)
    for peer, its in now["peers"].items():
        ratio, ratio_before = its["ratio"], before["peers"].get(peer, {}).get("ratio")
        if ratio is None or ratio_before is None or same_machine:
            continue
        # Without the values of single rounds, the spread of our own figure stands for both.
        spread = 1 + (before["most"] - before["least"]) / (before["median"] or 1)
        if ratio > ratio_before * spread * (1 + tolerance):
            yield f"{label}: {ratio_before:.2f} of {peer} before, {ratio:.2f} now"


def is_worse(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Return True if the figure is worse by more than the spread and the tolerance."""
    tolerance = _tolerance(before, now)
    if now["higher"]:
        return bool(
            now["most"] < before["least"] and now["median"] < before["median"] * (1 - tolerance)
        )
    return bool(
        now["least"] > before["most"] and now["median"] > before["median"] * (1 + tolerance)
    )


def _tolerance(before: Mapping[str, Any], now: Mapping[str, Any]) -> float:
    if now["exact"]:
        return TOLERANCE
    return TOLERANCE if min(before["rounds"], now["rounds"]) > 1 else TOLERANCE_OF_ONE_ROUND


def main() -> int:
    baseline, new = (json.loads(Path(name).read_text()) for name in sys.argv[1:3])
    found = list(regressions(baseline, new))
    for line in found:
        print(line)
    versions = {its["conditions"]["resolver"] for its in baseline["benchmarks"].values()}
    print(f"{len(found)} regressions since Resolver {', '.join(sorted(versions))}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
