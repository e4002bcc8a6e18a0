"""Reads the text that `cargo test` prints; its JSON format is not stable."""

import re

from resolver.models.verification import CaseStatus
from resolver.trace.plain import clean
from resolver.verification.report_cases import CaseCollector

_HEADER = re.compile(r"^\s*(?:Running (?:unittests )?(\S.*)|Doc-tests (\S.*))$", re.MULTILINE)
_NO_NAME = re.compile(r"\(.*[/\\]|-[0-9a-f]{16}|(?:\.exe)?\)$")
"""Matches what is no part of the name of a binary: its folder and its hash."""

_TEST = re.compile(
    r"^test (\S.{0,999}?)(?: - (?:should panic|compile|compile fail))? \.\.\.[ \t]?", re.MULTILINE
)
_IGNORED = re.compile(r"ignored\b")
_SECTION = re.compile(r"^---- (\S.{0,999}?)(?: - [a-z ]+)? std(?:out|err) ----$", re.MULTILINE)
_NAMED = re.compile(r"^    (\S.*?)(?: - (?:should panic|compile|compile fail))?$", re.MULTILINE)
_SUMMARY = re.compile(
    r"^test result: (?:ok|FAILED)\. (\d{1,9}) passed; (\d{1,9}) failed; (\d{1,9}) ignored;",
    re.MULTILINE,
)
_NOT_COMPILED = re.compile(
    r"^error: could not compile `([^`\n]{1,300})`(?: (\([^)\n]{1,300}\)))?", re.MULTILINE
)
_DOC_TEST_LINE = re.compile(r"\s*\(line \d{1,7}\)$")


def read_cargo(_: str, output: str, cases: CaseCollector) -> None:
    """Add the cases of the output of `cargo test`, which executes one binary after the other."""
    text = clean(output)
    start, *parts = _HEADER.split(text)
    bodies = ["" if parts else start, *parts[2::3]]
    binaries = zip(parts[0::3], parts[1::3], strict=True)
    names = ["", *(f"{doc} doc-tests" if doc else _NO_NAME.sub("", run) for run, doc in binaries)]
    has_result = False
    for name, body in zip(names, bodies, strict=True):
        if _SUMMARY.search(body) or _TEST.search(body) or name:
            _read_binary(name, body, cases)
            has_result = True
    for found in _NOT_COMPILED.finditer(text):
        message = text[max(found.start() - 10_000, 0) : found.end()]
        message = message[max(message.find("\nerror"), 0) :]
        cases.add([f"{found[1]} {found[2] or ''}".strip()], "error", message=message)
        has_result = True
    if not has_result:
        cases.mark_incomplete()


def _read_binary(name: str, body: str, cases: CaseCollector) -> None:
    """Add the tests of a binary: a line for each, the outputs of the failed ones, their names."""
    listed, _, failures = body.partition("\nfailures:\n")
    _, *sections = _SECTION.split(failures)
    messages = {
        test: output.partition("\nfailures:\n")[0]
        for test, output in zip(sections[0::2], sections[1::2], strict=True)
    }
    failed = set(_NAMED.findall(failures.rpartition("\nfailures:\n")[2] or failures))
    _, *tests = _TEST.split(listed)
    results: list[tuple[str, CaseStatus]] = [
        (test, "failed" if test in failed else "skipped" if _IGNORED.match(rest) else "passed")
        for test, rest in zip(tests[0::2], tests[1::2], strict=True)
    ]
    summary = _SUMMARY.search(body)
    if summary is None:
        cases.add([name or "cargo test"], "error", message=body[-10_000:])
        cases.mark_incomplete()
    elif [int(count) for count in summary.groups()] != [
        sum(status == counted for _, status in results)
        for counted in ("passed", "failed", "skipped")
    ]:
        cases.mark_incomplete()
    for test, status in results:
        own_name, file = test, None
        if found := _DOC_TEST_LINE.search(test[-50:]):
            # Not part of the id: the line changes with every edit above it.
            own_name = test[: -len(found[0])]
            file = own_name.partition(" - ")[0]
        message = messages.get(test, "")
        cases.add([name, own_name], status, message=message, file=file)
