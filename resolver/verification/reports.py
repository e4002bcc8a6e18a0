"""Reads the test reports of a check, in any of the formats of `ReportFormat`.

The reports come out of a sandbox that executes the change under test. Reading them is bounded in
bytes and cases, takes linear time and never raises; what could not be read is a fault.
"""

import codecs
from collections.abc import Callable, Mapping

from resolver.models.truncate import keep_last_lines
from resolver.models.verification import MAX_CASES, ReportFormat
from resolver.trace.plain import clean
from resolver.verification.report_cargo import read_cargo
from resolver.verification.report_cases import CaseCollector, ReportReading
from resolver.verification.report_json import read_go_json, read_jest_json
from resolver.verification.report_tap import read_tap
from resolver.verification.report_unittest import read_unittest
from resolver.verification.report_xml import read_junit, read_trx

MAX_REPORT_BYTES = 20_000_000
"""Maximum number of bytes of all reports of one check that are read."""

_READERS: dict[str, Callable[[str, str, CaseCollector], None]] = {
    "junit": read_junit,
    "trx": read_trx,
    "go-json": read_go_json,
    "jest-json": read_jest_json,
    "tap": read_tap,
    "cargo": read_cargo,
    "unittest": read_unittest,
}
_LINE_FORMATS = ("tap", "cargo", "unittest")
_XML_ROOTS = {"junit": ("<testsuites", "<testsuite"), "trx": ("<TestRun",)}


def read_reports(
    report_format: ReportFormat,
    files: Mapping[str, bytes],
    output: str,
    root: str,
    *,
    max_bytes: int = MAX_REPORT_BYTES,
    max_cases: int = MAX_CASES,
) -> ReportReading:
    """Return the test cases that the reports of a check name.

    Args:
        report_format: Format of the reports; "" yields no cases.
        files: The report files by path. If there are none, the output is the report.
        output: All that the command printed, stdout and stderr.
        root: Absolute path of the repository in the sandbox; paths below it become relative.
        max_bytes: Maximum number of bytes that are read, over all files in the order of their
            paths. The rest is a fault.
        max_cases: Maximum number of cases that are kept. The rest is a fault.
    """
    if not report_format:
        return ReportReading()
    read = _READERS[report_format]
    cases = CaseCollector(root, max_cases)
    remaining = max_bytes
    for path in sorted(files):
        content = files[path][:remaining]
        if len(content) < len(files[path]):
            cases.add_fault(f"{path}: more than {max_bytes:,} bytes of reports")
        remaining -= len(content)
        text = _decode(content)
        if text.strip():
            read(path, _without_control(text, report_format), cases)
        elif len(content) == len(files[path]):
            cases.add_fault(f"{path}: empty")
    if not files:
        _read_output(report_format, output, cases, max_bytes)
    return cases.result()


def _read_output(
    report_format: ReportFormat, output: str, cases: CaseCollector, max_bytes: int
) -> None:
    text = output[-max_bytes:] if max_bytes else ""
    if len(text) < len(output):
        cases.add_fault(f"output: more than {max_bytes:,} characters")
    if report_format in _XML_ROOTS:
        starts = [start for mark in _XML_ROOTS[report_format] if (start := text.find(mark)) >= 0]
        end = text.rfind(">") + 1
        text = text[min(starts) : end] if starts else ""
    if text.strip():
        _READERS[report_format]("output", _without_control(text, report_format), cases)
    else:
        cases.add_fault("no report was written")


def _without_control(text: str, report_format: ReportFormat) -> str:
    """Return the text of a line format without colours. XML and JSON escape them themselves."""
    return clean(text) if report_format in _LINE_FORMATS else text


def _decode(content: bytes) -> str:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", errors="replace")
    return content.decode("utf-8-sig", errors="replace")


def excerpt_of_output(output: str, limit: int) -> str:
    """Return the end of a check's output without colours, cut at line ends.

    limit: maximum number of characters.
    """
    # Four times the limit leaves enough text where most of it is colours.
    tail = output[-4 * limit :] if limit > 0 else ""
    return keep_last_lines(clean(tail).strip("\n").rstrip(), max(limit, 0))
