"""Reads the Test Anything Protocol, versions 12 to 14, with subtests.

https://testanything.org/tap-version-14-specification.html
"""

import re
from dataclasses import dataclass, field

from resolver.models.verification import MAX_MESSAGE, CaseStatus
from resolver.verification.report_cases import (
    BATS_SET_UP,
    CaseCollector,
    bounded_name,
    parse_line_number,
    parse_seconds,
)

MAX_LEVELS = 30
"""Maximum nesting of subtests."""

_POINT = re.compile(r"(not )?ok(?![^ \t])[ \t]*(?:\d{1,9}\b)?[ \t]*(?:-[ \t])?[ \t]*(.*)")
_PLAN = re.compile(r"1\.\.(\d{1,9})[ \t]*(?:#.*)?$")
_DIRECTIVE = re.compile(r"(?<!\\)#[ \t]*(skip|todo|time=)(.*)", re.IGNORECASE)
_UNQUOTED = re.compile(r"""^['"]?(.*?)['"]?$""")
_BATS_FILE = re.compile(r"in test file ([^\n,]{1,500}), line (\d{1,7})")
_SET_UP_FAILURES = ("hookFailed", "cancelledByParent", "parentAlreadyFinished")


@dataclass
class _Point:
    """A test point and the names of the subtests around it, innermost first."""

    name: str
    is_ok: bool
    directive: str
    names: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    length: int = 0
    seconds: float | None = None
    file: str = ""
    line: int = 0
    failure_type: str = ""
    reason: str = ""
    is_suite: bool = False
    has_children: bool = False
    has_bad_child: bool = False

    @property
    def is_bad(self) -> bool:
        return not self.is_ok and self.directive != "todo"

    def add_line(self, line: str) -> None:
        if self.length < 10 * MAX_MESSAGE:
            self.lines.append(line[: 10 * MAX_MESSAGE])
            self.length += len(line)


