"""Reads test reports in JSON: the lines of `go test -json` and the file of `jest --json`."""

import json
import re
from collections.abc import Iterable
from typing import Any

from resolver.models.verification import CaseStatus
from resolver.verification.report_cases import (
    BoundedOutput,
    CaseCollector,
    bounded_name,
    parse_seconds,
)

_GO_STATUS: dict[str, CaseStatus] = {
    "pass": "passed",
    "bench": "passed",
    "fail": "failed",
    "skip": "skipped",
}
_GO_FRAME = re.compile(r"^ *(?:=== (?:RUN|PAUSE|CONT|NAME)|--- (?:PASS|FAIL|SKIP): )")
_GO_EVENT = re.compile(r'^\s*\{"(?:Time|Action|ImportPath|Package)"')
_GO_FAILED_PACKAGE = re.compile(r"^FAIL\s+(\S{1,500}) \[(?:build|setup) failed\]")
_GO_BUILD_OUTPUT = re.compile(r"^# (\S{1,500})")
_JEST_STATUS: dict[str, CaseStatus] = {
    "passed": "passed",
    "failed": "failed",
    "pending": "skipped",
    "skipped": "skipped",
    "todo": "skipped",
    "disabled": "skipped",
    "focused": "passed",
}


class _GoReport:
    """Folds the events of `go test -json`, https://pkg.go.dev/cmd/test2json."""

    def __init__(self, cases: CaseCollector) -> None:
        self._cases = cases
        self._running: dict[str, dict[str, None]] = {}
        self._outputs: dict[tuple[str, str], BoundedOutput] = {}
        self._started: dict[str, None] = {}
        self._packages_with_failures: set[str] = set()
        self._failed_packages: dict[str, None] = {}
        self._build_package = ""

    def event(self, event: dict[str, Any]) -> None:
        """Process one event."""
        action = _text(event.get("Action"))
        package = _text(event.get("Package")) or _text(event.get("ImportPath")).partition(" ")[0]
        package = bounded_name(package)
        test = _text(event.get("Test"))
        if action in ("output", "build-output"):
            self._add_output(package, test, _text(event.get("Output")))
        elif action == "build-fail":
            self._failed_packages[package] = None
        elif action in ("start", "run"):
            self._started[package] = None
            if test:
                self._running.setdefault(package, {})[test] = None
        elif action in _GO_STATUS and test:
            self._end_test(package, test, _GO_STATUS[action], event.get("Elapsed"))
        elif action in _GO_STATUS and package:
            self._end_package(package, action == "fail")

    def line(self, line: str) -> None:
        """Process a line that is no event: what older versions print about a failed build."""
        if found := _GO_FAILED_PACKAGE.match(line):
            self._failed_packages[found[1]] = None
            self._started.pop(found[1], None)
            self._build_package = ""
        elif found := _GO_BUILD_OUTPUT.match(line):
            self._build_package = found[1]
        elif self._build_package:
            self._add_output(self._build_package, "", line + "\n")

    def _add_output(self, package: str, test: str, output: str) -> None:
        if found := _GO_FAILED_PACKAGE.match(output):
            self._failed_packages[found[1]] = None
        if test and _GO_FRAME.match(output):
            return
        self._outputs.setdefault((package, test), BoundedOutput()).add(output)

    def _end_test(self, package: str, test: str, status: CaseStatus, elapsed: object) -> None:
        self._running.get(package, {}).pop(test, None)
        if status == "failed":
            self._packages_with_failures.add(package)
        message = self._message(package, test)
        seconds = parse_seconds(elapsed)
        self._cases.add([package, test], status, seconds=seconds, message=message)

    def _end_package(self, package: str, is_failure: bool) -> None:
        self._started.pop(package, None)
        self._add_unfinished(package, self._running.pop(package, {}))
        if is_failure and package not in self._packages_with_failures:
            self._failed_packages[package] = None

    def _add_unfinished(self, package: str, tests: Iterable[str]) -> None:
        """Add the tests during which the process ended, for example by os.Exit."""
        for test in tests:
            self._packages_with_failures.add(package)
            self._cases.add([package, test], "error", message=self._message(package, test))

    def _message(self, package: str, test: str) -> str:
        output = self._outputs.pop((package, test), None)
        return output.text() if output else ""

    def finish(self) -> None:
        """Add what has no result of its own: failed builds and tests that did not end."""
        for package in self._failed_packages:
            self._cases.add([package], "error", message=self._message(package, ""))
            self._started.pop(package, None)
        for package, tests in self._running.items():
            self._add_unfinished(package, tests)
        for package in self._started:
            self._cases.add_fault(f"the result of package {package} is missing")


def read_go_json(path: str, text: str, cases: CaseCollector) -> None:
    """Add the cases of the output of `go test -json`. Lines that are no events are allowed."""
    report = _GoReport(cases)
    events = 0
    for line in text.split("\n"):
        event = _load(line) if line.lstrip()[:1] == "{" else None
        if isinstance(event, dict) and "Action" in event:
            report.event(event)
            events += 1
        elif _GO_EVENT.match(line):
            cases.add_fault(f"{path}: a line is cut off or is not JSON")
        else:
            report.line(line.rstrip())
    report.finish()
    if not events:
        cases.add_fault(f"{path}: no event of `go test -json`")


def read_jest_json(path: str, text: str, cases: CaseCollector) -> None:
    """Add the cases of the file that jest writes; vitest's json reporter writes the same.

    Without a file, the report is the line of the output that begins with a brace.
    """
    start = text.find('{"num')
    report = _load(text[max(start, 0) :].strip())
    files = report.get("testResults") if isinstance(report, dict) else None
    if not isinstance(files, list):
        cases.add_fault(f"{path}: not a JSON report of jest, or cut off")
        return
    for file in files:
        if isinstance(file, dict):
            _add_jest_file(file, cases)
        else:
            cases.add_fault(f"{path}: a test file without results")
    if isinstance(report, dict) and report.get("wasInterrupted") is True:
        cases.add_fault(f"{path}: jest was interrupted")


def _add_jest_file(file: dict[str, Any], cases: CaseCollector) -> None:
    name = _text(file.get("name"))
    results = file.get("assertionResults")
    has_failure = False
    for result in results if isinstance(results, list) else []:
        if not isinstance(result, dict):
            continue
        status = _JEST_STATUS.get(_text(result.get("status")), "error")
        has_failure = has_failure or status in ("failed", "error")
        ancestors = result.get("ancestorTitles")
        location = result.get("location")
        line = location.get("line") if isinstance(location, dict) else 0
        messages = result.get("failureMessages")
        cases.add(
            [
                cases.relative_path(name) or name,
                *(_text(title) for title in (ancestors if isinstance(ancestors, list) else [])),
                _text(result.get("title")) or _text(result.get("fullName")),
            ],
            status,
            seconds=parse_seconds(result.get("duration"), 0.001),
            message="\n\n".join(map(_text, messages)) if isinstance(messages, list) else "",
            file=name,
            line=line if isinstance(line, int) and 0 < line < 10_000_000 else 0,
        )
    if file.get("status") == "failed" and not has_failure:
        # The file could not be loaded, or failed outside of its tests.
        message = _text(file.get("message"))
        cases.add([cases.relative_path(name) or name], "error", message=message, file=name)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _load(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
