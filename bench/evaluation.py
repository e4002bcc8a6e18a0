"""Measures `resolver eval run` on many small tasks with scripted replies: time and memory for each
task, and what is left afterwards.

usage: PYTHONPATH=. bench/evaluation.py [--tasks 200] [--parallel 2] [--runtime local]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from resolver.evaluation.results import read_evaluation
from tests.parts.evaluation_tasks import write_suite


def memory_of(process: int) -> int:
    """Return the resident memory of a process in MB, 0 if it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS")), 0)


def leftovers(folder: Path) -> dict[str, list[str]]:
    """Return what runs may leave: containers, volumes, temporary folders, processes."""
    engine = {
        "containers": ["docker", "ps", "-aq", "--filter", "label=resolver.run"],
        "volumes": ["docker", "volume", "ls", "-q", "--filter", "label=resolver.run"],
    }
    found = {
        name: subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
        for name, command in engine.items()
    }
    found["temporary folders"] = sorted(path.name for path in (folder / "tmp").iterdir())
    processes = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if str(folder).encode() in path.read_bytes() and path.parent.name != str(os.getpid()):
                processes.append(path.parent.name)
        except OSError:
            continue
    return {**found, "processes": processes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--runtime", default="local")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_suite(folder / "suite", options.tasks)
        (folder / "tmp").mkdir()
        before = leftovers(folder)
        command = [
            str(Path(sys.executable).with_name("resolver")), "eval", "run", str(folder / "suite"),
            "--model", "oracle", "--output", str(folder / "results"),
            "--parallel", str(options.parallel), "--runtime", options.runtime,
        ]  # fmt: skip
        environment = {
            "HOME": str(folder / "home"),
            "PATH": os.environ["PATH"],
            "TMPDIR": str(folder / "tmp"),
        }
        started, memory = time.monotonic(), list[tuple[int, int]]()
        with open(folder / "log", "w") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            while process.poll() is None:
                time.sleep(1)
                done = len(list((folder / "results").glob("oracle/*/result.json")))
                memory.append((done, memory_of(process.pid)))
        elapsed = time.monotonic() - started
        results = read_evaluation(folder / "results").results
        after = leftovers(folder)
        used = os.times()
        print(f"exit code: {process.returncode}")
        print(f"resolved: {sum(result.resolved for result in results)} of {len(results)}")
        print(f"time for each task, s: {elapsed / options.tasks:.2f} ({elapsed:.0f} in all)")
        print(
            "processor time for each task, s: "
            f"{(used.children_user + used.children_system) / options.tasks:.2f}"
        )
        for share in (0.1, 0.5, 0.9):
            reached = [mb for done, mb in memory if done >= share * options.tasks and mb]
            if reached:
                print(f"memory after {share:.0%} of the tasks, MB: {reached[0]}")
        for kind, names in after.items():
            print(f"left {kind}: {len(set(names) - set(before[kind]))}")


if __name__ == "__main__":
    main()
