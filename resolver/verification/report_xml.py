"""Reads test reports in XML: the dialects of JUnit and Visual Studio's trx.

The documents are read as a stream of SAX events, so that a truncated report yields the cases before
the cut and no tree is built. defusedxml refuses document types, and with them all entities.
"""

import re
from collections.abc import Mapping
from typing import Any
from xml.sax import ContentHandler, SAXException

from defusedxml.common import DefusedXmlException
from defusedxml.expatreader import DefusedExpatParser

from resolver.models.verification import CaseStatus
from resolver.verification.report_cases import (
    BATS_SET_UP,
    CaseCollector,
    bounded_message,
    bounded_name,
    parse_line_number,
    parse_seconds,
)

MAX_DEPTH = 100
"""Maximum nesting of elements."""

MAX_OUTCOMES = 1_000
"""Maximum number of <failure>, <error> and <skipped> elements of one test case."""

_ILLEGAL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]"
    "|&#(?:0{0,8}(?:[0-8]|1[124-9]|2[0-9]|3[01])|[xX]0{0,8}(?:[0-8bBcCeEfF]|1[0-9a-fA-F]));"
)
"""Characters that XML does not allow. Runners that do not escape terminal colours write them."""

_MODULE_DIRECTORY = re.compile(
    r"(?:^|/)(?:target/(?:surefire|failsafe)-reports|build/test-results)/"
)
_SCRIPT = re.compile(r"\.[cm]?[jt]sx?$")
_SET_UP_TYPES = ("hookFailed", "cancelledByParent", "parentAlreadyFinished")
_SET_UP_NAMES = ("", "initializationError", "classMethod", "executionError", "setUpClass")
_HOOK = re.compile(r'^"(?:before|after) (?:all|each)" hook\b')
_BATS_FILE = re.compile(r"in test file ([^\n,]{1,500}), line (\d{1,7})")
_PARAMETERS = re.compile(r"[(\[{ ]")

Attributes = Mapping[str, str]


class _ReportHandler(ContentHandler):
    """Bounds the nesting and keeps the text of the current element."""

    def __init__(self, cases: CaseCollector) -> None:
        super().__init__()
        self.cases = cases
        self.depth = 0
        self._text: list[str] | None = None

    def startElement(self, name: str, attrs: Any) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise SAXException(f"elements nested deeper than {MAX_DEPTH}")
        self.start(name.rpartition(":")[2], attrs)

    def endElement(self, name: str) -> None:
        self.depth -= 1
        self.end(name.rpartition(":")[2])

    def characters(self, content: str) -> None:
        if self._text is not None:
            self._text.append(content)

    def keep_text(self) -> None:
        """Keep the text from here on."""
        self._text = []

    def take_text(self) -> str:
        """Return the text since `keep_text` and keep no more."""
        text = "".join(self._text or ())
        self._text = None
        return text

    def start(self, name: str, attributes: Attributes) -> None:
        raise NotImplementedError

    def end(self, name: str) -> None:
        raise NotImplementedError


