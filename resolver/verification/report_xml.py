"""Reads test reports in XML: the dialects of JUnit, and Visual Studio's trx.

defusedxml refuses document types, and with them all entities. junitparser would add nothing here:
the attributes by which the dialects tell files, lines and kinds of failures are not in its model.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from resolver.models.verification import CaseStatus
from resolver.verification.report_cases import (
    CaseCollector,
    bounded_name,
    parse_line_number,
    parse_seconds,
)

MAX_DEPTH = 100
"""Maximum nesting of suites."""

_ILLEGAL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]"
    "|&#(?:0{0,8}(?:[0-8]|1[124-9]|2[0-9]|3[01])|[xX]0{0,8}(?:[0-8bBcCeEfF]|1[0-9a-fA-F]));"
)
"""Characters that XML does not allow. Runners that do not escape terminal colours write them."""

_DECLARATION = re.compile(r"^<\?xml[^>]{0,200}\?>")
_MODULE = re.compile(r"(?:^|/)(?:target/(?:surefire|failsafe)-reports|build/test-results)/")
_SCRIPT = re.compile(r"\.[cm]?[jt]sx?$")
_SET_UP_TYPES = ("hookFailed", "cancelledByParent", "parentAlreadyFinished")
_SET_UP_NAMES = ("", "initializationError", "classMethod", "executionError", "setUpClass")
_HOOK = re.compile(r'^"(?:before|after) (?:all|each)" hook\b')
_BATS_FILE = re.compile(r"in test file ([^\n,]{1,500}), line (\d{1,7})")
_BATS_SET_UP = "(from function `setup"
_PARAMETERS = re.compile(r"[(\[{ ]")
_OUTCOMES = ("failure", "error", "skipped")


@dataclass(frozen=True)
class _Case:
    """A <testcase>. suite: the names of its suites. is_parent: another case is named below it."""

    element: Element
    suite: str
    is_pytest: bool
    is_parent: bool
    file: str

    def get(self, name: str) -> str:
        return self.element.get(name, "")

    @property
    def outcomes(self) -> list[Element]:
        return [child for child in self.element if child.tag in _OUTCOMES]

    @property
    def class_name(self) -> str:
        return self.get("classname") or self.get("class")


def read_junit(path: str, text: str, cases: CaseCollector) -> None:
    """Add the cases of a JUnit report.

    path: where the report is. The directory of the Maven or Gradle module that it belongs to
        becomes part of the ids, because modules may have classes of the same name.
    """
    root = _parse(path, text, ("testsuites", "testsuite"), cases)
    if root is None:
        return
    match = _MODULE.search(cases.relative_path(path))
    module = cases.relative_path(path)[: match.start()] if match else ""
    for case in _cases_of(path, root, cases):
        message, file, line = _message(case), case.file, parse_line_number(case.get("line"))
        if not file and (found := _BATS_FILE.search(message)):
            file, line = found[1], int(found[2])
        cases.add(
            [module, *_id(case, cases)],
            _status(case, cases),
            seconds=parse_seconds(case.get("time")),
            message=message,
            file=file,
            # pytest counts from 0.
            line=line + 1 if case.is_pytest and case.get("line") else line,
        )


def _cases_of(path: str, root: Element, cases: CaseCollector) -> Iterator[_Case]:
    """Yield the cases of all suites, in the order of the document."""
    stack: list[tuple[Iterator[Element], str, bool, set[str]]] = [(iter((root,)), "", False, set())]
    while stack:
        elements, suite, is_pytest, parents = stack[-1]
        element = next(elements, None)
        if element is None:
            stack.pop()
        elif element.tag in ("testsuite", "testsuites"):
            if len(stack) > MAX_DEPTH:
                cases.add_fault(f"{path}: suites nested deeper than {MAX_DEPTH}")
                return
            name = element.get("name", "") if element.tag == "testsuite" else ""
            names = (case.get("name", "") for case in element if case.tag == "testcase")
            inner = {name.rpartition(" > ")[0] for name in names}
            joined = bounded_name(f"{suite}::{name}" if suite and name else suite or name)
            stack.append((iter(element), joined, is_pytest or name == "pytest", inner))
        elif element.tag == "testcase" and not cases.is_full:
            is_parent = element.get("name", "") in parents - {""}
            yield _Case(element, suite, is_pytest, is_parent, _file(element, is_pytest, cases))


def _file(case: Element, is_pytest: bool, cases: CaseCollector) -> str:
    """Return the file of a case. vitest writes it as the class's name."""
    file, name = case.get("file") or case.get("filepath") or "", case.get("classname") or ""
    if not file and _SCRIPT.search(name) and " " not in name:
        file = name
    collects = any(child.get("message", "").startswith("collection ") for child in case)
    if not file and is_pytest and not name and collects:
        file = case.get("name", "").replace(".", "/") + ".py"
    return cases.relative_path(file)


