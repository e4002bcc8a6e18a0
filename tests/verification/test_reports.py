"""Test reports: those of real runners, hand-written ones of runners that are absent here, attacks.

The files in `reports/` were written by the runners themselves (pytest 9, xmlrunner, jest 30,
jest-junit 17, vitest 4, mocha 12, node 20, bats 1.13, go 1.27, cargo 1.95, Surefire 3.2) over small
projects in /repo; stack frames of the runners were removed from some
of them. Those in `reports/documented/` are hand-written.
"""

import json
from pathlib import Path

import pytest

from resolver.models.verification import MAX_MESSAGE, CaseResult, ReportFormat
from resolver.verification.report_cases import MAX_ID, ReportReading
from resolver.verification.reports import read_reports

REPORTS = Path(__file__).parent / "reports"


def read_sample(name: str, report_format: ReportFormat) -> ReportReading:
    return read_reports(report_format, {name: (REPORTS / name).read_bytes()}, "", "/repo")


def read_text(text: str | bytes, report_format: ReportFormat, path: str = "r") -> ReportReading:
    content = text if isinstance(text, bytes) else text.encode()
    return read_reports(report_format, {path: content}, "", "/repo")


def lines_of(reading: ReportReading) -> list[str]:
    return [f"{case.status} {case.id}" for case in reading.cases]


def case_of(reading: ReportReading, name: str) -> CaseResult:
    return next(case for case in reading.cases if case.id == name)


SAMPLES: list[tuple[str, ReportFormat]] = [
    ("pytest_xunit1.xml", "junit"),
    ("pytest_xunit2.xml", "junit"),
    ("xmlrunner.xml", "junit"),
    ("jest-junit.xml", "junit"),
    ("vitest.xml", "junit"),
    ("mocha.xml", "junit"),
    ("bats.xml", "junit"),
    ("TEST-shop.BillTest.xml", "junit"),
    ("TEST-shop.BillTest$Inner.xml", "junit"),
    ("TEST-shop.SetupTest.xml", "junit"),
    ("cargo.txt", "cargo"),
    ("cargo_nocapture.txt", "cargo"),
    ("cargo_error.txt", "cargo"),
    ("jest.json", "jest-json"),
    ("go.json", "go-json"),
]


@pytest.mark.parametrize(("name", "report_format"), SAMPLES)
def test_the_report_of_a_real_runner_is_read(name: str, report_format: ReportFormat) -> None:
    reading = read_sample(name, report_format)
    expected = json.loads((REPORTS / "expected.json").read_text())[name]
    assert lines_of(reading) == expected
    assert reading.complete
    # Wherever the repository is.
    moved = (REPORTS / name).read_bytes().replace(b"/repo", b"/other/place")
    again = read_reports(report_format, {name: moved}, "", "/other/place")
    assert lines_of(again) == expected


@pytest.mark.parametrize(
    ("name", "report_format", "case", "file", "message"),
    [
        ("pytest_xunit1.xml", "junit", "tests/test_bill.py::test_total[usd]", "tests/test_bill.py",
         "assert 'usd' == 'eur'"),
        ("pytest_xunit1.xml", "junit", "tests/test_import.py", "tests/test_import.py",
         "No module named 'nowhere'"),
        ("vitest.xml", "junit", "bill.test.js::bill > fails", "bill.test.js", "expected 2"),
        ("mocha.xml", "junit", "bill.test.js::bill::fails", "bill.test.js", "1 == 2"),
        ("bats.xml", "junit", "bill.bats::fails", "test/bill.bats", "some output"),
        ("cargo.txt", "cargo", "src/lib.rs shop::tests::fails", None, "left: 3"),
        ("cargo.txt", "cargo", "shop doc-tests::src/lib.rs - add", "src/lib.rs", "right: 4"),
        ("jest.json", "jest-json", "bill.test.js::bill::fails", "bill.test.js", "Received: 2"),
        ("jest.json", "jest-json", "broken.test.js", "broken.test.js", "Cannot find module"),
        ("go.json", "go-json", "example.com/shop::TestFails", None, "got 3, want 4"),
        ("go.json", "go-json", "example.com/shop/broken", None, "undefined: nowhere"),
        ("go.json", "go-json", "example.com/shop/panics::TestPanics", None, "panic: boom"),
    ],
)  # fmt: skip
def test_a_failure_has_its_place_and_its_message(
    name: str, report_format: ReportFormat, case: str, file: str | None, message: str
) -> None:
    found = case_of(read_sample(name, report_format), case)
    assert found.file == file
    assert message in found.message
    assert "\x1b" not in found.message


