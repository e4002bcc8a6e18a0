"""Collects the test cases that a report names: unique ids, bounded texts, one result per test.

A report is written by the code under test. Its ids, paths and messages are untrusted text: control
characters are removed, lengths bounded, and nothing in them is interpreted.
"""

import hashlib
import math
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable

from resolver.models.base import FrozenModel
from resolver.models.verification import MAX_CASES, MAX_MESSAGE, CaseResult, CaseStatus
from resolver.trace.plain import clean, truncate_text

MAX_ID = 500
"""Maximum number of characters of an id. A longer one ends with a hash of all of it."""

MAX_FAULTS = 20
"""Maximum number of faults that are listed for the reports of one check."""

BATS_SET_UP = "(from function `setup"
"""The beginning of a failure that bats reports, in all formats, for a test whose `setup` failed."""

_REMARK = 60
"""Length of the remark that `truncate_text` adds."""

_MAX_PATH = 1_000
_MAX_SECONDS = 10_000_000.0
_MAX_LINE = 10_000_000
_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{4,16}\b")
_SEVERITY: tuple[CaseStatus, ...] = ("passed", "skipped", "failed", "error")


class ReportReading(FrozenModel):
    """The test cases of a check's reports.

    complete: False if a part of the reports is missing, was cut off or could not be read, so that
        a test that is not listed may have run.
    faults: what could not be read, for a person.
    """

    cases: tuple[CaseResult, ...] = ()
    complete: bool = True
    faults: tuple[str, ...] = ()


class CaseCollector:
    """Collects cases and faults from the parsers of all formats.

    Args:
        root: Absolute path of the repository in the sandbox; paths below it become relative.
        max_cases: Maximum number of cases that are kept.
    """

    def __init__(self, root: str, max_cases: int = MAX_CASES) -> None:
        self._root = root.rstrip("/")
        self.max_cases = max_cases
        self._cases: list[CaseResult] = []
        self._faults: list[str] = []
        self._omitted_faults = 0

    def is_full(self) -> bool:
        """True if no further case is kept; that is then a fault, and parsers may skip cases."""
        is_full = len(self._cases) >= self.max_cases
        if is_full:
            self.add_fault(f"more than {self.max_cases:,} tests")
        return is_full

    def add(
        self,
        parts: Iterable[str],
        status: CaseStatus,
        *,
        seconds: float | None = None,
        message: str = "",
        file: str = "",
        line: int = 0,
    ) -> None:
        """Add a case whose id is made of `parts`, joined by `::`."""
        if self.is_full():
            return
        path = self.relative_path(file)
        text = "" if status == "passed" else bounded_message(message)
        self._cases.append(
            CaseResult(
                id=self.make_id(parts),
                status=status,
                seconds=seconds,
                message=text,
                file=path,
                line=_line_of(path, line, text) if path else 0,
            )
        )

    def add_fault(self, fault: str) -> None:
        """Add a fault; the reading is then incomplete."""
        text = bounded_name(fault, 200)
        if text in self._faults:
            return
        if len(self._faults) < MAX_FAULTS:
            self._faults.append(text)
        else:
            self._omitted_faults += 1

    def make_id(self, parts: Iterable[str]) -> str:
        """Return the id of a test, which is the same wherever and whenever the test runs.

        The path of the repository and the addresses of objects are removed from it.
        """
        joined = "::".join(part for part in parts if part)
        if self._root:
            joined = joined.replace(self._root + "/", "")
        return bounded_name(_ADDRESS.sub("at 0x", joined)) or "(unnamed)"

    def relative_path(self, path: str) -> str:
        """Return a path relative to the repository; "" if it lies outside or is none."""
        text = path.removeprefix("file://").strip()
        if not text or len(text) > _MAX_PATH or "\x00" in text:
            return ""
        if self._root and text.startswith(self._root + "/"):
            text = text[len(self._root) + 1 :]
        text = posixpath.normpath(clean(text).replace("\n", " "))
        is_outside = text.startswith(("/", "../")) or text == ".."
        return "" if is_outside or text == "." else text

    def result(self) -> ReportReading:
        """Return the collected cases, in the order of the reports, with unique ids."""
        faults = list(self._faults)
        if self._omitted_faults:
            faults.append(f"{self._omitted_faults:,} further faults")
        cases = tuple(_with_unique_ids(self._cases))
        return ReportReading(cases=cases, complete=not faults, faults=tuple(faults))


class BoundedOutput:
    """The beginning and the end of an output that is read line by line."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._last: list[str] = []
        self._length = 0
        self._last_length = 0

    def add(self, text: str) -> None:
        """Append `text`, or drop earlier text from the middle."""
        if self._length < 5 * MAX_MESSAGE:
            self._first.append(text[: 5 * MAX_MESSAGE])
            self._length += len(text)
            return
        self._last.append(text[-5 * MAX_MESSAGE :])
        self._last_length += len(text)
        if self._last_length > 20 * MAX_MESSAGE:
            # Joined rarely, so that the work per line stays constant on average.
            self._last = ["".join(self._last)[-5 * MAX_MESSAGE :]]
            self._last_length = len(self._last[0])

    def text(self) -> str:
        """Return what was kept."""
        return "".join(self._first + self._last)


def _with_unique_ids(cases: list[CaseResult]) -> list[CaseResult]:
    """Return the cases with ` #2`, ` #3`... added to ids that occur again.

    The worst result keeps the plain id. Numbers are thus the same in whatever order a parallel
    runner reports, and a second result for a test, forged or from a retry, hides no failure.
    """
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for position, case in enumerate(cases):
        positions[case.id].append(position)
    used = set(positions)
    unique = list(cases)
    for name, group in positions.items():
        number = 1
        ordered = sorted(group, key=lambda at: -_SEVERITY.index(cases[at].status))
        for position in ordered[1:]:
            number += 1
            while f"{name} #{number}" in used:
                number += 1
            used.add(f"{name} #{number}")
            unique[position] = cases[position].model_copy(update={"id": f"{name} #{number}"})
    return unique


def bounded_name(text: str, limit: int = MAX_ID) -> str:
    """Return `text` as one line without control characters and with at most `limit` characters."""
    line = " ".join(clean(text[: 20 * limit]).split())
    if len(line) <= limit and len(text) <= 20 * limit:
        return line
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{line[: limit - 18].rstrip()}… {digest}"


def bounded_message(text: str) -> str:
    """Return the beginning and the end of a failure's text, cut at line ends."""
    if len(text) > 20 * MAX_MESSAGE:
        text = text[: 10 * MAX_MESSAGE] + "\n" + text[-10 * MAX_MESSAGE :]
    return truncate_text(clean(text).strip("\n").rstrip(), MAX_MESSAGE - _REMARK)


def parse_seconds(text: object, unit: float = 1.0) -> float | None:
    """Return a duration in seconds; None if `text` is none. Surefire writes 1,234.5 for 1234.5."""
    try:
        value = float(str(text)[:40].replace(",", "")) * unit
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 <= value <= _MAX_SECONDS else None


def parse_line_number(text: object) -> int:
    """Return a line number; 0 if `text` is none."""
    digits = str(text)[:12]
    number = int(digits) if digits.isascii() and digits.isdigit() else 0
    return number if number <= _MAX_LINE else 0


def _line_of(path: str, line: int, message: str) -> int:
    """Return the line of a test; if it is unknown, the line of `path` that the message names."""
    if line or path not in message:
        return line
    match = re.search(re.escape(path) + r"(?::|\", line |, line )(\d{1,7})", message)
    return int(match[1]) if match else 0
