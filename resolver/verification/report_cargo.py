"""Reads the text that `cargo test` prints; its JSON format is not stable."""

import re
from dataclasses import dataclass, field

from resolver.models.verification import CaseStatus
from resolver.verification.report_cases import BoundedOutput, CaseCollector, parse_line_number

_RUNNING = re.compile(
    r"^\s*Running (?:unittests )?[ ]?(?:([^\s(]{1,500}\.rs) )?\(?([^\s()]{1,1000})\)?$"
)
_DOC_TESTS = re.compile(r"^\s*Doc-tests (\S{1,500})$")
_BINARY_HASH = re.compile(r"-[0-9a-f]{16}(?:\.exe)?$")
_RESULT = re.compile(r"(?:^|.)(ok|FAILED|ignored|bench:)(?:,? .*|$)")
_SUMMARY = re.compile(
    r"^test result: (?:ok|FAILED)\. (\d{1,9}) passed; (\d{1,9}) failed; (\d{1,9}) ignored;"
)
_SECTION = re.compile(r"^---- (.{1,1000}?)(?: - [a-z ]+)? std(?:out|err) ----$")
_NOT_COMPILED = re.compile(r"^error: could not compile `([^`]{1,300})`(?: (\([^)]{1,300}\)))?")
_MODE = re.compile(r" - (?:should panic|compile|compile fail)$")
_DOC_TEST_LINE = re.compile(r"\s*\(line (\d{1,7})\)$")
_PANIC = re.compile(r"panicked at (?:'.{0,2000}?', )?([^\s:'][^\n:']{0,500}):(\d{1,7}):\d")
_STATUS: dict[str, CaseStatus] = {"ok": "passed", "bench:": "passed", "ignored": "skipped"}


@dataclass
class _Binary:
    """A test binary. tests: results by name, None until one is printed. open: the test whose output
    is printed between its name and its result."""

    name: str
    tests: dict[str, CaseStatus | None] = field(default_factory=dict)
    repeated: list[tuple[str, CaseStatus | None]] = field(default_factory=list)
    messages: dict[str, BoundedOutput] = field(default_factory=dict)
    open: str = ""
    last_line: str = ""

    def begin(self, name: str, rest: str) -> None:
        """Add a test. rest: what the line says after its name."""
        self.close()
        found = _RESULT.match(rest.strip())
        status = _STATUS.get(found[1], "failed") if found and found.start(1) == 0 else None
        if name in self.tests:
            self.repeated.append((name, status))
        else:
            self.tests[name] = status
            self.open, self.last_line = ("" if status else name), rest

    def close(self) -> None:
        """Take the result of a test from the end of the line that was printed last."""
        if self.open:
            endings = ("ok", "FAILED", "ignored")
            words = (word for word in endings if self.last_line.rstrip().endswith(word))
            self.tests[self.open] = next((_STATUS.get(word, "failed") for word in words), None)
            self.open = ""

    @property
    def results(self) -> list[tuple[str, CaseStatus | None]]:
        return [*self.tests.items(), *self.repeated]


class _CargoReport:
    """Folds the lines of `cargo test`, which executes one binary after the other."""

    def __init__(self, path: str, cases: CaseCollector) -> None:
        self._path = path
        self._cases = cases
        self._binary: _Binary | None = None
        self._section: BoundedOutput | None = None
        self._in_failures = False
        self._compiler = BoundedOutput()
        self._has_error = False
        self._has_result = False

    def line(self, line: str) -> None:
        """Process one line."""
        binary = self._binary
        if binary and (found := _SUMMARY.match(line)):
            binary.close()
            counts = [
                sum(status == wanted for _, status in binary.results)
                for wanted in ("passed", "failed", "skipped")
            ]
            if counts != [int(count) for count in found.groups()]:
                self._cases.add_fault(f"{self._path}: the results of {binary.name} do not add up")
            self._end(binary)
        elif found := _NOT_COMPILED.match(line):
            self._compiler.add(line)
            name = f"{found[1]} {found[2] or ''}".strip()
            self._cases.add([name], "error", message=self._compiler.text())
            self._compiler, self._has_error, self._has_result = BoundedOutput(), False, True
        elif not self._in_failures and (found := _RUNNING.match(line) or _DOC_TESTS.match(line)):
            self._begin(_binary_name(found))
        elif binary and self._in_failures:
            self._add_failure_line(binary, line)
        elif binary and line == "failures:":
            binary.close()
            self._in_failures = True
        elif line.startswith("test ") and " ... " in f"{line} ":
            name, _, rest = f"{line.removeprefix('test ')} ".partition(" ... ")
            (binary or self._begin("")).begin(_MODE.sub("", name), rest)
        elif binary and binary.open:
            binary.last_line = line if line.strip() else binary.last_line
        elif line.startswith("error") or self._has_error:
            self._has_error = True
            self._compiler.add(line + "\n")

    def _begin(self, name: str) -> _Binary:
        self._end_interrupted()
        self._binary = _Binary(name)
        self._compiler, self._has_error = BoundedOutput(), False
        return self._binary

    def _add_failure_line(self, binary: _Binary, line: str) -> None:
        name = _MODE.sub("", line.strip())
        if found := _SECTION.match(line):
            self._section = binary.messages.setdefault(_MODE.sub("", found[1]), BoundedOutput())
        elif line == "failures:":
            self._section = None
        elif self._section is not None:
            self._section.add(line + "\n")
        elif line.startswith("    ") and name in binary.tests:
            binary.tests[name] = "failed"

    def _end_interrupted(self) -> None:
        """Add a binary that ended without a summary, for example by a signal."""
        if self._binary is not None:
            self._binary.close()
            name = self._binary.name or "cargo test"
            self._cases.add([name], "error", message=self._compiler.text())
            self._cases.add_fault(f"{self._path}: {self._binary.name} has no result")
            self._end(self._binary)

    def _end(self, binary: _Binary) -> None:
        for test, status in binary.results:
            output = binary.messages.get(test)
            message, name = output.text() if output else "", test
            file, line = "", 0
            if found := _DOC_TEST_LINE.search(name[-50:]):
                # Not part of the id: the line changes with every edit above it.
                name, line = name[: -len(found[0])], int(found[1])
                file = name.partition(" - ")[0]
            elif found := _PANIC.search(message[:20_000]):
                file, line = found[1], parse_line_number(found[2])
            parts = [binary.name, name]
            self._cases.add(parts, status or "error", message=message, file=file, line=line)
        self._binary = self._section = None
        self._in_failures, self._has_result = False, True

    def finish(self) -> None:
        """Add what is left at the end of the text."""
        self._end_interrupted()
        if not self._has_result:
            self._cases.add_fault(f"{self._path}: no result of `cargo test`")


def _binary_name(found: re.Match[str]) -> str:
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