def test_a_rust_binary_that_is_killed_is_an_error_and_leaves_the_report_incomplete() -> None:
    reading = read_sample("cargo_abort.txt", "cargo")
    assert not reading.complete
    case = case_of(reading, "src/lib.rs shop")
    assert case.status == "error"
    assert "SIGABRT" in case.message


# Hand-written after the documentation of the runners, which were not at hand.
PHPUNIT = (REPORTS / "documented" / "phpunit.xml").read_text()
GRADLE = (REPORTS / "documented" / "gradle.xml").read_text()
NEXTEST = (REPORTS / "documented" / "nextest.xml").read_text()
CTEST = (REPORTS / "documented" / "ctest.xml").read_text()
OLD_GO = (REPORTS / "documented" / "go_1.23.json").read_text()


@pytest.mark.parametrize(
    ("text", "report_format", "expected"),
    [
        (PHPUNIT, "junit", [
            "passed tests/BillTest.php::BillTest::testAdds",
            "error tests/BillTest.php::BillTest::testThrows",
            "failed tests/BillTest.php::BillTest::testTotal with data set #0",
            "error tests/BillTest.php::BillTest::testSetUp"]),
        (GRADLE, "junit", ["failed shop.BillTest::total(int)[1]", "skipped shop.BillTest::slow()"]),
        (NEXTEST, "junit", ["passed shop::tests::adds", "failed shop::tests::fails"]),
        (CTEST, "junit", ["passed adds", "failed fails", "skipped off"]),
        (OLD_GO, "go-json", ["error example.com/shop/broken"]),
    ],
)  # fmt: skip
def test_the_documented_dialects_are_read(
    text: str, report_format: ReportFormat, expected: list[str]
) -> None:
    reading = read_text(text, report_format)
    assert lines_of(reading) == expected
    assert reading.complete


def test_the_modules_of_a_maven_build_are_distinguished() -> None:
    reading = read_reports(
        "junit",
        {f"{m}/target/surefire-reports/TEST-shop.BillTest.xml": GRADLE.encode() for m in "ab"},
        "",
        "/repo",
    )
    assert [case.id for case in reading.cases if case.status == "failed"] == [
        "a::shop.BillTest::total(int)[1]",
        "b::shop.BillTest::total(int)[1]",
    ]


@pytest.mark.parametrize("ends", [("pass", "fail"), ("fail", "pass")])
def test_a_failure_of_a_go_test_that_ran_twice_counts_in_either_order(
    ends: tuple[str, str],
) -> None:
    actions = [step for end in ends for step in ("run", end)]
    events = [f'{{"Action":"{action}","Package":"p","Test":"TestA"}}' for action in actions]
    reading = read_text("\n".join([*events, '{"Action":"fail","Package":"p"}']), "go-json")
    assert lines_of(reading) == ["failed p::TestA"] and reading.complete


@pytest.mark.parametrize("results", [("", "<failure/>"), ("<failure/>", "")])
def test_the_worse_of_two_results_keeps_the_id_in_either_order(results: tuple[str, str]) -> None:
    text = "".join(f'<testcase name="adds">{result}</testcase>' for result in results)
    reading = read_text(f"<testsuite>{text}</testsuite>", "junit")
    assert sorted(lines_of(reading)) == ["failed adds", "passed adds #2"]


