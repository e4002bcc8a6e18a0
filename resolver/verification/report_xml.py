"""Reads test reports in the dialects of JUnit's XML.

defusedxml refuses document types, and with them all entities. junitparser would add nothing here:
the attributes by which the dialects tell files, lines and kinds of failures are not in its model.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element, ParseError

from defusedxml.ElementTree import fromstring

from resolver.models.verification import CaseStatus
from resolver.verification.report_cases import (
    CaseCollector,
    bounded_name,
    parse_line_number,
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
_BATS_FILE = re.compile(r"in test file ([^\n,]{1,500}), line (\d{1,7})")
_BATS_SET_UP = "(from function `setup"
_SUITES = ("testsuites", "testsuite")
_OUTCOMES = ("failure", "error", "skipped")


@dataclass(frozen=True)
class _Case:
    """A <testcase>. suite: the names of its suites."""

    element: Element
    suite: str
    is_pytest: bool
    file: str

    def get(self, name: str) -> str:
        return self.element.get(name, "")

    @property
    def outcomes(self) -> list[Element]:
        return [child for child in self.element if child.tag in _OUTCOMES]


def read_junit(path: str, text: str, cases: CaseCollector) -> None:
    """Add the cases of a JUnit report.

    path: where the report is. The directory of the Maven or Gradle module that it belongs to
        becomes part of the ids, because modules may have classes of the same name.
    """
    root = _parse(text)
    if root is None:
        cases.mark_incomplete()
        return
    match = _MODULE.search(cases.relative_path(path))
    module = cases.relative_path(path)[: match.start()] if match else ""
    for case in _cases_of((root,), "", False, cases):
        message, file, line = _message(case), case.file, parse_line_number(case.get("line"))
        if not file and (found := _BATS_FILE.search(message)):
            file, line = found[1], int(found[2])
        cases.add(
            [module, *_id(case, cases)],
            _status(case, cases),
            message=message,
            file=file,
            # pytest counts from 0.
            line=line + 1 if case.is_pytest and case.get("line") else line,
        )


def _cases_of(
    elements: Iterable[Element], suite: str, is_pytest: bool, cases: CaseCollector, depth: int = 0
) -> Iterator[_Case]:
    """Yield the cases of all suites, in the order of the document."""
    for element in elements:
        if element.tag == "testcase" and not cases.is_full:
            yield _Case(element, suite, is_pytest, _file(element, cases))
        elif element.tag in _SUITES and depth > MAX_DEPTH:
            cases.mark_incomplete()
        elif element.tag in _SUITES:
            name = element.get("name", "") if element.tag == "testsuite" else ""
            joined = bounded_name(f"{suite}::{name}" if suite and name else suite or name)
            is_inner = is_pytest or name == "pytest"
            yield from _cases_of(element, joined, is_inner, cases, depth + 1)


def _file(case: Element, cases: CaseCollector) -> str:
    """Return the file of a case. vitest writes it as the class's name."""
    file, name = case.get("file") or case.get("filepath") or "", case.get("classname") or ""
    is_script = not file and _SCRIPT.search(name) and " " not in name
    return cases.relative_path(name if is_script else file)


def _id(case: _Case, cases: CaseCollector) -> list[str]:
    """Return the parts of the id: file or module, class or suites, name.

    A class name identifies the test in all dialects but that of node, which writes "test". The
    suites are left out otherwise: Surefire groups nested classes in an arbitrary suite, and
    xmlrunner adds the time to their names.
    """
    name, file = case.get("name"), case.file
    class_name = case.get("classname") or case.get("class")
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
    """Return the status of a case. An <error> may come from the body of a test, too: JUnit's own
    runners and PHPUnit write it for every exception other than an assertion's."""
    kinds = {outcome.tag for outcome in case.outcomes}
    left_out = case.get("status") in ("notrun", "disabled", "skipped")
    if "skipped" in kinds or left_out or case.get("result") in ("skipped", "suppressed"):
        return "skipped"  # node writes <failure> as well for a test that is to be done
    if not kinds:
        return "passed"
    name = case.get("name")
    is_file = bool(case.file) and cases.relative_path(name) == case.file
    is_set_up = any(
        outcome.get("type") in _SET_UP_TYPES or (outcome.text or "").startswith(_BATS_SET_UP)
        for outcome in case.outcomes
    )
    is_not_run = is_set_up or is_file or (name[:1] == "/" and cases.relative_path(name))
    return "error" if is_not_run or "error" in kinds else "failed"


def _message(case: _Case) -> str:
    texts = []
    for outcome in case.outcomes:
        text = outcome.text or ""
        head = outcome.get("message") or ("" if text else outcome.get("type") or "")
        texts.append(text if head and head in text else f"{head}\n{text}".strip("\n"))
    return "\n\n".join(filter(None, texts))


def _parse(text: str) -> Element | None:
    """Return the root of the document, whose tags have no namespace; None if it can't be read."""
    legal = _ILLEGAL.sub("\ufffd", text).lstrip("\ufeff \t\r\n")
    try:
        root: Element = fromstring(_DECLARATION.sub("", legal), forbid_dtd=True)
    except (ParseError, ValueError):  # a document type is a ValueError
        return None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root if root.tag in _SUITES else None
