"""Reads the text that `python -m unittest -v` prints, as Django's `manage.py test -v 2` does."""

import re
from dataclasses import dataclass

from resolver.models.verification import CaseStatus
from resolver.verification.report_cases import BoundedOutput, CaseCollector, parse_line_number

_HEADER = re.compile(r"^ {0,8}([\w.]{1,500}) \(([\w.<>]{1,1000})\)(.*)$")
_DETAIL = re.compile(r"^(FAIL|ERROR|UNEXPECTED SUCCESS): (.*)$")
_RAN = re.compile(r"^Ran \d{1,9} tests? in ")
_SKIPPED = re.compile(r"(?:^|\.\.\. )skipped ['\"]")
_FRAME = re.compile(r'^  File "([^"\n]{1,1000})", line (\d{1,7}), in (\S{1,500})$', re.MULTILINE)
_FIXTURES = ("setUpClass", "tearDownClass", "setUpModule", "tearDownModule")
_ENDINGS: tuple[tuple[str, CaseStatus], ...] = (
    ("unexpected success", "failed"),
    ("expected failure", "skipped"),
    ("FAIL", "failed"),
    ("ERROR", "error"),
    ("ok", "passed"),
)


@dataclass
class _UnittestCase:
    """A test, the last line printed since its name, and what the details say about it."""

    name: str
    method: str
    last_line: str = ""
    is_failed: bool = False
    details: BoundedOutput | None = None
    detail_kind: str = ""


class _UnittestReport:
    """Folds the lines: names with results, then the details of what failed, then the count."""

    def __init__(self, path: str, cases: CaseCollector) -> None:
        self._path = path
        self._cases = cases
        self._tests: dict[str, _UnittestCase] = {}
        self._repeated: list[_UnittestCase] = []
        self._open: _UnittestCase | None = None
        self._details: _UnittestCase | None = None
        self._expects_detail = False
        self._in_details = False
        self._runs = 0

    def line(self, line: str) -> None:
        """Process one line."""
        if line.startswith("=" * 40) and not line.strip("="):
            self._expects_detail, self._in_details = True, True
            self._open = self._details = None
        elif self._expects_detail and (found := _DETAIL.match(line)):
            self._expects_detail = False
            self._begin_detail(found[1], found[2])
        elif _RAN.match(line):
            self._flush()
            self._runs += 1
        elif self._in_details:
            if self._details and self._details.details and line.strip("-"):
                self._details.details.add(line + "\n")
        elif found := _HEADER.match(line):
            if (test := self._test(found[1], found[2])) is not None:
                self._begin_test(test, found[3])
            elif self._open:
                self._open.last_line = line
        elif self._open and line.strip("- "):
            self._open.last_line = line

    def _begin_test(self, test: _UnittestCase, rest: str) -> None:
        if self._open and self._open.name == test.name:
            # The result of a subtest, which is printed only if it failed.
            self._open.is_failed = True
            return
        test.last_line = rest
        self._open = test
        if test.name in self._tests:
            self._repeated.append(test)
        else:
            self._tests[test.name] = test

    def _begin_detail(self, kind: str, title: str) -> None:
        if (found := _HEADER.match(title)) and (test := self._test(found[1], found[2])):
            known = self._tests.setdefault(test.name, test)
            known.details = known.details or BoundedOutput()
            known.detail_kind = "ERROR" if "ERROR" in (kind, known.detail_kind) else kind
            self._details = known

    @staticmethod
    def _test(method: str, dotted: str) -> _UnittestCase | None:
        """Return the test that a header names; None if the line only looks like a header."""
        if "unittest.loader._FailedTest" in dotted:
            return _UnittestCase(method, "", last_line="ERROR")
        if dotted == method or dotted.endswith("." + method):  # Python 3.11 and later
            return _UnittestCase(dotted, method)
        if method in _FIXTURES:
            return _UnittestCase(f"{dotted}.{method}", "")
        if method.startswith("test") and "." in dotted:
            return _UnittestCase(f"{dotted}.{method}", method)
        return None

    def _flush(self) -> None:
        for test in (*self._tests.values(), *self._repeated):
            message = test.details.text() if test.details else ""
            file, line = self._place(test, message)
            status = _unittest_status(test, message)
            self._cases.add([test.name], status, message=message, file=file, line=line)
        self._tests, self._repeated = {}, []
        self._open = self._details = None
        self._in_details = self._expects_detail = False

    def _place(self, test: _UnittestCase, message: str) -> tuple[str, int]:
        """Return the frame of the test's own method or module, or else the first one."""
        frames = [f for f in _FRAME.findall(message) if self._cases.relative_path(f[0])]
        own = [frame for frame in frames if frame[2] in (test.method, "<module>")]
        for file, line, _ in own or frames:
            return file, parse_line_number(line)
        return "", 0

    def finish(self) -> None:
        """Add what is left at the end of the text."""
        if self._tests or not self._runs:
            self._cases.add_fault(f"{self._path}: the count of tests at the end is missing")
        self._flush()


def _unittest_status(test: _UnittestCase, message: str) -> CaseStatus:
    if test.detail_kind == "ERROR":
        # An exception in the body of the test is a failure of the tested code; one outside of it
        # comes from an import or a fixture.
        is_in_body = bool(test.method) and f", in {test.method}\n" in message
        return "failed" if is_in_body else "error"
    if test.detail_kind or test.is_failed:
        return "failed"
    line = test.last_line.rstrip()
    if _SKIPPED.search(line):
        return "skipped"
    return next((status for ending, status in _ENDINGS if line.endswith(ending)), "error")


def read_unittest(path: str, text: str, cases: CaseCollector) -> None:
    """Add the cases of the output of `python -m unittest -v`."""
    report = _UnittestReport(path, cases)
    for line in text.split("\n"):
        report.line(line.rstrip())
    report.finish()
