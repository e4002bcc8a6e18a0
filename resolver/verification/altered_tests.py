"""Determines which tests a change adds or alters, so that only they are executed without its code.

The choice only saves time. A test that is left out by mistake can't become a reproduction, so that
the verdict is at most weaker than it could be.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from resolver.models.verification import CaseResult, CheckExecution
from resolver.verification.comparison import case_id, is_in_files, passing_tests
from resolver.verification.statements import CodeBlock, read_blocks
from resolver.verification.weakened_tests import is_import

_FIXTURE = re.compile(r"set_?up|tear_?down|before|after", re.IGNORECASE)
"""Matches names of functions that test frameworks call for several tests."""


@dataclass(frozen=True)
class AlteredTests:
    """The tests of changed test files whose text differs from the base commit's.

    names: names of functions by file. None for all tests of the file, because it is new, or because
        code differs that they share.
    """

    names: Mapping[str, frozenset[str] | None] | None

    def contains(self, case: CaseResult) -> bool:
        """Return True if the test may have been altered."""
        if self.names is None:
            return True
        words = re.split(r"::|\.", case.id.partition("[")[0])
        path = case.file or case.id.partition("::")[0]
        candidates = (
            [path]
            if path in self.names
            else [name for name in self.names if PurePosixPath(name).stem in words]
        )
        name_sets = [self.names[candidate] for candidate in candidates]
        return any(names is None or words[-1] in names for names in name_sets)


ALL_ALTERED = AlteredTests(None)
"""Says of every test that it may have been altered."""


def find_altered_tests(files: Iterable[tuple[str, str | None, str | None]]) -> AlteredTests:
    """Return the altered tests of test files, which are given by path, old text and new text."""
    return AlteredTests(
        {path: _altered(path, old, new) for path, old, new in files if new is not None}
    )


def _altered(path: str, old: str | None, new: str) -> frozenset[str] | None:
    before = {block.name: block for block in read_blocks(path, old or "")}
    after = {block.name: block for block in read_blocks(path, new)}
    if old is None or not after:
        return None
    empty = CodeBlock("")
    names = sorted(before.keys() | after.keys())
    differing = [
        name for name in names if _text(before.get(name, empty)) != _text(after.get(name, empty))
    ]
    if any(_is_shared(name, before, after) for name in differing):
        return None
    return frozenset(name.rpartition(".")[2] for name in differing)


def _is_shared(name: str, before: Mapping[str, CodeBlock], after: Mapping[str, CodeBlock]) -> bool:
    """Return True for code outside of tests that tests with unchanged text may execute."""
    block = after.get(name, before.get(name))
    if block is None or block.is_test:
        return False
    if name in before or not name:
        return True
    # A new class has new tests only. A new function is used by altered ones, except for fixtures.
    group = name.partition(".")[0]
    is_in_new_class = group not in before and group in after and after[group].is_group
    is_fixture = len(block.marks) > 1 or _FIXTURE.match(name.rpartition(".")[2])
    return not is_in_new_class and ("." in name or bool(is_fixture))


def _text(block: CodeBlock) -> list[str]:
    return [statement.text for statement in block.all_statements if not is_import(statement)]


def tests_to_reproduce(
    base: CheckExecution | None, head: CheckExecution, altered: AlteredTests
) -> tuple[str, ...]:
    """Return the passing tests of the change that may fail without its code.

    They are new or altered, or did not pass at the base commit.
    """
    may_be_altered = {case_id(case) for case in head.cases if altered.contains(case)}
    passed_before = passing_tests(base) if base is not None else set[str]()
    return tuple(sorted(passing_tests(head) - (passed_before - may_be_altered)))


def has_fixed_elsewhere(base: CheckExecution, ids: Collection[str], files: Collection[str]) -> bool:
    """Return True if one of these tests failed at the base commit and is not known to be in a file
    of `files`."""
    failed = {case_id(case): case for case in base.cases if case.has_failed}
    return any(name in failed and not is_in_files(failed[name], files) for name in ids)
