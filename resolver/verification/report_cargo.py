"""Reads the text that `cargo test` prints; its JSON format is not stable."""

import re
from dataclasses import dataclass

from resolver.models.verification import CaseStatus
from resolver.verification.report_cases import (
    BoundedOutput,
    CaseCollector,
    parse_line_number,
    parse_seconds,
)

_RUNNING = re.compile(
    r"^\s*Running (?:unittests )?[ ]?(?:([^\s(]{1,500}\.rs) )?\(?([^\s()]{1,1000})\)?$"
)
_DOC_TESTS = re.compile(r"^\s*Doc-tests (\S{1,500})$")
_BINARY_HASH = re.compile(r"-[0-9a-f]{16}(?:\.exe)?$")
_RESULT = re.compile(r"^(ok|FAILED|ignored|bench:)(?:,? .*)?$")
_SUMMARY = re.compile(
    r"^test result: (?:ok|FAILED)\. (\d{1,9}) passed; (\d{1,9}) failed; (\d{1,9}) ignored;"
)
_SECTION = re.compile(r"^---- (.{1,1000}?)(?: - [a-z ]+)? std(?:out|err) ----$")
_NOT_COMPILED = re.compile(r"^error: could not compile `([^`]{1,300})`(?: (\([^)]{1,300}\)))?")
_MODE = re.compile(r" - (?:should panic|compile|compile fail)$")
_DOC_TEST_LINE = re.compile(r"\s*\(line (\d{1,7})\)$")
_PANIC = re.compile(r"panicked at (?:'.{0,2000}?', )?([^\s:'][^\n:']{0,500}):(\d{1,7}):\d")
_DURATION = re.compile(r"<([\d.]{1,20})s>$")
_STATUS: dict[str, CaseStatus] = {"ok": "passed", "bench:": "passed", "ignored": "skipped"}


@dataclass
class _RustTest:
    """A test and the last line printed since its name; its result may end that line."""

    name: str
    status: CaseStatus | None
    last_line: str = ""
    seconds: float | None = None


