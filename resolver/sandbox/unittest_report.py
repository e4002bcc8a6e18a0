"""Runs a program that uses unittest, and writes a JUnit report of its tests beside this file.

It is executed by the Python of a sandbox, so that it imports nothing but the standard library:
`python FOLDER.py -m unittest discover` writes FOLDER/report.xml.
"""

import runpy
import sys
import traceback
import unittest
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

FOLDER = Path(__file__).with_suffix("")
SUITE = ElementTree.Element("testsuite", name="unittest")
RUN = unittest.TextTestRunner.run


class ReportingResult(unittest.TextTestResult):
    """Adds each test to the report as it ends. A subtest that fails is a failure of its test."""

    outcomes: "list[tuple[str, str]]" = []  # noqa: RUF012 - replaced when a test starts

    def startTest(self, test: Any) -> None:
        super().startTest(test)
        self.outcomes = []

    def stopTest(self, test: Any) -> None:
        super().stopTest(test)
        add_case(test, self.outcomes)

    def addFailure(self, test: Any, err: Any) -> None:
        super().addFailure(test, err)
        self.note(test, "failure", err)

    def addError(self, test: Any, err: Any) -> None:
        super().addError(test, err)
        self.note(test, "failure" if is_raised_in_body(test, err) else "error", err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note(test, "failure", err)

    def addSkip(self, test: Any, reason: str) -> None:
        super().addSkip(test, reason)
        self.note(test, "skipped", None)

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        super().addExpectedFailure(test, err)
        self.note(test, "skipped", None)

    def addUnexpectedSuccess(self, test: Any) -> None:
        super().addUnexpectedSuccess(test)
        self.note(test, "failure", None)

    def note(self, test: Any, kind: str, err: Any) -> None:
        """Add an outcome to the running test, or to the fixture of a class or a module."""
        text = "".join(traceback.format_exception(*err)) if err else ""
        if isinstance(test, unittest.TestCase):
            self.outcomes.append((kind, text))
        else:
            add_case(test, [(kind, text)])


def run_and_write(self: Any, test: Any) -> Any:
    """Run the tests, and write the report when all have ended: an earlier end leaves none."""
    result = RUN(self, test)
    ElementTree.ElementTree(SUITE).write(str(FOLDER / "report.xml"), encoding="utf-8")
    return result


def is_raised_in_body(test: Any, err: Any) -> bool:
    """Return True if an exception comes from the test's own method, and not from its set-up."""
    name = getattr(test, "_testMethodName", "")
    is_loaded = type(test).__module__ != "unittest.loader"
    return is_loaded and any(frame.name == name for frame in traceback.extract_tb(err[2]))


def add_case(test: Any, outcomes: "list[tuple[str, str]]") -> None:
    """Add a test to the report."""
    case = ElementTree.SubElement(SUITE, "testcase", classname="", name=test.id())
    if type(test).__module__ in sys.modules and isinstance(test, unittest.TestCase):
        case.set("filepath", getattr(sys.modules[type(test).__module__], "__file__", None) or "")
    for kind, text in outcomes:
        printable = "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)
        ElementTree.SubElement(case, kind).text = printable


def run_program() -> None:
    """Run the program that the arguments name, as Python itself would."""
    unittest.TextTestRunner.resultclass = ReportingResult  # type: ignore[assignment]
    unittest.TextTestRunner.run = run_and_write  # type: ignore[method-assign]
    sys.path[0] = str(Path.cwd())
    is_module = sys.argv[1] == "-m"
    sys.argv = sys.argv[2 if is_module else 1 :]
    if is_module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    run_program()
