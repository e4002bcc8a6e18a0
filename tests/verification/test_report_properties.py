"""Whatever a report contains, reading it raises nothing and yields bounded, unique cases."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.models.verification import MAX_MESSAGE, ReportFormat
from resolver.verification.report_cases import MAX_ID
from resolver.verification.reports import read_reports
from tests.parts.work import executed_lines
from tests.verification.test_reports import (
    GRADLE,
    PHPUNIT,
    REPORTS,
    SAMPLES,
)

FORMATS: tuple[ReportFormat, ...] = (
    "junit",
    "go-json",
    "jest-json",
    "cargo",
)
REAL = {
    report_format: [(REPORTS / name).read_bytes() for name, its in SAMPLES if its == report_format]
    for report_format in FORMATS
}
REAL["junit"] += [text.encode() for text in (GRADLE, PHPUNIT)]
FRAGMENTS = (
    b"<testsuite>", b"</testcase>", b"<failure>", b"]]>", b"&#0;", b"&x;", b"<!DOCTYPE a>", b"\x00",
    b"\xff", b"\x1b[31m", b"\n", b"failures:\n", b"---- a stdout ----\n",
    b"test result: ok. 9 passed; 0 failed; 0 ignored;\n",
    b'{"Action":"fail","Package":3,"Test":[]}\n', b'{"Action":[],"Elapsed":1e999}\n',
    b'"testResults":[1,{"assertionResults":[null,{"location":{"line":-1e9}}]}]', b"\\ud800",
)  # fmt: skip


@st.composite
def mutated_reports(draw: st.DrawFn, report_format: ReportFormat) -> bytes:
    """Return a real report with parts removed, repeated and replaced by other syntax."""
    report = bytearray(draw(st.sampled_from(REAL[report_format])))
    for _ in range(draw(st.integers(0, 6))):
        start = draw(st.integers(0, len(report)))
        end = min(len(report), start + draw(st.integers(0, 300)))
        replacement = draw(
            st.sampled_from(FRAGMENTS) | st.just(bytes(report[start:end] * 2)) | st.binary()
        )
        report[start:end] = replacement
    return bytes(report)


def check(content: bytes, report_format: ReportFormat) -> None:
    reading = read_reports(report_format, {"r": content}, "", "/repo", max_memory=60_000)
    ids = [case.id for case in reading.cases]
    assert len(ids) == len(set(ids)) <= 60
    for case in reading.cases:
        assert case.id
        assert len(case.id) <= MAX_ID + 10
        assert len(case.message) <= MAX_MESSAGE
        assert not (case.file or "").startswith(("/", "../"))
        for text in (case.id, case.message, case.file or ""):
            assert not {"\x00", "\x1b", "\x07", "\ud800"} & set(text)
            text.encode()
        case.model_dump_json()


@pytest.mark.parametrize("report_format", FORMATS)
@given(data=st.data())
def test_any_bytes_are_cases_or_faults(report_format: ReportFormat, data: st.DataObject) -> None:
    reports = mutated_reports(report_format) | st.binary() | st.text().map(str.encode)
    content = data.draw(reports)
    check(content, report_format)
    read_reports(report_format, {}, content.decode(errors="replace"), "/repo")


LARGE: dict[str, tuple[ReportFormat, str, str]] = {
    "open elements": ("junit", "", "<testsuite>"),
    "an attribute": ("junit", '<testsuite name="', "a::"),
    "the same test": ("junit", "<testsuite>", '<testcase name="a"/>'),
    "open packages": ("go-json", "", '{"Action":"run","Package":"p%","Test":"t"}\n'),
    "package ends": (
        "go-json", "",
        '{"Action":"run","Package":"p","Test":"t%"}\n{"Action":"pass","Package":"q%"}\n',
    ),
    "output": ("go-json", "", '{"Action":"output","Package":"p","Output":"aaaa"}\n'),
    "quotes": ("cargo", "failures:\n---- a stdout ----\npanicked at '", "', "),
    "sections": ("cargo", "failures:\n", "---- a - b - c stdout ---\n"),
    "brackets": ("jest-json", '{"num":', "["),
}  # fmt: skip
"""The format, the start of a report, and what is repeated in it; `%` is a number."""


@pytest.mark.parametrize("name", LARGE)
def test_the_work_grows_with_the_size_of_a_hostile_report_and_no_faster(name: str) -> None:
    report_format, start, part = LARGE[name]
    end = "</testsuite>" if start == "<testsuite>" else ""
    once, twice = (
        executed_lines(partial(read_reports, report_format, {"r": text.encode()}, "", "/repo"))
        for text in (
            start + "".join(part.replace("%", str(n)) for n in range(size // len(part))) + end
            for size in (15_000, 30_000)
        )
    )
    assert twice <= 2.2 * once + 100