BOMB = """<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>
<testsuite name="&c;"><testcase name="x"/></testsuite>"""
EXTERNAL = """<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>
<testsuite><testcase name="&a;"/></testsuite>"""


@pytest.mark.parametrize("text", [BOMB, EXTERNAL])
def test_entities_are_refused(text: str) -> None:
    assert read_text(text, "junit") == ReportReading(complete=False)


@pytest.mark.parametrize(
    ("text", "report_format"),
    [
        ("<testsuite>" * 5_000, "junit"),
        ('{"num":' + "[" * 200_000, "jest-json"),
        ('{"Action":' + "[" * 200_000, "go-json"),
        (GRADLE[:500], "junit"),
        ("<coverage/>", "junit"),
        ("error: no such command\n", "cargo"),
        (
            "running 2 tests\ntest a ... ok\n\ntest result: ok. 2 passed; 0 failed; 0 ignored;\n",
            "cargo",
        ),
        ('{"Action":[],"Package":{}}\n{"Action":"start","Package":"p"}\n', "go-json"),
        ('{"Action":"start","Package":"p"}\n', "go-json"),
        ("", "junit"),
        (b"\xff\xfe\x00", "junit"),
    ],
)
def test_what_cannot_be_read_makes_the_report_incomplete(
    text: str | bytes, report_format: ReportFormat
) -> None:
    assert not read_text(text, report_format).complete


def test_a_missing_report_is_incomplete_and_no_format_is_none() -> None:
    assert read_reports("junit", {}, "all fine", "/repo") == ReportReading(complete=False)
    assert read_reports(None, {}, "all fine", "/repo") == ReportReading()


def test_a_report_that_is_too_large_has_no_cases_rather_than_a_part_of_them() -> None:
    report = b'<testsuite><testcase name="%d"/></testsuite>'
    files = {f"{n:03}.xml": report % n for n in range(100)}
    whole = read_reports("junit", files, "", "/repo")
    assert len(whole.cases) == 100 and whole.complete
    for limit in ({"max_bytes": len(report) * 50}, {"max_memory": 60_000}):
        reading = read_reports("junit", files, "", "/repo", **limit)
        assert reading == ReportReading(complete=False)


def test_paths_of_a_project_in_a_folder_are_those_of_the_repository() -> None:
    case = '<testcase classname="{}" name="test_x" file="{}"/>'
    texts = "".join(case.format(*names) for names in (("test_a", "test_a.py"), ("b", "api/b.py")))
    files = {"r": f'<testsuite name="pytest">{texts}</testsuite>'.encode()}
    reading = read_reports("junit", files, "", "/repo", folder="api")
    assert [case.file for case in reading.cases] == ["api/test_a.py", "api/b.py"]


def test_texts_are_bounded_and_hold_no_control_characters() -> None:
    name = "\x1b[31mred\x1b[0m\u202e" + "x" * 100_000
    message = "\n".join(f"line {n} \x1b[1mbold\x07" for n in range(100_000))
    tests = [
        {"title": name + end, "status": "failed", "failureMessages": [message]} for end in "ab"
    ]
    report = {"testResults": [{"name": "/repo/../etc/passwd", "assertionResults": tests}]}
    first, second = read_text(json.dumps(report), "jest-json").cases
    assert first.id != second.id, "two long names stay two tests"
    assert len(first.id) <= MAX_ID and len(first.message) <= MAX_MESSAGE
    assert not {"\x1b", "\u202e", "\x07"} & set(first.id + first.message)
    assert first.message.startswith("line 0 bold\n") and first.message.endswith("99 bold")
    assert first.file is None


def test_characters_that_xml_does_not_allow_do_not_hide_the_other_tests() -> None:
    text = '<testsuite><testcase name="a&#27;[31m"><failure>\x1b[0m \x00</failure></testcase>'
    reading = read_text(text.encode() + b'<testcase name="\xff"/></testsuite>', "junit")
    assert [case.status for case in reading.cases] == ["failed", "passed"]
    assert reading.complete
