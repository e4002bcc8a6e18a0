"""Runs the benchmarks one after the other and writes RESULTS.md and results.json.

    python bench/run_all.py [--quick] [--only events,steps] [--no-peers] [--output FOLDER]

Each benchmark of benchmarks.py runs several times, each time in a new process; a figure is the
median of its values, with the least and the largest. --quick takes small settings and few minutes.
With --only, the other benchmarks of the existing file are kept, unless their settings were others.
Each benchmark keeps the conditions under which it was measured: date, code, machine, packages.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.benchmarks import BENCHMARKS, Benchmark
from bench.figures import read_figures
from bench.peers.environments import peer_python
from bench.results_page import results_page
from resolver.config.version import PACKAGE, version_text

ROOT = Path(__file__).parents[1]
PEERS = ("openhands", "mini", "rex", "playwright")
PACKAGES = ("litellm", "httpx", "pydantic", "fastapi", "docker")
LIMIT_SECONDS = 3600


def arguments_of(benchmark: Benchmark, quick: bool, pythons: Mapping[str, str]) -> list[str]:
    """Return the arguments of the script, without those of peers that are not installed."""
    arguments: list[str] = []
    for argument in benchmark.quick if quick else benchmark.full:
        missing = [name for name in PEERS if f"{{{name}}}" in argument and not pythons.get(name)]
        if missing:
            arguments.pop()  # the option
            continue
        for name, python in pythons.items():
            argument = argument.replace(f"{{{name}}}", python)
        arguments.append(argument)
    return arguments


def peers_of(benchmarks: Sequence[Benchmark], quick: bool) -> list[str]:
    """Return the peers whose environments the benchmarks need; each takes minutes to install."""
    used = " ".join(
        " ".join(benchmark.quick if quick else benchmark.full) for benchmark in benchmarks
    )
    return [name for name in PEERS if f"{{{name}}}" in used]


def run_once(benchmark: Benchmark, arguments: Sequence[str]) -> dict[str, float]:
    """Return the figures of one run. Raises RuntimeError if it fails."""
    command = [sys.executable, f"bench/{benchmark.file}", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
            timeout=LIMIT_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"took more than {LIMIT_SECONDS} s") from error
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or done.stdout.strip())[-2000:])
    figures = read_figures(done.stdout, benchmark.keys)
    if not figures:
        raise RuntimeError(f"printed no figures: {done.stdout[-500:]}")
    return figures


def summarize(benchmark: Benchmark, rounds: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Return each figure of the benchmark with its values, goal, and the peers' medians."""
    values: dict[str, list[float]] = {}
    for figures in rounds:
        for name, value in figures.items():
            values.setdefault(name, []).append(value)
    theirs = {p: pair for pair in benchmark.pairs for p in values if pair.theirs in p}
    summary: dict[str, Any] = {}
    for name, measured in values.items():
        if name in theirs:
            continue
        median = statistics.median(measured)
        row: dict[str, Any] = {
            "median": median,
            "least": min(measured),
            "most": max(measured),
            "rounds": len(measured),
            "exact": name.endswith(benchmark.exact),
            "higher": name.endswith(benchmark.higher),
            "peers": {},
        }
        if name in benchmark.goals:
            row["goal"] = benchmark.goals[name]
        for pair in benchmark.pairs:
            peer_values = values.get(name.replace(pair.ours, pair.theirs))
            if pair.ours in name and peer_values:
                peer_median = statistics.median(peer_values)
                ratio = median / peer_median if peer_median else None
                row["peers"][pair.peer] = {"median": peer_median, "ratio": ratio}
        summary[name] = row
    return summary


def require_pairs(benchmark: Benchmark, figures: Collection[str]) -> None:
    """Raise RuntimeError if a pair names no figure: its comparison would be missing unnoticed."""
    unmatched = [
        pair.ours for pair in benchmark.pairs if not any(pair.ours in name for name in figures)
    ]
    if unmatched:
        raise RuntimeError(f"no figure has {', '.join(map(repr, unmatched))} in its name")


def measure(benchmark: Benchmark, quick: bool, pythons: Mapping[str, str]) -> dict[str, Any]:
    """Return the figures of a benchmark with its times, or why there are none."""
    arguments = arguments_of(benchmark, quick, pythons)
    count = benchmark.quick_rounds if quick else benchmark.rounds
    begun, load = time.monotonic(), os.getloadavg()[0]
    result: dict[str, Any] = {"title": benchmark.title, "load": round(load, 1)}
    try:
        rounds = [run_once(benchmark, arguments) for _ in range(count)]
        if rounds:
            require_pairs(benchmark, rounds[0])
        result["figures"] = summarize(benchmark, rounds)
    except RuntimeError as error:
        result |= {"figures": {}, "failure": str(error)}
    result["seconds"] = round(time.monotonic() - begun, 1)
    return result


def machine() -> dict[str, Any]:
    """Return what the figures depend on besides the code."""
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 1e9),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def measured_version() -> str:
    """Return the version with its commit, as changed only if more than the results is."""
    command = ["git", "status", "--porcelain", "--untracked-files=no", "--", "."]
    results = [f":!bench/{name}" for name in ("RESULTS.md", "results.json")]
    done = subprocess.run([*command, *results], cwd=ROOT, capture_output=True, check=True)
    version = version_text(PACKAGE)
    return version if done.stdout else version.replace("-dirty", "")


def measuring_conditions() -> dict[str, Any]:
    """Return what the figures depend on besides the settings."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "resolver": measured_version(),
        "machine": machine(),
        "packages": {package: version(package) for package in PACKAGES},
    }


def earlier_results(file: Path, quick: bool) -> dict[str, Any]:
    """Return the benchmarks in a file that was written with the same settings."""
    if not file.exists():
        return {}
    earlier: dict[str, Any] = json.loads(file.read_text())
    benchmarks: dict[str, Any] = earlier["benchmarks"] if earlier["quick"] == quick else {}
    return benchmarks


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="names of benchmarks, separated by commas")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    names = set(filter(None, options.only.split(",")))
    if unknown := names - {benchmark.name for benchmark in BENCHMARKS}:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    conditions = measuring_conditions()
    options.output.mkdir(parents=True, exist_ok=True)
    file = options.output / "results.json"
    known = earlier_results(file, options.quick) if names else {}
    chosen = [benchmark for benchmark in BENCHMARKS if not names or benchmark.name in names]
    peers = [] if options.no_peers else peers_of(chosen, options.quick)
    pythons = {name: peer_python(name) for name in peers}
    for benchmark in chosen:
        if options.quick and not benchmark.quick_rounds:
            continue
        result = measure(benchmark, options.quick, pythons)
        known[benchmark.name] = {**result, "conditions": conditions}
        outcome = result.get("failure") or f"{len(result['figures'])} figures"
        print(f"{benchmark.name}: {result['seconds']} s, {outcome.splitlines()[-1]}", flush=True)
        # After each, so that what is measured is kept if a later one is interrupted.
        in_order = [benchmark.name for benchmark in BENCHMARKS if benchmark.name in known]
        results = {"quick": options.quick, "benchmarks": {name: known[name] for name in in_order}}
        file.write_text(json.dumps(results, indent=1) + "\n")
        (options.output / "RESULTS.md").write_text(results_page(results))
    return 1 if any("failure" in known.get(benchmark.name, {}) for benchmark in chosen) else 0


if __name__ == "__main__":
    sys.exit(main())
