"""Reads test reports in JSON: the lines of `go test -json` and the file of `jest --json`."""

import json
import re
from collections import defaultdict
from typing import Any

from resolver.models.verification import CaseStatus
from resolver.verification.report_cases import (
    CaseCollector,
    bounded_name,
    parse_line_number,
)

_GO_STATUS: dict[str, CaseStatus] = {
    "pass": "passed", "bench": "passed", "fail": "failed", "skip": "skipped",
}  # fmt: skip
_GO_FRAME = re.compile(r"^ *(?:=== (?:RUN|PAUSE|CONT|NAME)|--- (?:PASS|FAIL|SKIP): )")
_GO_FAILED_PACKAGE = re.compile(r"^FAIL\s+(\S{1,500}) \[(?:build|setup) failed\]")
_GO_EVENTS = ('{"Time"', '{"Action"', '{"ImportPath"', '{"Package"')
_JEST_STATUS: dict[str, CaseStatus] = {
    **dict.fromkeys(("passed", "focused"), "passed"),
    "failed": "failed",
    **dict.fromkeys(("pending", "skipped", "todo", "disabled"), "skipped"),
}


class _GoReport:
    """Folds the events of `go test -json`, https://pkg.go.dev/cmd/test2json."""

    def __init__(self, cases: CaseCollector) -> None:
        self._cases = cases
        # The tests that have started and not ended, by package; "" is the package itself.
        self._running: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._outputs: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        self._with_failures: set[str] = set()
        self._failed: dict[str, None] = {}

    def event(self, event: dict[str, Any]) -> None:
        """Process one event."""
        action, test, output = (_text(event.get(key)) for key in ("Action", "Test", "Output"))
        package = _text(event.get("Package")) or _text(event.get("ImportPath")).partition(" ")[0]
        package = bounded_name(package)
        if action in ("output", "build-output"):
            self.line(output)
            if not (test and _GO_FRAME.match(output)):
                self._outputs[package, test].append(output)
        elif action in ("start", "run"):
            self._running[package][test] = None
        elif action in _GO_STATUS and test:
            self._running[package].pop(test, None)
            self._add(package, test, _GO_STATUS[action])
        elif action in _GO_STATUS and package:
            self._add_unfinished(package, self._running.pop(package, {}))
            if action == "fail" and package not in self._with_failures:
                self._failed[package] = None

    def _add(self, package: str, test: str, status: CaseStatus) -> None:
        if status in ("failed", "error"):
            self._with_failures.add(package)
        message = "".join(self._outputs.pop((package, test), []))
        self._cases.add([package, test], status, message=message)

    def _add_unfinished(self, package: str, tests: dict[str, None]) -> None:
        """Add the tests during which the process ended, for example by os.Exit."""
        for test in filter(None, tests):
            self._add(package, test, "error")

    def line(self, line: str) -> None:
        """Process a line of text, which may say that a package could not be built."""
        if found := _GO_FAILED_PACKAGE.match(line):
            self._failed[found[1]] = None

    def finish(self) -> None:
        """Add what has no result of its own: failed builds and tests that did not end."""
        for package in self._failed:
            self._add(package, "", "error")
        for package, tests in self._running.items():
            self._add_unfinished(package, tests)
            if package not in self._failed:
                self._cases.mark_incomplete()


def read_go_json(_: str, text: str, cases: CaseCollector) -> None:
    """Add the cases of the output of `go test -json`. Lines that are no events are allowed."""
    report = _GoReport(cases)
    events = 0
    for line in text.split("\n"):
        event = _load(line) if line.lstrip()[:1] == "{" else None
        if isinstance(event, dict) and "Action" in event:
            report.event(event)
            events += 1
        elif line.lstrip().startswith(_GO_EVENTS):  # cut off
            cases.mark_incomplete()
        else:
            report.line(line.rstrip())
    report.finish()
    if not events:
        cases.mark_incomplete()


def read_jest_json(_: str, text: str, cases: CaseCollector) -> None:
    """Add the cases of the file that jest writes; vitest's json reporter writes the same.

    Without a file, the report is the line of the output that begins with a brace.
    """
    report = _load(text[max(text.find('{"num'), 0) :].strip())
    files = report.get("testResults") if isinstance(report, dict) else None
    if not isinstance(report, dict) or not isinstance(files, list) or report.get("wasInterrupted"):
        cases.mark_incomplete()
    for file in files if isinstance(files, list) else []:
        if isinstance(file, dict):
            _add_jest_file(file, cases)
        else:
            cases.mark_incomplete()


def _add_jest_file(file: dict[str, Any], cases: CaseCollector) -> None:
    name = _text(file.get("name"))
    path = cases.relative_path(name) or name
    has_failure = False
    for result in _list(file.get("assertionResults")):
        if not isinstance(result, dict):
            continue
        status = _JEST_STATUS.get(_text(result.get("status")), "error")
        has_failure = has_failure or status in ("failed", "error")
        location = result.get("location")
        title = _text(result.get("title")) or _text(result.get("fullName"))
        cases.add(
            [path, *map(_text, _list(result.get("ancestorTitles"))), title],
            status,
            message="\n\n".join(map(_text, _list(result.get("failureMessages")))),
            file=name,
            line=parse_line_number(location.get("line")) if isinstance(location, dict) else 0,
        )
    if file.get("status") == "failed" and not has_failure:
        # The file could not be loaded, or failed outside of its tests.
        cases.add([path], "error", message=_text(file.get("message")), file=name)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _load(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
