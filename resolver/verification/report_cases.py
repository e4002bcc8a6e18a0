"""Collects the test cases that a report names: unique ids, bounded texts, one result per test.

A report is written by the code under test. Its ids, paths and messages are untrusted text: control
characters are removed, lengths bounded, and nothing in them is interpreted.
"""

import hashlib
import posixpath
import re
from collections import Counter
from collections.abc import Iterable

from resolver.models.base import FrozenModel
from resolver.models.truncate import truncate_middle
from resolver.models.verification import MAX_MESSAGE, CaseResult, CaseStatus
from resolver.trace.plain import clean

MAX_ID = 500
"""Maximum number of characters of an id. A longer one ends with a hash of all of it."""

MAX_MEMORY = 300_000_000
"""Approximate number of bytes of memory that the cases of one check may take: 200,000 tests or
more. Beyond it none is kept, because a test that is left out would count as one that is gone."""

_CASE = 1_000
"""Approximate number of bytes of a case without its texts."""

_REMARK = 60
"""Length of the remark that `truncate_middle` adds."""

_MAX_PATH = 1_000
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
_SEVERITY: tuple[CaseStatus, ...] = ("passed", "skipped", "failed", "error")


class ReportReading(FrozenModel):
    """The test cases of a check's reports.

    complete: False if a part of the reports is missing, was cut off or could not be read, so that
        a test that is not listed may have run.
    """

    cases: tuple[CaseResult, ...] = ()
    complete: bool = True


class CaseCollector:
    """Collects cases from the parsers of all formats.

    Args:
        root: Absolute path of the repository in the sandbox; paths below it become relative.
        folder: Folder of the project; paths that are relative to it become those of the repository.
        max_memory: Number of bytes that the cases may take.
    """

    def __init__(self, root: str, folder: str = "", max_memory: int = MAX_MEMORY) -> None:
        self._root = root.rstrip("/")
        self._folder = f"{folder}/" if folder else ""
        self._memory = max_memory
        self._cases: list[CaseResult] = []
        self._is_complete = True

    @property
    def is_full(self) -> bool:
        """True if the report is too large: no case of it counts."""
        return self._memory < 0

    def add(
        self,
        parts: Iterable[str],
        status: CaseStatus,
        *,
        message: str = "",
        file: str | None = None,
    ) -> None:
        """Add a case whose id is made of `parts`, joined by `::`."""
        if self.is_full:
            return
        path = self.relative_path(file or "")
        text = "" if status == "passed" else bounded_message(message)
        case_id = self._make_id(parts)
        self._memory -= _CASE + 4 * (len(case_id) + len(text) + len(path or ""))
        self._cases.append(CaseResult(id=case_id, status=status, message=text, file=path))

    def mark_incomplete(self) -> None:
        """Record that a part of the reports can't be read, or is missing."""
        self._is_complete = False

    def _make_id(self, parts: Iterable[str]) -> str:
        """Return the id of a test, which is the same wherever and whenever the test runs.

        The path of the repository and the addresses of objects are removed from it.
        """
        joined = "::".join(part for part in parts if part)
        if self._root:
            joined = joined.replace(self._root + "/", "")
        return bounded_name(_ADDRESS.sub("0x", joined)) or "(unnamed)"

    def relative_path(self, path: str) -> str | None:
        """Return a path relative to the repository; None if it lies outside or is none."""
        text = path.removeprefix("file://").strip()
        if not text or len(text) > _MAX_PATH or "\x00" in text:
            return None
        is_absolute = bool(self._root) and text.startswith(self._root + "/")
        if is_absolute:
            text = text[len(self._root) + 1 :]
        text = posixpath.normpath(clean(text).replace("\n", " "))
        if text.startswith(("/", "../")) or text in {"..", "."}:
            return None
        return text if is_absolute or text.startswith(self._folder) else self._folder + text

    def result(self) -> ReportReading:
        """Return the collected cases, in the order of the reports, with unique ids."""
        if self.is_full:
            return ReportReading(complete=False)
        return ReportReading(cases=_with_unique_ids(self._cases), complete=self._is_complete)


def _with_unique_ids(cases: list[CaseResult]) -> tuple[CaseResult, ...]:
    """Return the cases with ` #2`, ` #3`... added to ids that occur again.

    The worst result keeps the plain id. Numbers are thus the same in whatever order a parallel
    runner reports, and a second result for a test, forged or from a retry, hides no failure.
    """
    used = {case.id for case in cases}
    counts, unique = Counter[str](), list(cases)
    by_severity = sorted(range(len(cases)), key=lambda at: -_SEVERITY.index(cases[at].status))
    for position in by_severity:
        name = new_name = cases[position].id
        counts[name] += 1
        if counts[name] > 1:
            while (new_name := f"{name} #{counts[name]}") in used:
                counts[name] += 1
            used.add(new_name)
            unique[position] = cases[position].model_copy(update={"id": new_name})
    return tuple(unique)


def bounded_name(text: str) -> str:
    """Return `text` as one line without control characters, with at most MAX_ID characters."""
    line = " ".join(clean(text[: 20 * MAX_ID]).split())
    if len(line) <= MAX_ID and len(text) <= 20 * MAX_ID:
        return line
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{line[: MAX_ID - 18].rstrip()}… {digest}"


def bounded_message(text: str) -> str:
    """Return the beginning and the end of a failure's text, cut at line ends."""
    if len(text) > 20 * MAX_MESSAGE:
        text = text[: 10 * MAX_MESSAGE] + "\n" + text[-10 * MAX_MESSAGE :]
    return truncate_middle(clean(text).strip("\n").rstrip(), MAX_MESSAGE - _REMARK)