class _JUnitHandler(_ReportHandler):
    """Reads <testcase> elements in whatever suites they are."""

    def __init__(self, cases: CaseCollector, module: str) -> None:
        super().__init__(cases)
        self._module = module
        self._suites: list[str] = []
        self._is_pytest = False
        self._attributes: dict[str, str] | None = None
        self._outcomes: list[tuple[str, str, str, str]] = []
        self._parents: set[str] = set()

    def start(self, name: str, attributes: Attributes) -> None:
        if self.depth == 1 and name not in ("testsuites", "testsuite"):
            raise SAXException("not a JUnit report")
        if name == "testsuite":
            suite = attributes.get("name", "")
            parent = self._suites[-1] if self._suites else ""
            self._is_pytest = suite == "pytest" or self._is_pytest
            self._suites.append(bounded_name(f"{parent}::{suite}" if parent else suite))
            self._parents.clear()
        elif name == "testcase":
            self._attributes = {key: attributes[key] for key in attributes.keys()}  # noqa: SIM118
            self._outcomes = []
        elif self._attributes is not None and name in ("failure", "error", "skipped"):
            if len(self._outcomes) == MAX_OUTCOMES:
                raise SAXException("too many results of one test")
            outcome = (name, attributes.get("type", ""), attributes.get("message", ""), "")
            self._outcomes.append(outcome)
            self.keep_text()

    def end(self, name: str) -> None:
        if name == "testsuite":
            self._suites.pop()
        elif name == "testcase" and self._attributes is not None:
            if not self.cases.is_full():
                self._add(self._attributes)
            self._attributes = None
        elif self._attributes is not None and name in ("failure", "error", "skipped"):
            kind, error_type, message, _ = self._outcomes[-1]
            self._outcomes[-1] = (kind, error_type, message, self.take_text())

    def _add(self, case: dict[str, str]) -> None:
        name = case.get("name", "")
        class_name = case.get("classname") or case.get("class") or ""
        file = self._file(case, class_name)
        message = self._message()
        if not file and (found := _BATS_FILE.search(message)):
            file, case["line"] = found[1], found[2]
        line = parse_line_number(case.get("line", ""))
        if (end := name.rfind(" > ")) > 0:
            self._parents.add(name[:end])
        self.cases.add(
            self._id(case, file, class_name, name),
            self._status(case, file, name),
            seconds=parse_seconds(case.get("time", "")),
            message=message,
            file=file,
            # pytest counts from 0.
            line=line + 1 if self._is_pytest and "line" in case else line,
        )

    def _file(self, case: dict[str, str], class_name: str) -> str:
        """Return the file of a case. vitest writes it as the class's name."""
        file = case.get("file", "") or case.get("filepath", "")
        if not file and _SCRIPT.search(class_name) and " " not in class_name:
            file = class_name
        if not file and self._is_pytest and not class_name and self._has("collection "):
            file = case.get("name", "").replace(".", "/") + ".py"
        return self.cases.relative_path(file)

    def _id(self, case: dict[str, str], file: str, class_name: str, name: str) -> list[str]:
        """Return the parts of the id: file or module, class or suites, name.

        A class name identifies the test in all dialects but that of node, which writes "test". The
        suites are left out otherwise: Surefire groups nested classes in an arbitrary suite, and
        xmlrunner adds the time to their names.
        """
        if not class_name or class_name in ("test", "suite"):
            has_class = "classname" in case and not class_name
            class_name = "" if has_class or not self._suites else self._suites[-1]
        dotted = re.sub(r"\.\w+$", "", file).replace("/", ".")
        parts = [self._module]
        has_file_attribute = bool(case.get("file"))
        if file and (has_file_attribute or class_name == file or name == dotted):
            parts.append(file)
            if class_name in (dotted, file):
                class_name = ""
            elif class_name.startswith(dotted + "."):
                class_name = class_name[len(dotted) + 1 :].replace(".", "::")
        is_file = bool(file) and (self.cases.relative_path(name) == file or name == dotted)
        own_name = "" if file in parts and is_file else name
        return [*parts, "" if class_name == own_name else class_name, own_name]

    def _has(self, message: str) -> bool:
        return any(outcome[2].startswith(message) for outcome in self._outcomes)

    def _status(self, case: dict[str, str], file: str, name: str) -> CaseStatus:
        kinds = {outcome[0] for outcome in self._outcomes}
        left_out = case.get("status") in ("notrun", "disabled", "skipped")
        if "skipped" in kinds or left_out or case.get("result") in ("skipped", "suppressed"):
            return "skipped"  # node writes <failure> as well for a test that is to be done
        if not kinds:
            return "passed"
        is_hook = _HOOK.match(name) or any(o[1] in _SET_UP_TYPES for o in self._outcomes)
        is_file = bool(file) and self.cases.relative_path(name) == file
        is_hook = is_hook or any(o[3].startswith(BATS_SET_UP) for o in self._outcomes)
        # vitest adds a case with the name of the `describe` whose hook failed.
        is_hook = is_hook or name in self._parents
        if is_hook or is_file or (name.startswith("/") and self.cases.relative_path(name)):
            return "error"
        if "error" in kinds and not self._failed_in_body(case, file, name):
            return "error"
        return "failed"

    def _failed_in_body(self, case: dict[str, str], file: str, name: str) -> bool:
        """Return True if all <error> elements come from an exception in the test's own body.

        JUnit's own runners, PHPUnit and xmlrunner write <error> for every exception other than an
        assertion's. The stack of one that was raised in the body of the test names its method.
        """
        method = _PARAMETERS.split(name, maxsplit=1)[0]
        if method in _SET_UP_NAMES or self._is_pytest:
            return False
        line = parse_line_number(case.get("line", ""))
        for kind, error_type, _, text in self._outcomes:
            if kind != "error" or error_type == "UnexpectedSuccess":
                continue
            frames = (f".{method}(", f"${method}$", f", in {method}\n")
            below = any(frame in text for frame in frames)
            if file and line and "::" in text.partition("\n")[0]:  # PHPUnit: file:line frames only
                numbers = re.findall(re.escape(file) + r":(\d{1,7})$", text, re.MULTILINE)
                below = below or any(int(number) >= line for number in numbers)
            if not error_type or not below:
                return False
        return True

    def _message(self) -> str:
        texts = []
        for _, error_type, message, text in self._outcomes:
            head = message or ("" if text else error_type)
            texts.append(text if head and head in text else f"{head}\n{text}".strip("\n"))
        return "\n\n".join(text for text in texts if text)


