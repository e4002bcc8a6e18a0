"""Prints the size and structure of the code, and what one issue -> pull request executes.

Run it as `.venv/bin/python -m scripts.structure`. The dynamic part runs one whole-run test in a
pytest process with this module as a plugin, which records the calls between modules, the processes
started and the API requests made while the command runs.
"""

import ast
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "resolver"
MEASURED_TEST = "tests/runs/test_github.py::test_a_mention_is_seen_at_once_and_answered"
"""Its run neither looks for comments nor edits the progress comment: how often depends on time."""

OUTPUT_VARIABLE = "STRUCTURE_OUTPUT"


def modules() -> Iterator[Path]:
    return (p for p in sorted(PACKAGE.rglob("*.py")) if "demo/repository" not in str(p))


def code_lines(text: str) -> int:
    """Lines that are neither blank, nor a comment, nor part of a docstring."""
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            skipped.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(1 for n, line in lines if line.strip()[:1] not in ("", "#") and n not in skipped)


def package_of(path: str) -> str:
    """`resolver/git/clone.py` -> `git`; a module directly in `resolver/` -> its own name."""
    return Path(path).relative_to(PACKAGE).with_suffix("").parts[0]


def _is_import(frame: FrameType) -> bool:
    """Return True for the body of a module, and for what runs directly in one."""
    caller = frame.f_back
    return "<module>" in (frame.f_code.co_name, caller.f_code.co_name if caller else "")


def _called_by_package() -> bool:
    """Return True if the package, and not the test's own servers, starts the process."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(str(ROOT / "tests")):
            return False
        if name.startswith(str(PACKAGE)):
            return True
        frame = frame.f_back
    return False


class ProcessRecorder:
    """Records the programs that the package starts between `start` and `stop`."""

    def __init__(self) -> None:
        self.processes: list[str] = []
        self._active = False
        sys.addaudithook(self._audit)  # it can't be removed

    def start(self) -> None:
        self._active = True

    def stop(self) -> None:
        self._active = False

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._active and event == "subprocess.Popen" and _called_by_package():
            self.processes.append(Path(os.fsdecode(arguments[1][0])).name)


class Probe(ProcessRecorder):
    """Records what one process executes of the package between `start` and `stop`."""

    def __init__(self) -> None:
        super().__init__()
        self.modules: set[str] = set()
        self.jumps: set[tuple[str, str]] = set()

    def start(self) -> None:
        super().start()
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def stop(self) -> None:
        sys.setprofile(None)
        threading.setprofile(None)
        super().stop()

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or _is_import(frame):
            return
        callee = frame.f_code.co_filename
        if not callee.startswith(str(PACKAGE)):
            return
        self.modules.add(callee)
        caller = frame.f_back.f_code.co_filename if frame.f_back else ""
        if caller.startswith(str(PACKAGE)) and package_of(caller) != package_of(callee):
            self.jumps.add((caller, callee))


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Records the measured test; does nothing in any other pytest process."""
    output = os.environ.get(OUTPUT_VARIABLE)
    if output is None:
        yield
        return
    probe = Probe()
    probe.start()
    yield
    probe.stop()
    github: Any = pyfuncitem.funcargs["github"]
    measured = {
        "modules": len(probe.modules),
        "jumps": len(probe.jumps),
        "processes": Counter(probe.processes),
        "requests": Counter(request.kind for request in github.requests),
    }
    Path(output).write_text(json.dumps(measured))


def measure_run() -> dict[str, Any]:
    """Run the measured test in a process of its own and return what it recorded."""
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "measured.json"
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "scripts.structure", MEASURED_TEST],
            env={**os.environ, OUTPUT_VARIABLE: str(output)},
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        measured: dict[str, Any] = json.loads(output.read_text())
    return measured


def main() -> None:
    lines: Counter[str] = Counter()
    count: Counter[str] = Counter()
    small = loose = 0
    for path in modules():
        text = path.read_text()
        lines[package_of(str(path))] += code_lines(text)
        count[package_of(str(path))] += 1
        small += path.name != "__init__.py" and len(text.splitlines()) <= 60
        loose += path.parent == PACKAGE
    print("| package | modules | code lines |\n|---|--:|--:|")
    for name in sorted(lines):
        print(f"| {name} | {count[name]} | {lines[name]:,} |")
    print(f"| **all** | {sum(count.values())} | {sum(lines.values()):,} |")
    print(f"\n{small} modules of at most 60 lines; {loose} modules directly in resolver/.\n")
    run = measure_run()
    print("| one mention -> pull request | |\n|---|--:|")
    print(f"| modules executed | {run['modules']} |")
    print(f"| calls between packages, distinct pairs of modules | {run['jumps']} |")
    print(f"| processes started on the host | {sum(run['processes'].values())} |")
    print(f"| of these git | {run['processes'].get('git', 0)} |")
    for kind, number in sorted(run["requests"].items()):
        print(f"| requests to GitHub: {kind} | {number} |")


if __name__ == "__main__":
    main()
