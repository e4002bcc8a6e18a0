"""A test that must fail, which shows whether a tree still reports failures.

Code of a change can write any report: it may replace an assertion, or rewrite the results when the
process ends. Trees don't show that, because the code is what they execute. So a test that can't
pass is executed beside the tests that a reproduction consists of, without the code of the change
and with it. If it is reported as failed without the code, and not with it, no report of this tree
is worth anything. If a runner doesn't collect it without the code either, it says nothing.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from posixpath import dirname

from resolver.models.verification import CaseResult, CheckExecution

_NODE = """\
%(imports)srequire('node:test')('%(name)s', () => require('node:assert').strictEqual(1, 2));
"""
_TEXTS: Mapping[str, tuple[str, str]] = {
    "pytest": ("test_%(name)s.py", "def test_%(name)s():\n    assert [1] == [2]\n"),
    "unittest": (
        "test_%(name)s.py",
        "import unittest\n\n\nclass Control(unittest.TestCase):\n"
        "    def test_%(name)s(self):\n        self.assertEqual([1], [2])\n",
    ),
    "node": ("%(name)s.test.cjs", _NODE),
    "jest": ("%(name)s.test.js", "test('%(name)s', () => { expect(1).toBe(2); });\n"),
    "vitest": (
        "%(name)s.test.js",
        "import { expect, test } from 'vitest';\n\n"
        "test('%(name)s', () => { expect(1).toBe(2); });\n",
    ),
    "mocha": (
        "%(name)s.spec.cjs",
        "it('%(name)s', () => { require('assert').strictEqual(1, 2); });\n",
    ),
    "bats": ("%(name)s.bats", '@test "%(name)s" {\n  [ 1 = 2 ]\n}\n'),
}
"""Name and text of the file, by runner."""

_SCRIPTS = (".js", ".cjs")


@dataclass(frozen=True)
class ControlTest:
    """A test that must fail. name: a word that the ids of its results contain."""

    name: str
    path: str
    text: str

    def is_result(self, case: CaseResult) -> bool:
        """Return True if a result is the test's."""
        return self.name in case.id

    def has_failed(self, execution: CheckExecution) -> bool:
        """Return True if an execution reports that the test failed."""
        return any(self.is_result(case) and case.has_failed for case in execution.cases)

    def without(self, execution: CheckExecution) -> CheckExecution:
        """Return the execution without the test's results."""
        cases = tuple(case for case in execution.cases if not self.is_result(case))
        return execution.model_copy(update={"cases": cases})


def control_test(
    runner: str | None, test_file: str, tree: str, changed_files: Sequence[str]
) -> ControlTest | None:
    """Return the test for a runner; None if no text of one is known.

    test_file: a test that the runner collects; the file is placed beside it.
    tree: id of the tree of the change, from which the name is made. It is the same for each
        verification of the change, and code that is part of the tree can't contain it.
    """
    if runner is None or runner not in _TEXTS or not test_file:
        return None
    file_name, text = _TEXTS[runner]
    name = f"t{hashlib.sha256(tree.encode()).hexdigest()[:12]}"
    folder = dirname(test_file)
    up = "../" * (folder.count("/") + 1) if folder else "./"
    # The runner gives each file a process of its own, so that the code is loaded in it, too.
    imports = "".join(
        f"try {{ require({up + path!r}); }} catch {{}}\n"
        for path in changed_files
        if path.endswith(_SCRIPTS) and "'" not in path and path != test_file
    )
    values = {"name": name, "imports": imports}
    path = f"{folder}/{file_name % values}" if folder else file_name % values
    return ControlTest(name, path, text % values)
