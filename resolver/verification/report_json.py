"""Reads test reports in JSON: the lines of `go test -json` and the file of `jest --json`."""

import json
import re
from collections import defaultdict
from typing import Any

from resolver.models.verification import CaseStatus
from resolver.verification.report_cases import CaseCollector, bounded_name

_GO_STATUS: dict[str, CaseStatus] = {
    "pass": "passed", "bench": "passed", "fail": "failed", "skip": "skipped",
}  # fmt: skip
_GO_FAIL = ("fail", None)
_GO_FRAME = re.compile(r"^ *(?:=== (?:RUN|PAUSE|CONT|NAME)|--- (?:PASS|FAIL|SKIP): )")
_GO_FAILED_PACKAGE = re.compile(r"^FAIL\s+(\S{1,500}) \[(?:build|setup) failed\]")
_GO_EVENTS = ('{"Time"', '{"Action"', '{"ImportPath"', '{"Package"')
_JEST_STATUS: dict[str, CaseStatus] = {
    **dict.fromkeys(("passed", "focused"), "passed"),
    "failed": "failed",
    **dict.fromkeys(("pending", "skipped", "todo", "disabled"), "skipped"),
}


_GoKey = tuple[str, str]
"""A package and a test; "" is the package itself."""


def read_go_json(_: str, text: str, cases: CaseCollector) -> None:
    """Add the cases of the output of `go test -json`. Lines that are no events are allowed.

    A test that has started and not ended was running when its process ended, for example by
    os.Exit. A package without a failed test may fail too, as when it can't be built. Events:
    https://pkg.go.dev/cmd/test2json
    """
    # None: it has not ended.
    actions: dict[_GoKey, str | None] = {}
    outputs: defaultdict[_GoKey, list[str]] = defaultdict(list)
    for line in text.split("\n"):
        event = _load(line) if line.lstrip()[:1] == "{" else None
        if not isinstance(event, dict) or "Action" not in event:
            if line.lstrip().startswith(_GO_EVENTS):  # cut off
                cases.mark_incomplete()
            _note_failed_package(actions, line)
            continue
        action, test, output = (_text(event.get(key)) for key in ("Action", "Test", "Output"))
        package = _text(event.get("Package")) or _text(event.get("ImportPath")).partition(" ")[0]
        key = (bounded_name(package), test)
        if action in ("output", "build-output"):
            _note_failed_package(actions, output)
            if not (test and _GO_FRAME.match(output)):
                outputs[key].append(output)
        elif action in ("start", "run"):
            actions.setdefault(key, None)
        elif action in _GO_STATUS and package and actions.get(key) != "fail":
            # With -count, a test ends several times: a later pass hides no failure.
            actions[key] = action
    failed = {package for (package, test), last in actions.items() if test and last in _GO_FAIL}
    ended = {package for (package, test), last in actions.items() if last and not test}
    for (package, test), last in actions.items():
        if test or (last == "fail" and package not in failed):
            status = _GO_STATUS[last] if test and last else "error"
            cases.add([package, test], status, message="".join(outputs[package, test]))
    if not actions or {package for package, _ in actions} - ended:
        cases.mark_incomplete()


def _note_failed_package(actions: dict[_GoKey, str | None], line: str) -> None:
    """Note the package that a line of text says could not be built."""
    if found := _GO_FAILED_PACKAGE.match(line):
        actions[bounded_name(found[1]), ""] = "fail"


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
        title = _text(result.get("title")) or _text(result.get("fullName"))
        cases.add(
            [path, *map(_text, _list(result.get("ancestorTitles"))), title],
            status,
            message="\n\n".join(map(_text, _list(result.get("failureMessages")))),
            file=name,
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
