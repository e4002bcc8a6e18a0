"""Reads test reports in the dialects of JUnit's XML.

defusedxml refuses document types, and with them all entities. junitparser would add nothing here:
the attributes by which the dialects tell files, lines and kinds of failures are not in its model.
"""

import re
from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element, ParseError

from defusedxml.ElementTree import fromstring

from resolver.models.verification import CaseStatus
from resolver.verification.report_cases import CaseCollector

_ILLEGAL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]"
    "|&#(?:0{0,8}(?:[0-8]|1[124-9]|2[0-9]|3[01])|[xX]0{0,8}(?:[0-8bBcCeEfF]|1[0-9a-fA-F]));"
)
"""Characters that XML does not allow. Runners that do not escape terminal colours write them."""

_DECLARATION = re.compile(r"^<\?xml[^>]{0,200}\?>")
_MODULE = re.compile(r"(?:^|/)(?:target/(?:surefire|failsafe)-reports|build/test-results)/")
_SCRIPT = re.compile(r"\.[cm]?[jt]sx?$")
_BATS_FILE = re.compile(r"in test file ([^\n,]{1,500}), line \d")
_SUITES = ("testsuites", "testsuite")
_OUTCOMES = ("failure", "error", "skipped")
_LEFT_OUT = frozenset({"notrun", "disabled", "skipped", "suppressed"})


def read_junit(path: str, text: str, cases: CaseCollector) -> None:
    """Add the cases of a JUnit report.

    path: where the report is. The directory of the Maven or Gradle module that it belongs to
        becomes part of the ids, because modules may have classes of the same name.
    """
    root = _parse(text)
    if root is None:
        cases.mark_incomplete()
        return
    where = cases.relative_path(path) or ""
    match = _MODULE.search(where)
    module = where[: match.start()] if match else ""
    for case in root.iter("testcase"):
        if cases.is_full:
            return
        outcomes = [child for child in case if child.tag in _OUTCOMES]
        message, file = _message(outcomes), _file(case, cases)
        parts = [module, *_id(case, file, cases)]
        if not file and (found := _BATS_FILE.search(message)):
            file = found[1]
        cases.add(parts, _status(case, outcomes), message=message, file=file)


def _file(case: Element, cases: CaseCollector) -> str | None:
    """Return the file of a case. vitest writes it as the class's name."""
    file, name = case.get("file") or case.get("filepath") or "", case.get("classname") or ""
    is_script = not file and _SCRIPT.search(name) and " " not in name
    return cases.relative_path(name if is_script else file)


def _id(case: Element, file: str | None, cases: CaseCollector) -> list[str]:
    """Return the parts of the id: file, class, name.

    The file is a part where the report has it as `file`. A name of a class, or of a file that could
    not be loaded, is left out where it only repeats the file. The suites are left out: Surefire
    groups nested classes in an arbitrary suite, and xmlrunner adds the time to their names.
    """
    name, class_name = case.get("name", ""), case.get("classname") or case.get("class") or ""
    dotted = re.sub(r"\.\w+$", "", file or "").replace("/", ".")
    if file and (name == dotted or cases.relative_path(name) == file):
        return [file]
    if class_name in (dotted, file, name):
        class_name = ""
    elif file and class_name.startswith(f"{dotted}."):
        class_name = class_name[len(dotted) + 1 :].replace(".", "::")
    has_file = case.get("file") or case.get("classname") == file
    return [file or "" if has_file else "", class_name, name]


def _status(case: Element, outcomes: Sequence[Element]) -> CaseStatus:
    """Return the status of a case. An <error> may come from the body of a test, too: JUnit's own
    runners and PHPUnit write it for every exception other than an assertion's."""
    kinds = {outcome.tag for outcome in outcomes}
    if "skipped" in kinds or {case.get("status"), case.get("result")} & _LEFT_OUT:
        return "skipped"  # node writes <failure> as well for a test that is to be done
    if "error" in kinds:
        return "error"
    return "failed" if kinds else "passed"


def _message(outcomes: Iterable[Element]) -> str:
    texts = []
    for outcome in outcomes:
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