class _CargoReport:
    """Folds the lines of `cargo test`, which executes one binary after the other."""

    def __init__(self, path: str, cases: CaseCollector) -> None:
        self._path = path
        self._cases = cases
        self._suite = ""
        self._tests: dict[str, _RustTest] = {}
        self._repeated: list[_RustTest] = []
        self._open: _RustTest | None = None
        self._messages: dict[str, BoundedOutput] = {}
        self._section: BoundedOutput | None = None
        self._is_running = False
        self._in_failures = False
        self._compiler = BoundedOutput()
        self._has_compiler_error = False
        self._has_result = False

    def line(self, line: str) -> None:
        """Process one line."""
        if found := _SUMMARY.match(line):
            self._end_suite([int(count) for count in found.groups()])
        elif found := _NOT_COMPILED.match(line):
            self._add_build_failure(found[1], found[2] or "", line)
        elif not self._in_failures and (found := _RUNNING.match(line) or _DOC_TESTS.match(line)):
            self._begin_suite(_suite_name(found))
        elif self._in_failures:
            self._add_failure_line(line)
        elif line == "failures:":
            self._in_failures = True
            self._close_open()
        elif line.startswith("test ") and " ... " in f"{line} ":
            self._begin_test(line)
        elif line.startswith("running ") and line.endswith((" tests", " test")):
            self._is_running = True
        elif self._open:
            if line.strip():
                self._open.last_line = line
        elif line.startswith("error") or self._has_compiler_error:
            self._has_compiler_error = True
            self._compiler.add(line + "\n")

    def _begin_suite(self, name: str) -> None:
        self._end_interrupted_suite()
        self._suite = name
        self._is_running = True
        self._compiler, self._has_compiler_error = BoundedOutput(), False

    def _begin_test(self, line: str) -> None:
        self._close_open()
        self._is_running = True
        name, _, result = f"{line.removeprefix('test ')} ".partition(" ... ")
        test = _RustTest(_MODE.sub("", name), None)
        if found := _RESULT.match(result.rstrip()):
            test.status = _STATUS.get(found[1], "failed")
            duration = _DURATION.search(result.rstrip()[-30:])
            test.seconds = parse_seconds(duration[1]) if duration else None
        else:
            test.last_line = result
            self._open = test
        if test.name in self._tests:
            self._repeated.append(test)
        else:
            self._tests[test.name] = test

    def _close_open(self) -> None:
        """Take the result of a test whose output was printed between its name and its result."""
        if self._open is not None:
            line = self._open.last_line.rstrip()
            self._open.status = next(
                (_STATUS.get(word, "failed") for word in _ENDINGS if line.endswith(word)), None
            )
            self._open = None

    def _add_failure_line(self, line: str) -> None:
        if found := _SECTION.match(line):
            self._section = self._messages.setdefault(_MODE.sub("", found[1]), BoundedOutput())
        elif line == "failures:":
            self._section = None
        elif self._section is not None:
            self._section.add(line + "\n")
        elif line.startswith("    ") and (test := self._tests.get(_MODE.sub("", line.strip()))):
            test.status = "failed"

    def _end_suite(self, counts: list[int]) -> None:
        self._close_open()
        tests = [*self._tests.values(), *self._repeated]
        totals = [sum(t.status == s for t in tests) for s in ("passed", "failed", "skipped")]
        if totals != counts:
            self._cases.add_fault(f"{self._path}: the results of {self._suite} do not add up")
        self._has_result = True
        self._flush(tests)

    def _end_interrupted_suite(self) -> None:
        if not self._is_running:
            return
        self._close_open()
        tests = [*self._tests.values(), *self._repeated]
        message = self._compiler.text()  # Why the binary ended, for example by a signal.
        self._cases.add([self._suite or "cargo test"], "error", message=message)
        self._cases.add_fault(f"{self._path}: {self._suite} has no result")
        self._has_result = True
        self._flush(tests)

    def _flush(self, tests: list[_RustTest]) -> None:
        for test in tests:
            output = self._messages.get(test.name)
            message = output.text() if output else ""
            name, line = test.name, 0
            file = ""
            if found := _DOC_TEST_LINE.search(name[-50:]):
                # Not part of the id: the line changes with every edit above it.
                name, line = name[: -len(found[0])], int(found[1])
                file = name.partition(" - ")[0]
            elif found := _PANIC.search(message[:20_000]):
                file, line = found[1], parse_line_number(found[2])
            self._cases.add(
                [self._suite, name],
                test.status or "error",
                seconds=test.seconds,
                message=message,
                file=file,
                line=line,
            )
        self._tests, self._repeated, self._messages = {}, [], {}
        self._open = self._section = None
        self._in_failures = self._is_running = False

    def _add_build_failure(self, package: str, target: str, line: str) -> None:
        self._compiler.add(line)
        self._cases.add([f"{package} {target}".strip()], "error", message=self._compiler.text())
        self._compiler, self._has_compiler_error = BoundedOutput(), False
        self._has_result = True

    def finish(self) -> None:
        """Add what is left at the end of the text."""
        self._end_interrupted_suite()
        if not self._has_result:
            self._cases.add_fault(f"{self._path}: no result of `cargo test`")


_ENDINGS = ("ok", "FAILED", "ignored")


def _suite_name(found: re.Match[str]) -> str:
    if found.re is _DOC_TESTS:
        return f"{found[1]} doc-tests"
    binary = _BINARY_HASH.sub("", found[2].rpartition("/")[2].rpartition("\\")[2])
    return f"{binary} ({found[1]})" if found[1] else binary


def read_cargo(path: str, text: str, cases: CaseCollector) -> None:
    """Add the cases of the output of `cargo test`."""
    report = _CargoReport(path, cases)
    for line in text.split("\n"):
        report.line(line.rstrip())
    report.finish()