class _TapDocument:
    """Folds the lines of one or more TAP documents."""

    def __init__(self, path: str, cases: CaseCollector) -> None:
        self._path = path
        self._cases = cases
        self._pending: list[list[_Point]] = [[] for _ in range(MAX_LEVELS + 1)]
        self._deepest = 0
        self._last: _Point | None = None
        self._yaml = ""
        self._planned: int | None = None
        self._counts = [0] * (MAX_LEVELS + 1)
        self._has_bailed_out = False
        self._has_begun = False

    def line(self, line: str) -> None:
        """Process one line; lines that are not TAP are ignored."""
        stripped = line.lstrip(" ")
        indent = len(line) - len(stripped)
        if self._yaml:
            if stripped.rstrip() == "..." and indent <= len(self._yaml):
                self._yaml = ""
                return
            if not stripped or indent >= len(self._yaml):
                self._diagnose(stripped)
                return
            self._yaml = ""  # The block is not closed.
        if stripped.startswith("TAP version ") and not indent:
            if self._has_begun:
                self.end_document()
            self._has_begun = True
        elif stripped.startswith("Bail out!"):
            self._has_bailed_out = True
            self._cases.add(["Bail out!"], "error", message=stripped)
            self._cases.add_fault(f"{self._path}: the run bailed out")
        elif stripped.rstrip() == "---" and indent and self._last:
            self._yaml = " " * indent
        elif found := _POINT.match(stripped):
            self._add_point(min(indent // 4, MAX_LEVELS), bool(found[1]), found[2])
        elif not indent and (found := _PLAN.match(stripped)):
            self._planned = int(found[1])
            self._has_begun = True
        elif stripped.startswith("# Subtest:"):
            pass  # The name comes again with the result.
        elif stripped.startswith("#") and self._last and not self._last.is_ok:
            self._last.add_line(stripped[2:])

    def _add_point(self, level: int, is_bad: bool, description: str) -> None:
        directive = reason = ""
        if found := _DIRECTIVE.search(description):
            directive, reason = found[1].lower(), found[2].strip()
            description = description[: found.start()]
        name = bounded_name(description.replace("\\#", "#").replace("\\\\", "\\"))
        self._counts[level] += 1
        point = _Point(
            name or f"test {self._counts[level]}",
            not is_bad,
            "" if directive == "time=" else directive,
            reason=reason,
        )
        children = [p for deeper in self._pending[level + 1 : self._deepest + 1] for p in deeper]
        for deeper in range(level + 1, self._deepest + 1):
            self._pending[deeper].clear()
            self._counts[deeper] = 0
        for child in children:
            child.names.append(point.name)
        self._deepest = level
        point.has_children = bool(children)
        point.has_bad_child = any(child.is_bad for child in children)
        self._pending[level] += [*children, point]
        self._last = point
        if level == 0:
            self._has_begun = True
            self._flush_previous()

    def _flush_previous(self) -> None:
        """Add the finished cases; the last one may still get its diagnostics."""
        finished, self._pending[0] = self._pending[0], []
        for point in finished:
            if point is self._last:
                self._pending[0].append(point)
            else:
                self._add(point)

    def _diagnose(self, line: str) -> None:
        """Take the place and the duration from a line of a YAML block, which stays the message."""
        point = self._last
        if point is None:
            return
        point.add_line(line)
        key, _, value = line.partition(": ")
        text = _UNQUOTED.sub(r"\1", value.strip()[:2_000])
        if key == "duration_ms":
            point.seconds = parse_seconds(text, 0.001)
        elif key == "failureType":
            point.failure_type = text
        elif key == "type":
            point.is_suite = text == "suite"
        elif key == "location":
            path, _, rest = text.partition(":") if not text.startswith("file:") else ("", "", "")
            point.file, point.line = path, parse_line_number(rest.partition(":")[0])
        elif key == "fileName":
            point.file = text
        elif key == "lineNumber" and point.file:
            point.line = parse_line_number(text)

    def _add(self, point: _Point) -> None:
        if point.is_suite and point.has_children and (not point.is_bad or point.has_bad_child):
            return  # node's `describe`, which is no test; its hooks may fail, though.
        message = point.reason if point.directive in ("skip", "todo") else "\n".join(point.lines)
        if not point.file and (found := _BATS_FILE.search(message)):
            point.file, point.line = found[1], parse_line_number(found[2])
        names = [*reversed(point.names), self._cases.relative_path(point.name) or point.name]
        if not point.name.startswith("/"):
            names[-1] = point.name
        self._cases.add(
            names,
            _status(point),
            seconds=point.seconds,
            message=message,
            file=point.file,
            line=point.line,
        )

    def end_document(self) -> None:
        """Add what is left and compare the number of test points with the plan."""
        for level in self._pending:
            for point in level:
                self._add(point)
            level.clear()
        if self._deepest or self._yaml:
            self._cases.add_fault(f"{self._path}: ends within a subtest or a diagnostic")
        if self._planned is None and not self._has_bailed_out:
            self._cases.add_fault(f"{self._path}: no plan")
        elif self._planned != self._counts[0] and not self._has_bailed_out:
            counts = f"{self._counts[0]:,} of {self._planned:,} planned tests"
            self._cases.add_fault(f"{self._path}: {counts}")
        self._planned, self._deepest, self._last = None, 0, None
        self._counts = [0] * (MAX_LEVELS + 1)
        self._yaml = ""


def _status(point: _Point) -> CaseStatus:
    if point.directive == "skip" and point.is_ok:
        return "skipped"
    if point.directive == "todo":
        return "skipped"
    if point.is_ok:
        return "passed"
    is_file = point.name.startswith("/") and point.name == point.file
    is_fixture = bool(point.lines) and point.lines[0].startswith(BATS_SET_UP)
    return (
        "error"
        if is_file or is_fixture or point.is_suite or point.failure_type in _SET_UP_FAILURES
        else "failed"
    )


def read_tap(path: str, text: str, cases: CaseCollector) -> None:
    """Add the cases of a TAP document, which may stand among other lines."""
    document = _TapDocument(path, cases)
    for line in text.split("\n"):
        document.line(line)
    document.end_document()
