"""Finds the parts of a change that may make checks pass without making the code right.

Only text is read, never executed or parsed by a grammar. Any text gives a result, in time that
grows with its length. A new test, a moved one and an addition to a test file are no findings.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import NamedTuple

from resolver.models.test_files import is_test_file
from resolver.models.verification import TamperingFinding
from resolver.verification.hard_coded_results import expected_values
from resolver.verification.project_files import (
    is_project_manifest,
    is_test_configuration,
    is_workflow_file,
)
from resolver.verification.runner_configuration import (
    find_changed_configuration,
    find_replaced_runner,
)
from resolver.verification.statements import MAX_TEXT, CodeBlock, read_blocks, source_language
from resolver.verification.suspicious_code import find_suspicious_code
from resolver.verification.weakened_tests import ChangedTests, find_weakened_tests

MAX_FINDINGS = 200
"""Maximum number of findings of one change."""

_DATA = frozenset({".md", ".rst", ".adoc", ".txt"})


class ChangedText(NamedTuple):
    """A file that a change adds (`old` is None), deletes (`new` is None) or modifies."""

    path: str
    old: str | None
    new: str | None


def find_tampering(
    changes: Iterable[tuple[str, str | None, str | None]],
    unchanged_tests: Sequence[tuple[str, str]] = (),
) -> tuple[TamperingFinding, ...]:
    """Return the findings of a change, ordered by path and line, at most `MAX_FINDINGS`.

    changes: path, old text and new text of each changed file. A renamed file is one that is deleted
        and one that is added.
    unchanged_tests: path and text of tests that the change leaves alone, whose expected values the
        changed code must not contain.
    """
    ordered = sorted({ChangedText(*change) for change in changes}, key=_order)
    ordered = [text for text in ordered if text.old != text.new]
    found: dict[TamperingFinding, None] = {}
    for finding in islice(_findings(ordered, unchanged_tests), MAX_FINDINGS * 5):
        found[finding] = None
    return tuple(sorted(found, key=_position)[:MAX_FINDINGS])


def _position(finding: TamperingFinding) -> tuple[str, int, str, str]:
    return finding.path, finding.line, finding.kind, finding.detail


def _order(change: ChangedText) -> tuple[str, bool, str, bool, str]:
    is_new, is_gone = change.old is None, change.new is None
    return change.path, is_new, change.old or "", is_gone, change.new or ""


def _findings(
    changes: list[ChangedText], unchanged_tests: Sequence[tuple[str, str]]
) -> Iterator[TamperingFinding]:
    tests: list[ChangedTests] = []
    code: list[tuple[ChangedText, list[CodeBlock], list[CodeBlock]]] = []
    added_texts = {text.new for text in changes if text.old is None}
    for change in changes:
        yield from find_replaced_runner(*change)
        if _configures_tests(change.path):
            yield from find_changed_configuration(*change)
        is_test = is_test_file(change.path)
        if not source_language(change.path):
            if is_test and change.old is not None and change.old not in added_texts:
                yield from _changed_data(change)
            continue
        if max(len(change.old or ""), len(change.new or "")) > MAX_TEXT:
            yield from _unreadable(change, is_test=is_test)
        old = read_blocks(change.path, change.old or "")
        new = read_blocks(change.path, change.new or "")
        code.append((change, old, new))
        if is_test and change.old not in added_texts:
            tests.append(ChangedTests(change.path, old, new, change.old is None))
        elif source_language(change.path) == "rust":
            tests.append(_inline_tests(change, old, new))
    yield from find_weakened_tests(tests)
    yield from _deleted_files(tests, changes)
    blocks = [block for test in tests for block in test.new]
    blocks += [block for path, text in unchanged_tests for block in read_blocks(path, text)]
    yield from _suspicious(blocks, code)


def _suspicious(
    tests: list[CodeBlock], code: list[tuple[ChangedText, list[CodeBlock], list[CodeBlock]]]
) -> Iterator[TamperingFinding]:
    expected = expected_values(tests)
    for change, old, new in code:
        is_test = is_test_file(change.path)
        yield from find_suspicious_code(change.path, old, new, is_test=is_test, expected=expected)


def _configures_tests(path: str) -> bool:
    rules: tuple[Callable[[str], bool], ...] = (
        is_test_configuration,
        is_project_manifest,
        is_workflow_file,
    )
    return any(rule(path) for rule in rules)


def _inline_tests(change: ChangedText, old: list[CodeBlock], new: list[CodeBlock]) -> ChangedTests:
    """Return the unit tests of a source file in Rust, which are in the file that they test."""
    before, after = ([block for block in blocks if block.is_test] for blocks in (old, new))
    return ChangedTests(change.path, before, after, change.old is None)


def _changed_data(change: ChangedText) -> Iterator[TamperingFinding]:
    """Yield a finding if expected output or other data of existing tests is changed or removed."""
    if PurePosixPath(change.path).suffix in _DATA and change.new is not None and not change.old:
        return
    if _configures_tests(change.path):
        return
    kept = {line.strip().rstrip(",") for line in (change.new or "")[:MAX_TEXT].splitlines()}
    for number, line in enumerate((change.old or "")[:MAX_TEXT].splitlines(), 1):
        if line.strip().rstrip(",") not in kept:
            yield TamperingFinding(
                kind="rewritten_snapshot" if change.new is not None else "deleted_test",
                path=change.path,
                line=number,
                detail=line.strip()[:200],
            )
            return


def _deleted_files(
    tests: list[ChangedTests], changes: list[ChangedText]
) -> Iterator[TamperingFinding]:
    """Yield a finding for a deleted test file in which no test is recognized by its name."""
    deleted = {text.path for text in changes if text.new is None and (text.old or "").strip()}
    for test in tests:
        if test.path in deleted and is_test_file(test.path):
            statements = sum(len(block.statements) for block in test.old)
            if statements and not any(block.is_test for block in test.old):
                yield TamperingFinding(kind="deleted_test", path=test.path)


def _unreadable(change: ChangedText, *, is_test: bool) -> Iterator[TamperingFinding]:
    """Yield a finding for a file that is too long to be read to its end."""
    if is_test or change.old is None:
        detail = f"{len(change.new or '')} > {MAX_TEXT}"
        yield TamperingFinding(kind="removed_assertion", path=change.path, detail=detail)
