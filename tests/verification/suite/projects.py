"""The same small project for each runner: `total` adds only two numbers, and `tax` is right.

Each project writes its tests from the results that they expect, so that one table of changes suits
all of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from resolver.models.verification import ProjectCheck

Texts = dict[str, str]

EXPECTED = {"two": ("total", "10 20", "30"), "tax": ("tax", "100", "19")}
"""The tests of the base: function, arguments and expected result, by name."""

THREE = {"three": ("total", "1 2 4", "7")}
"""The test that fails without the fix."""

Expectations = Mapping[str, tuple[str, str, str]]


@dataclass(frozen=True)
class Project:
    """A project and its runner.

    files: all files but the tests. code: the file with the functions.
    fix, regression, refactoring: replacements in the code.
    write_tests: returns test files by path, from the group's name, the expected results, and the
        names of tests that are skipped.
    has_report: False if only the exit code says something.
    """

    check: ProjectCheck
    files: Texts
    code: str
    fix: tuple[str, str]
    regression: tuple[str, str]
    refactoring: tuple[str, str]
    write_tests: Callable[[str, Expectations, frozenset[str]], Texts]
    has_report: bool = True

    def tests(self, group: str, expected: Expectations, *skipped: str) -> Texts:
        return self.write_tests(group, expected, frozenset(skipped))

    @property
    def base(self) -> Texts:
        return {**self.files, **self.tests("bill", EXPECTED)}

    def code_with(self, *replacements: tuple[str, str]) -> Texts:
        text = self.files[self.code]
        for old, new in replacements:
            assert old in text, old
            text = text.replace(old, new, 1)
        return {self.code: text}


BILL_PY = """\
def total(items):
    result = 0
    for item in items[:2]:
        result += item
    return result


def tax(amount):
    return amount * 19 // 100
"""
_PY = {
    "fix": ("items[:2]", "items"),
    "regression": ("* 19", "* 7"),
    "refactoring": ("    result = 0\n    for item in items[:2]:\n        result += item\n"
                    "    return result\n", "    return sum(items[:2])\n"),
}  # fmt: skip


def _python_call(function: str, arguments: str) -> str:
    numbers = arguments.replace(" ", ", ")
    return f"bill.total([{numbers}])" if function == "total" else f"bill.{function}({numbers})"


def _pytest(group: str, expected: Expectations, skipped: frozenset[str]) -> Texts:
    lines = ["import pytest", "", "import bill"]
    for name, (function, arguments, result) in expected.items():
        lines += ["", "", *(["@pytest.mark.skip"] if name in skipped else [])]
        lines += [f"def test_{name}():"]
        lines += [f"    assert {_python_call(function, arguments)} == {result}"]
    return {f"tests/test_{group}.py": "\n".join([*lines, ""])}


def _unittest(group: str, expected: Expectations, skipped: frozenset[str]) -> Texts:
    lines = ["import unittest", "", "import bill", "", "", f"class {group.title()}Test(unittest.TestCase):"]  # fmt: skip
    for name, (function, arguments, result) in expected.items():
        lines += ['    @unittest.skip("")'] if name in skipped else []
        lines += [f"    def test_{name}(self):"]
        lines += [f"        self.assertEqual({_python_call(function, arguments)}, {result})", ""]
    return {f"tests/test_{group}.py": "\n".join(lines)}


PYTEST = Project(
    check=ProjectCheck(name="pytest", command="python -m pytest", runner="pytest"),
    files={"bill.py": BILL_PY, "pytest.ini": "[pytest]\naddopts = -q -p no:cacheprovider\n"},
    code="bill.py",
    write_tests=_pytest,
    **_PY,
)
UNITTEST = Project(
    check=ProjectCheck(name="unittest", command="python -m unittest discover", runner="unittest"),
    files={"bill.py": BILL_PY, "tests/__init__.py": ""},
    code="bill.py",
    write_tests=_unittest,
    **_PY,
)

BILL_JS = """\
exports.total = (items) => items.slice(0, 2).reduce((a, b) => a + b, 0);
exports.tax = (amount) => Math.floor((amount * 19) / 100);
"""


def _node(group: str, expected: Expectations, skipped: frozenset[str]) -> Texts:
    lines = ["const test = require('node:test');", "const assert = require('node:assert');",
             "const bill = require('../bill');"]  # fmt: skip
    for name, (function, arguments, result) in expected.items():
        numbers = arguments.replace(" ", ", ")
        call = f"bill.total([{numbers}])" if function == "total" else f"bill.{function}({numbers})"
        marked = "test.skip" if name in skipped else "test"
        lines += ["", f"{marked}('{name}', () => {{"]
        lines += [f"  assert.strictEqual({call}, {result});", "});"]
    return {f"test/{group}.test.js": "\n".join([*lines, ""])}


NODE = Project(
    check=ProjectCheck(name="node", command="node --test", runner="node"),
    files={
        "package.json": '{"name": "bill", "version": "1.0.0", "scripts": {"test": "node --test"}}\n',
        "bill.js": BILL_JS,
    },
    code="bill.js",
    fix=(".slice(0, 2)", ""),
    regression=("* 19", "* 7"),
    refactoring=("(a, b) => a + b", "(sum, item) => sum + item"),
    write_tests=_node,
)

NPM = replace(NODE, check=ProjectCheck(name="npm test", command="npm test", runner="node"))

BILL_SH = """\
#!/bin/sh
if [ "$1" = tax ]; then
    echo $(($2 * 19 / 100))
    exit
fi
sum=0
for n in "$2" "$3"; do
    sum=$((sum + n))
done
echo $sum
"""
_SH = {
    "fix": ('for n in "$2" "$3"; do', 'shift\nfor n in "$@"; do'),
    "regression": ("* 19", "* 7"),
    "refactoring": ("sum=$((sum + n))", ": $((sum += n))"),
}


def _scripts(group: str, expected: Expectations, skipped: frozenset[str]) -> Texts:
    return {
        f"tests/test_{name}.sh": (
            "exit 77\n"
            if name in skipped
            else f'[ "$(./bill.sh {function} {arguments})" = {result} ]\n'
        )
        for name, (function, arguments, result) in expected.items()
    }


MAKE = Project(
    check=ProjectCheck(name="make test", command="make test"),
    files={
        "bill.sh": BILL_SH,
        "Makefile": "test:\n\tsh tests/run.sh\n\n.PHONY: test\n",
        "tests/run.sh": (
            'status=0\nfor test in tests/test_*.sh; do\n  sh "$test"\n'
            '  case $? in 0|77) ;; *) echo "FAILED $test"; status=1 ;; esac\ndone\nexit $status\n'
        ),
    },
    code="bill.sh",
    write_tests=_scripts,
    has_report=False,
    **_SH,
)

PROJECTS = {
    "pytest": PYTEST,
    "unittest": UNITTEST,
    "node": NODE,
    "make": MAKE,
    "npm": NPM,
}
