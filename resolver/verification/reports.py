"""Reads the test reports of a check, in any of the formats of `ReportFormat`.

The reports come out of a sandbox that executes the change under test. Reading them is bounded in
bytes and memory, takes linear time and never raises; what can't be read makes it incomplete.
"""

from collections.abc import Callable, Mapping

from resolver.models.truncate import keep_last_lines
from resolver.models.verification import ReportFormat
from resolver.trace.plain import clean
from resolver.verification.report_cargo import read_cargo
from resolver.verification.report_cases import MAX_MEMORY, CaseCollector, ReportReading
from resolver.verification.report_json import read_go_json, read_jest_json
from resolver.verification.report_xml import read_junit

MAX_REPORT_BYTES = 32_000_000
"""Maximum number of bytes of all reports of one check that are read."""

_READERS: Mapping[str, Callable[[str, str, CaseCollector], None]] = {
    "junit": read_junit,
    "go-json": read_go_json,
    "jest-json": read_jest_json,
    "cargo": read_cargo,
}


def read_reports(
    report_format: ReportFormat | None,
    files: Mapping[str, bytes],
    output: str,
    root: str,
    *,
    folder: str = "",
    max_bytes: int = MAX_REPORT_BYTES,
    max_memory: int = MAX_MEMORY,
) -> ReportReading:
    """Return the test cases that the reports of a check name.

    Args:
        report_format: Format of the reports; None yields no cases.
        files: The report files by path. If there are none, the output is the report.
        output: All that the command printed, stdout and stderr.
        root: Absolute path of the repository in the sandbox; paths below it become relative.
        folder: Folder of the project, to which paths in its reports may be relative.
        max_bytes, max_memory: What the files, and the cases in memory, may take. Larger reports
            have no cases.
    """
    if report_format is None:
        return ReportReading()
    if sum(map(len, files.values())) > max_bytes or len(output) > max_bytes:
        return ReportReading(complete=False)
    cases = CaseCollector(root, folder, max_memory)
    texts = {path: files[path].decode("utf-8-sig", "replace") for path in sorted(files)}
    if not files:
        # A document in XML may have other lines around it.
        start = output.find("<testsuite") if report_format == "junit" else 0
        end = output.rfind(">") + 1 if report_format == "junit" else len(output)
        texts = {"output": output[start:end] if start >= 0 else ""}
    for path, text in texts.items():
        _READERS[report_format](path, text, cases)
    return cases.result()


def excerpt_of_output(output: str, limit: int) -> str:
    """Return the end of a check's output without colours, cut at line ends.

    limit: maximum number of characters.
    """
    # Four times the limit leaves enough text where most of it is colours.
    tail = output[-4 * limit :] if limit > 0 else ""
    return keep_last_lines(clean(tail).strip("\n").rstrip(), max(limit, 0))
