"""The reporters that Resolver gives to unittest and to `node --test`, executed by both."""

from pathlib import Path

import pytest

from resolver.models.verification import CheckExecution, ProjectCheck
from resolver.verification.runners import runner_of
from resolver.verification.sandbox_checks import execute_check
from tests.verification.suite.local_sandbox import LocalSandbox

UNITTEST = """\
import unittest


class Results(unittest.TestCase):
    def test_passes(self): print("test_fails ... ok")
    def test_fails(self): self.assertEqual(1, 2)
    def test_raises(self): raise KeyError(1)
    def test_parts(self):
        for number in range(3):
            with self.subTest(number=number): self.assertEqual(number, 1)
    @unittest.skip("later")
    def test_skipped(self): pass
    @unittest.expectedFailure
    def test_expected(self): self.fail()
    @unittest.expectedFailure
    def test_unexpected(self): pass


class NoDatabase(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise OSError("no database")
    def test_never(self): pass


class NoSetUp(unittest.TestCase):
    def setUp(self): raise OSError("no database")
    def test_never(self): pass
"""
ENDS = """\
import os, unittest


class Ends(unittest.TestCase):
    def test_a(self): pass
    def test_b(self): os._exit(0)
"""
NODE = """\
import { test, describe, it, before } from 'node:test';
import assert from 'node:assert';

test('passes é <&"', () => console.log('# not ok 1 - passes'));
test('fails', () => assert.equal(1, 2));
test.skip('later', () => {});
describe('bill', () => {
  it('adds', () => {});
  describe('deep', () => { it('fails', () => assert.ok(0, 'one\\ntwo')); });
});
describe('hook', () => {
  before(() => { throw new Error('no database'); });
  it('never', () => {});
});
test('parent', async (t) => { await t.test('child', () => { throw new Error('no'); }); });
"""


def execute(folder: Path, command: str, files: dict[str, str]) -> CheckExecution:
    check = ProjectCheck(name="unit", command=command, runner=runner_of(command))
    return execute_check(LocalSandbox(folder, files, {}), check, 60.0)


def results(execution: CheckExecution) -> list[str]:
    return [f"{case.status} {case.id}" for case in execution.cases]


def test_the_results_of_unittest_are_reported(tmp_path: Path) -> None:
    files = {"test_a.py": UNITTEST, "test_broken.py": "import nowhere\n"}
    done = execute(tmp_path / "sandbox", "python -m unittest discover", files)
    assert sorted(results(done)) == sorted([
        "passed test_a.Results.test_passes", "failed test_a.Results.test_fails",
        "failed test_a.Results.test_raises", "failed test_a.Results.test_parts",
        "skipped test_a.Results.test_skipped", "skipped test_a.Results.test_expected",
        "failed test_a.Results.test_unexpected", "error setUpClass (test_a.NoDatabase)",
        "error test_a.NoSetUp.test_never", "error unittest.loader._FailedTest.test_broken",
    ])  # fmt: skip
    assert (done.exit_code, done.report_complete) == (1, True)
    [failed] = [case for case in done.cases if case.id.endswith("test_fails")]
    assert failed.file == "test_a.py"
    assert "AssertionError: 1 != 2" in failed.message
    assert {case.file for case in done.cases if case.status == "passed"} == {"test_a.py"}


def test_the_results_of_node_are_reported_with_their_files(tmp_path: Path) -> None:
    files = {"test/a.test.mjs": NODE, "test/broken.test.mjs": "import 'nowhere';\n"}
    done = execute(tmp_path / "sandbox", "node --test", files)
    assert [result.replace("test/a.test.mjs::", "") for result in results(done)] == [
        'passed passes é <&"', "failed fails", "skipped later", "passed bill::adds",
        "failed bill::deep::fails", "error hook::never", "error hook", "failed parent::child",
        "failed parent", "failed test/broken.test.mjs",
    ]  # fmt: skip
    assert (done.exit_code, done.report_complete) == (1, True)
    assert {case.file for case in done.cases} == {"test/a.test.mjs", "test/broken.test.mjs"}
    assert "1 == 2" in done.cases[1].message


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("python -m unittest discover", {"test_a.py": "import os, unittest\nos._exit(0)\n"}),
        ("python -m unittest test_b", {"test_b.py": ENDS}),
    ],
)
def test_a_process_that_ends_early_leaves_no_complete_report(
    tmp_path: Path, command: str, files: dict[str, str]
) -> None:
    done = execute(tmp_path / "sandbox", command, files)
    assert (done.exit_code, done.cases, done.report_complete) == (0, (), False)