_TRX_STATUS: dict[str, CaseStatus] = {
    "Passed": "passed",
    "Completed": "passed",
    "Warning": "passed",
    "Failed": "failed",
    "Timeout": "failed",
    "NotExecuted": "skipped",
    "Inconclusive": "skipped",
    "Pending": "skipped",
}
"""Outcomes of a result; all others say that the test could not be run."""


class _TrxHandler(_ReportHandler):
    """Reads <UnitTestResult> elements; the classes come after them in <TestDefinitions>."""

    def __init__(self, cases: CaseCollector, module: str) -> None:
        super().__init__(cases)
        self._module = module
        self._results: list[tuple[str, str, CaseStatus, float | None, str]] = []
        self._open: list[tuple[dict[str, str], list[str]]] = []
        self._classes: dict[str, str] = {}
        self._definition = ""

    def start(self, name: str, attributes: Attributes) -> None:
        if self.depth == 1 and name != "TestRun":
            raise SAXException("not a trx report")
        if name == "UnitTestResult":
            wanted = ("testId", "testName", "outcome", "duration")
            self._open.append(({key: attributes.get(key, "") for key in wanted}, []))
        elif name == "UnitTest":
            self._definition = attributes.get("id", "")
        elif name == "TestMethod" and self._definition:
            self._classes[self._definition] = attributes.get("className", "").split(",")[0]
        elif name == "RunInfo" and attributes.get("outcome") in ("Error", "Failed"):
            self._open.append(({"outcome": "Error", "testName": ""}, []))
        elif name in ("Message", "StackTrace", "Text"):
            self.keep_text()

    def end(self, name: str) -> None:
        if name in ("Message", "StackTrace", "Text"):
            text = self.take_text()
            if self._open:
                self._open[-1][1].append(text)
        elif name in ("UnitTestResult", "RunInfo") and self._open:
            self._keep(*self._open.pop())

    def _keep(self, found: dict[str, str], texts: list[str]) -> None:
        status = _TRX_STATUS.get(found["outcome"], "error")
        seconds = _trx_seconds(found.get("duration", ""))
        message = bounded_message("\n".join(texts))
        test = found.get("testId", "")
        if len(self._results) <= self.cases.max_cases:
            self._results.append((test, found["testName"], status, seconds, message))

    def finish(self) -> None:
        """Add all results, also of a document that ends early."""
        for test, name, status, seconds, message in self._results:
            class_name = self._classes.get(test, "")
            own_name = name.removeprefix(f"{class_name}.") if class_name else name
            parts = [self._module, class_name, own_name or "(test run)"]
            self.cases.add(parts, status, seconds=seconds, message=message)


def _trx_seconds(text: str) -> float | None:
    """Return the seconds of `hh:mm:ss.fffffff`."""
    parts = [parse_seconds(part) for part in text[:40].split(":")]
    if len(parts) != 3 or None in parts:
        return None
    hours, minutes, seconds = (part or 0.0 for part in parts)
    return hours * 3600 + minutes * 60 + seconds


def read_junit(path: str, text: str, cases: CaseCollector) -> None:
    """Add the cases of a JUnit report.

    path: where the report is. The directory of the Maven or Gradle module that it belongs to
        becomes part of the ids, because modules may have classes of the same name.
    """
    _parse(path, text, _JUnitHandler(cases, _module_of(cases.relative_path(path))), cases)


def read_trx(path: str, text: str, cases: CaseCollector) -> None:
    """Add the cases of a trx report."""
    handler = _TrxHandler(cases, "")
    _parse(path, text, handler, cases)
    handler.finish()


def _module_of(path: str) -> str:
    match = _MODULE_DIRECTORY.search(path)
    return path[: match.start()] if match else ""


def _parse(path: str, text: str, handler: ContentHandler, cases: CaseCollector) -> None:
    parser = DefusedExpatParser(forbid_dtd=True)
    parser.setContentHandler(handler)
    legal = _ILLEGAL.sub("\ufffd", text).lstrip("\ufeff \t\r\n")
    try:
        # In one piece: expat reads a token that spans pieces again with each of them.
        parser.feed(legal)
        parser.close()
    except DefusedXmlException:
        cases.add_fault(f"{path}: has a document type, which is not read")
    except SAXException as error:
        cases.add_fault(f"{path}: not readable as XML: {error.getMessage()[:100]}")
