"""Measures what it costs to report which files an action has changed.

    python bench/changed_paths.py [FILES]

It makes a repository with FILES files (5,000) in a temporary folder, and times the report after an
action that changed nothing, and after one that changed one file. For comparison it times a pass
over all files.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from resolver.sandbox.changed_paths import TreeComparison

REPEATS = 50


def git(args: Sequence[str], variables: Mapping[str, str]) -> bytes:
    """Run git and return its output."""
    environment = {**os.environ, **variables}
    return subprocess.run(["git", *args], env=environment, check=False, capture_output=True).stdout


def make_repository(root: Path, files: int) -> None:
    """Make a repository with this many small files, ten in a folder."""
    for number in range(files):
        folder = root / f"package_{number // 100}" / f"module_{number // 10}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file_{number}.py").write_text(f"value = {number}\n" * 20)
    for args in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", "-C", str(root), *args], check=True)


def measure(name: str, timed: Callable[[], object], before: Callable[[int], object]) -> None:
    """Print the least and the median time of a function, in milliseconds."""
    times = []
    for number in range(REPEATS):
        before(number)
        started = time.perf_counter()
        timed()
        times.append((time.perf_counter() - started) * 1000)
    print(f"| {name} | {min(times):.3f} | {statistics.median(times):.3f} |")


def main() -> None:
    """Make the repository and measure."""
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        root.mkdir()
        make_repository(root, files)
        index = shutil.copy2(root / ".git" / "index", folder)
        variables = {
            "GIT_DIR": str(root / ".git"),
            "GIT_WORK_TREE": str(root),
            "GIT_INDEX_FILE": str(index),
        }
        started = time.perf_counter()
        comparison = TreeComparison(str(root), lambda args: git(args, variables))
        print(f"start, ms: {(time.perf_counter() - started) * 1000:.2f}")
        print("| what | least ms | median ms |\n|---|--:|--:|")
        target = root / "package_0" / "module_0" / "file_0.py"
        measure("nothing changed", comparison.take, lambda _: None)
        measure("one file changed", comparison.take, lambda n: target.write_text(str(n)))
        measure("git diff-files", lambda: git(["diff-files"], variables), lambda _: None)
        paths = [str(path) for path in root.rglob("*.py")]
        measure("lstat of all files", lambda: list(map(os.lstat, paths)), lambda _: None)
        comparison.close()


if __name__ == "__main__":
    main()