def _id(case: _Case, cases: CaseCollector) -> list[str]:
    """Return the parts of the id: file or module, class or suites, name.

    A class name identifies the test in all dialects but that of node, which writes "test". The
    suites are left out otherwise: Surefire groups nested classes in an arbitrary suite, and
    xmlrunner adds the time to their names.
    """
    class_name, name, file = case.class_name, case.get("name"), case.file
    if not class_name or class_name in ("test", "suite"):
        has_class = "classname" in case.element.attrib and not class_name
        class_name = "" if has_class else case.suite
    dotted = re.sub(r"\.\w+$", "", file).replace("/", ".")
    parts: list[str] = []
    if file and (case.get("file") or class_name == file or name == dotted):
        parts.append(file)
        if class_name in (dotted, file):
            class_name = ""
        elif class_name.startswith(dotted + "."):
            class_name = class_name[len(dotted) + 1 :].replace(".", "::")
    is_file = bool(file) and (cases.relative_path(name) == file or name == dotted)
    own_name = "" if file in parts and is_file else name
    return [*parts, "" if class_name == own_name else class_name, own_name]


def _status(case: _Case, cases: CaseCollector) -> CaseStatus:
    kinds = {outcome.tag for outcome in case.outcomes}
    left_out = case.get("status") in ("notrun", "disabled", "skipped")
    if "skipped" in kinds or left_out or case.get("result") in ("skipped", "suppressed"):
        return "skipped"  # node writes <failure> as well for a test that is to be done
    if not kinds:
        return "passed"
    name = case.get("name")
    is_file = bool(case.file) and cases.relative_path(name) == case.file
    is_set_up = _HOOK.match(name) or any(
        outcome.get("type") in _SET_UP_TYPES or (outcome.text or "").startswith(_BATS_SET_UP)
        for outcome in case.outcomes
    )
    # vitest adds a case with the name of the `describe` whose hook failed.
    if is_set_up or case.is_parent or is_file or (name[:1] == "/" and cases.relative_path(name)):
        return "error"
    return "error" if "error" in kinds and not _failed_in_body(case) else "failed"


def _failed_in_body(case: _Case) -> bool:
    """Return True if all <error> elements come from an exception in the test's own body.

    JUnit's own runners, PHPUnit and xmlrunner write <error> for every exception other than an
    assertion's. The stack of one that was raised in the body of the test names its method.
    """
    method = _PARAMETERS.split(case.get("name"), maxsplit=1)[0]
    if method in _SET_UP_NAMES or case.is_pytest:
        return False
    line = parse_line_number(case.get("line"))
    for outcome in case.outcomes:
        text = outcome.text or ""
        if outcome.tag != "error" or outcome.get("type") == "UnexpectedSuccess":
            continue
        below = any(frame in text for frame in (f".{method}(", f"${method}$", f", in {method}\n"))
        if case.file and line and "::" in text.partition("\n")[0]:  # PHPUnit: file:line only
            numbers = re.findall(re.escape(case.file) + r":(\d{1,7})$", text, re.MULTILINE)
            below = below or any(int(number) >= line for number in numbers)
        if not outcome.get("type") or not below:
            return False
    return True


def _message(case: _Case) -> str:
    texts = []
    for outcome in case.outcomes:
        text = outcome.text or ""
        head = outcome.get("message") or ("" if text else outcome.get("type") or "")
        texts.append(text if head and head in text else f"{head}\n{text}".strip("\n"))
    return "\n\n".join(filter(None, texts))


_TRX_STATUS: dict[str, CaseStatus] = {
    **dict.fromkeys(("Passed", "Completed", "Warning"), "passed"),
    **dict.fromkeys(("Failed", "Timeout"), "failed"),
    **dict.fromkeys(("NotExecuted", "Inconclusive", "Pending"), "skipped"),
}
"""Outcomes of a result; all others say that the test could not be run."""


def read_trx(path: str, text: str, cases: CaseCollector) -> None:
    """Add the cases of a trx report."""
    root = _parse(path, text, ("TestRun",), cases)
    classes = {
        test.get("id", ""): method.get("className", "").split(",")[0]
        for test in ([] if root is None else root.iter("UnitTest"))
        for method in test.iter("TestMethod")
    }
    for result in [] if root is None else root.iter():
        is_run = result.tag == "RunInfo" and result.get("outcome") in ("Error", "Failed")
        if not is_run and result.tag != "UnitTestResult":
            continue
        class_name = classes.get(result.get("testId", ""), "")
        name = result.get("testName", "").removeprefix(f"{class_name}.") or "(test run)"
        texts = (e.text or "" for e in result.iter() if e.tag in ("Message", "StackTrace", "Text"))
        hours, minutes, seconds = (result.get("duration", "") + "::").split(":")[:3]
        parts = [parse_seconds(hours, 3600), parse_seconds(minutes, 60), parse_seconds(seconds)]
        cases.add(
            [class_name, name],
            "error" if is_run else _TRX_STATUS.get(result.get("outcome", ""), "error"),
            seconds=None if None in parts else sum(part or 0 for part in parts),
            message="\n".join(texts),
        )


def _parse(path: str, text: str, roots: tuple[str, ...], cases: CaseCollector) -> Element | None:
    """Return the root of the document, whose tags have no namespace; None if it can't be read."""
    legal = _ILLEGAL.sub("\ufffd", text).lstrip("\ufeff \t\r\n")
    try:
        root: Element = fromstring(_DECLARATION.sub("", legal), forbid_dtd=True)
    except DefusedXmlException:
        cases.add_fault(f"{path}: has a document type, which is not read")
        return None
    except (ParseError, ValueError) as error:
        cases.add_fault(f"{path}: not readable as XML: {str(error)[:100]}")
        return None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    if root.tag not in roots:
        cases.add_fault(f"{path}: not a {'trx' if roots == ('TestRun',) else 'JUnit'} report")
        return None
    return root
