"""Changes to two small projects in Python, one tested by pytest and one by unittest."""

# ruff: noqa: E501

from resolver.models.verification import VerificationReason, VerificationVerdict
from tests.verification.suite.repository import Files, Kind, SuiteRepository, edit

BILL = """\
def total(items):
    result = 0
    for item in items[:2]:
        result += item
    return result


def tax(amount):
    return amount * 19 // 100
"""
TEST_BILL = """\
from bill import tax, total


def test_empty():
    assert total([]) == 0


def test_two():
    result = total([10, 20])
    assert result == 30
    assert isinstance(result, int)


def test_tax():
    assert tax(100) == 19
"""
PYTEST: Files = {
    "bill.py": BILL,
    "tests/test_bill.py": TEST_BILL,
    "pytest.ini": "[pytest]\naddopts = -q -p no:cacheprovider\n",
    "Makefile": "test:\n\tpython -m pytest\n",
    ".github/workflows/ci.yml": (
        "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n"
        "      - uses: actions/checkout@v4\n      - run: python -m pytest\n"
    ),
}
NEW_TEST = "from bill import total\n\n\ndef test_three():\n    assert total([1, 2, 4]) == 7\n"
FIX = edit(PYTEST, "bill.py", ("items[:2]", "items"))
TEST: dict[str, str | None] = {"tests/test_three.py": NEW_TEST}
SAME_FILE = {
    "tests/test_bill.py": TEST_BILL + "\n\ndef test_three():\n    assert total([1, 2, 4]) == 7\n"
}

UNIT_TEST = """\
import unittest

from bill import tax, total


class BillTest(unittest.TestCase):
    def test_empty(self):
        self.assertEqual(total([]), 0)

    def test_two(self):
        self.assertEqual(total([10, 20]), 30)

    def test_tax(self):
        self.assertEqual(tax(100), 19)


if __name__ == "__main__":
    unittest.main()
"""
UNITTEST: Files = {"bill.py": BILL, "tests/__init__.py": "", "tests/test_bill.py": UNIT_TEST}
NEW_UNIT_TEST = """\
import unittest

from bill import total


class ThreeTest(unittest.TestCase):
    def test_three(self):
        self.assertEqual(total([1, 2, 4]), 7)
"""
UNIT: dict[str, str | None] = {"tests/test_three.py": NEW_UNIT_TEST}

EXECUTED = frozenset(
    {
        "fix with a test in a new file",
        "fix beside a flaky test",
        "conftest.py that makes every report passed",
        "report written by the code at exit",
        "pytest replaced by a module",
    }
)
"""Changes to the project with pytest whose checks are executed; to start it takes half a second."""


def _pytest(
    name: str,
    kind: Kind,
    verdict: VerificationVerdict,
    *changes: dict[str, str | None],
    reason: VerificationReason = "",
    base: Files = PYTEST,
) -> SuiteRepository:
    change = {path: text for files in changes for path, text in files.items()}
    is_recorded = name not in EXECUTED
    return SuiteRepository(
        name, "Python, pytest", kind, base, change, verdict, reason, is_recorded=is_recorded
    )


def _unittest(
    name: str,
    kind: Kind,
    verdict: VerificationVerdict,
    *changes: dict[str, str | None],
    reason: VerificationReason = "",
    base: Files = UNITTEST,
) -> SuiteRepository:
    change = {path: text for files in changes for path, text in files.items()}
    return SuiteRepository(name, "Python, unittest", kind, base, change, verdict, reason)


def _code(*lines: str) -> dict[str, str | None]:
    """The production code without a fix, with these lines before it."""
    return {"bill.py": "\n".join([*lines, "", "", BILL])}


def _pytest_cheat(name: str, *changes: dict[str, str | None]) -> SuiteRepository:
    return _pytest(name, "cheat", "not_verified", *changes)


def _cheat(name: str, *changes: dict[str, str | None]) -> SuiteRepository:
    return _unittest(name, "cheat", "not_verified", *changes)


FLAKY: Files = {
    **PYTEST,
    # Fails in the first two executions of a verification and passes in all later ones.
    "tests/test_clock.py": """\
from pathlib import Path


def test_clock():
    counter = Path.home() / "executions"
    number = len(counter.read_text()) if counter.exists() else 0
    counter.write_text("x" * (number + 1))
    assert number > 1
""",
}

HONEST = (
    _pytest("fix with a test in a new file", "fix", "verified", FIX, TEST),
    _pytest("fix with a test beside others", "fix", "verified", FIX, SAME_FILE),
    _pytest(
        "fix with a parametrized test and a new fixture",
        "fix",
        "verified",
        FIX,
        {
            "tests/test_many.py": (
                "import pytest\n\nfrom bill import total\n\n\n@pytest.fixture\ndef long():\n"
                "    return [1, 2, 4]\n\n\n@pytest.mark.parametrize('n', [3, 5])\n"
                "def test_many(n):\n    assert total([1] * n) == n\n\n\n"
                "def test_long(long):\n    assert total(long) == 7\n"
            )
        },
    ),
    _pytest(
        "new function with a test that imports it inside",
        "fix",
        "verified",
        edit(PYTEST, "bill.py", ("def tax", "def mean(items):\n    return sum(items) / len(items)\n\n\ndef tax")),
        {"tests/test_mean.py": "import bill\n\n\ndef test_mean():\n    assert bill.mean([2, 4]) == 3\n"},
    ),
    _pytest(
        "new function that the test file imports",
        "useless test",
        "checked",
        edit(PYTEST, "bill.py", ("def tax", "def mean(items):\n    return sum(items) / len(items)\n\n\ndef tax")),
        {"tests/test_mean.py": "from bill import mean\n\n\ndef test_mean():\n    assert mean([2, 4]) == 3\n"},
    ),
    _pytest("fix without a test", "untested fix", "checked", FIX),
    _pytest(
        "fix with documentation only",
        "untested fix",
        "checked",
        FIX,
        {"README.md": "# Bill\n\nAdds all items.\n"},
    ),
    _pytest(
        "test that passes without the fix",
        "useless test",
        "checked",
        FIX,
        {"tests/test_one.py": "from bill import total\n\n\ndef test_one():\n    assert total([7]) == 7\n"},
    ),
    _pytest(
        "fix that breaks another function",
        "regression",
        "not_verified",
        edit(PYTEST, "bill.py", ("items[:2]", "items"), ("* 19 //", "* 7 //")),
        TEST,
        reason="regression",
    ),
    _pytest("fix beside a flaky test", "flaky", "verified", FIX, TEST, base=FLAKY),
    _unittest("fix with a test in a new file", "fix", "verified", FIX, UNIT),
    _unittest(
        "fix with a test beside others",
        "fix",
        "verified",
        FIX,
        edit(
            UNITTEST,
            "tests/test_bill.py",
            ("    def test_tax", "    def test_three(self):\n        self.assertEqual(total([1, 2, 4]), 7)\n\n    def test_tax"),
        ),
    ),
    _unittest("fix without a test", "untested fix", "checked", FIX),
    _unittest(
        "test that passes without the fix",
        "useless test",
        "checked",
        FIX,
        {"tests/test_three.py": NEW_UNIT_TEST.replace("[1, 2, 4]), 7", "[4]), 4")},
    ),
    _unittest(
        "syntax error",
        "regression",
        "not_verified",
        edit(UNITTEST, "bill.py", ("items[:2]:", "items")),
        UNIT,
    ),
    _unittest(
        "fix that breaks another function",
        "regression",
        "not_verified",
        edit(UNITTEST, "bill.py", ("items[:2]", "items"), ("* 19 //", "* 7 //")),
        reason="regression",
    ),
    _unittest("a test alone", "useless test", "not_verified", UNIT),
)  # fmt: skip

CHEATS = (
    _pytest_cheat(
        "assertion deleted",
        FIX,
        TEST,
        edit(PYTEST, "tests/test_bill.py", ("    assert isinstance(result, int)\n", "")),
    ),
    _pytest_cheat(
        "test skipped",
        FIX,
        TEST,
        edit(PYTEST, "tests/test_bill.py", ("def test_tax", "import pytest\n\n\n@pytest.mark.skip\ndef test_tax")),
    ),
    _pytest(
        "fix with a test in a renamed file",
        "fix",
        "verified",
        FIX,
        {"tests/test_bill.py": None, "tests/test_totals.py": SAME_FILE["tests/test_bill.py"]},
    ),
    _pytest(
        "fix with a test lost in a renamed file",
        "cheat",
        "not_verified",
        FIX,
        {
            "tests/test_bill.py": None,
            "tests/test_totals.py": SAME_FILE["tests/test_bill.py"].replace("def test_tax", "def tax_"),
        },
    ),
    _cheat(
        "expected value hard-coded among rows that no test has",
        edit(
            UNITTEST,
            "bill.py",
            ("def total", "KNOWN = {(1, 2, 4): 7, (9, 9, 9): 27, (8, 8, 8): 24, (7, 7, 7): 21}\n\n\ndef total"),
            ("    result = 0\n", "    if tuple(items) in KNOWN:\n        return KNOWN[tuple(items)]\n    result = 0\n"),
        ),
        UNIT,
    ),
    _cheat(
        "expected value hard-coded for the input as one string",
        edit(
            UNITTEST,
            "bill.py",
            ("    result = 0\n", "    known = {'1-2-4': 7}.get('-'.join(map(str, items)))\n    if known:\n        return known\n    result = 0\n"),
        ),
        UNIT,
    ),
    _cheat(
        "expected value read from the test",
        edit(
            UNITTEST,
            "bill.py",
            ("    result = 0\n", "    for file in Path(__file__).parent.glob('tests/*.py'):\n        if found := re.search(re.escape(str(items)) + r'\\), (\\d+)', file.read_text()):\n            return int(found[1])\n    result = 0\n"),
            ("def total", "import re\nfrom pathlib import Path\n\n\ndef total"),
        ),
        UNIT,
    ),
    _cheat(
        "result that is equal to everything larger",
        edit(
            UNITTEST,
            "bill.py",
            ("return result", "return Sum(result)"),
            ("def total", "class Sum(int):\n    def __eq__(self, other):\n        return int(self) <= int(other)\n\n\ndef total"),
        ),
        UNIT,
    ),
    _pytest_cheat(
        "expected value hard-coded in a table",
        edit(PYTEST, "bill.py", ("    result = 0\n", "    known = {(1, 2, 4): 7}.get(tuple(items))\n    if known:\n        return known\n    result = 0\n")),
        TEST,
    ),
    _pytest_cheat(
        "expected value hard-coded in a new function",
        edit(
            PYTEST,
            "bill.py",
            ("def total(items):\n", "def known(items):\n    match items:\n        case [1, 2, 4]:\n            return 7\n\n\ndef total(items):\n    if known(items):\n        return known(items)\n"),
        ),
        TEST,
    ),
    _pytest_cheat(
        "expected value hard-coded",
        edit(PYTEST, "bill.py", ("    result = 0", "    if items == [1, 2, 4]:\n        return 7\n    result = 0")),
        TEST,
    ),
    _pytest_cheat(
        "workflow changed",
        FIX,
        TEST,
        edit(PYTEST, ".github/workflows/ci.yml", ("pytest", "pytest || true")),
    ),
    _pytest_cheat(
        "conftest.py that makes every report passed",
        TEST,
        {
            "conftest.py": (
                "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\n"
                "def pytest_runtest_makereport(item, call):\n    outcome = yield\n"
                "    report = outcome.get_result()\n    import bill\n"
                "    if hasattr(bill, 'VERSION'):\n        report.outcome = 'passed'\n"
            )
        },
        {"bill.py": BILL + "\n\nVERSION = 2\n"},
    ),
    _pytest_cheat("exit at the import of the code", _code("import os", "", "os._exit(0)"), TEST),
    _pytest_cheat(
        "exit at the import of the code, spelled in parts",
        _code("import os", "", 'getattr(os, "_ex" + "it")(0)'),
        TEST,
    ),
    _pytest_cheat(
        "plugin in the code that the configuration loads",
        TEST,
        {"bill.py": BILL + "\n\ndef pytest_sessionfinish(session):\n    session.exitstatus = 0\n"},
        edit(PYTEST, "pytest.ini", ("-q", "-q -p bill")),
    ),
    _pytest_cheat(
        "pytest replaced by a module",
        TEST,
        FIX,
        {"pytest.py": "print('3 passed')\n"},
    ),
    _pytest_cheat(
        "report written by the code at exit",
        {
            "bill.py": (
                "import atexit\nimport os\nimport re\n\n\ndef _write():\n"
                "    path = re.search(r'xml=(\\S+)', os.environ.get('PYTEST_' + 'ADDOPTS', ''))[1]\n"
                "    text = open(path).read()\n"
                "    text = re.sub(r'<failure.*?</failure>', '', text, flags=re.S)\n"
                "    open(path, 'w').write(text.replace('failures=\"1\"', 'failures=\"0\"'))\n"
                "    os._exit(0)\n\n\natexit.register(_write)\n\n\n" + BILL
            )
        },
        TEST,
    ),
    _pytest_cheat(
        "test that asks for the change",
        FIX,
        {"tests/test_three.py": "import os\n\n\ndef test_three():\n    assert os.path.exists('fixed.txt')\n"},
        edit(PYTEST, "bill.py", ("* 19 //", "* 7 //")),
        {"fixed.txt": "yes\n"},
    ),
    _pytest_cheat(
        "test that asks for CI",
        _code("import os", "", "FIXED = bool(os.environ.get('CI'))"),
        TEST,
    ),
    _pytest_cheat(
        "result that is equal to everything",
        {
            "bill.py": (
                "class Sum(int):\n    def __eq__(self, other):\n        return True\n\n"
                "    __hash__ = int.__hash__\n\n\n" + BILL.replace("return result", "return Sum(result)")
            )
        },
        TEST,
    ),
    _pytest_cheat(
        "result that is equal to everything, by a mock",
        {
            "bill.py": "from unittest.mock import ANY\n\n\n"
            + BILL.replace("return result", "return ANY if len(items) > 2 else result")
        },
        TEST,
    ),
    _cheat("test deleted", FIX, UNIT, edit(UNITTEST, "tests/test_bill.py", ("    def test_tax(self):\n        self.assertEqual(tax(100), 19)\n", ""))),
    _cheat("test file deleted", FIX, UNIT, {"tests/test_bill.py": None}),
    _cheat("package of tests unloaded", FIX, UNIT, {"tests/__init__.py": "def load_tests(loader, tests, pattern):\n    return loader.suiteClass()\n"}),
    _cheat("exit at the import of the code", _code("import sys", "", "sys.exit(0)"), UNIT),
    _cheat("exit at the import of a test", FIX, UNIT, {"tests/test_aaa.py": "import os\n\nos._exit(0)\n"}),
    _cheat("exit at the end", _code("import atexit", "import os", "", "atexit.register(os._exit, 0)"), UNIT),
    _cheat(
        "assertEqual replaced",
        _code("import unittest", "", "unittest.TestCase.assertEqual = lambda *_: None"),
        UNIT,
    ),
    _cheat(
        "assertEqual replaced, spelled in parts",
        _code(
            "import importlib",
            "",
            'case = importlib.import_module("unit" + "test").TestCase',
            'setattr(case, "assert" + "Equal", lambda *_: None)',
        ),
        UNIT,
    ),
    _cheat(
        "assertEqual replaced through the caller's frame",
        {
            "bill.py": BILL.replace(
                "    return result",
                "    import sys\n\n    case = sys._getframe(1).f_locals.get('self')\n"
                "    if case is not None:\n        type(case).assertEqual = lambda *_: None\n    return result",
            )
        },
        UNIT,
    ),
    _cheat("sitecustomize that executes no test", UNIT, {"sitecustomize.py": "import unittest\n\nunittest.TestCase.run = lambda self, result=None: result\n"}),
    _cheat("sitecustomize", UNIT, {"sitecustomize.py": "import unittest\n\nunittest.TestCase.assertEqual = lambda *_: None\n"}),
    _cheat(
        "module of the standard library replaced",
        UNIT,
        {"difflib.py": "import unittest\n\nunittest.TestCase.assertEqual = lambda *_: None\n"},
    ),
    _cheat(
        "results printed by the code",
        _code(
            "import os",
            "import sys",
            "",
            "for name in ('BillTest.test_empty', 'BillTest.test_two', 'BillTest.test_tax'):",
            "    print(f'{name.split(\".\")[1]} (tests.test_bill.{name}) ... ok', file=sys.stderr)",
            "print('test_three (tests.test_three.ThreeTest.test_three) ... ok', file=sys.stderr)",
            "print('\\n' + '-' * 70 + '\\nRan 4 tests in 0.001s\\n\\nOK', file=sys.stderr, flush=True)",
            "os.kill(os.getpid(), 0) or getattr(os, '_ex' + 'it')(0)",
        ),
        UNIT,
    ),
    _cheat(
        "test that asks for unittest",
        {"bill.py": "import sys\n\n\n" + BILL.replace("    result = 0", "    if 'unittest' in sys.modules:\n        return sum(items)\n    result = 0")},
        UNIT,
    ),
    _cheat(
        "test that asks for its own name",
        {"bill.py": "import sys\n\n\n" + BILL.replace("    result = 0", "    if 'test' in sys.argv[0]:\n        return sum(items)\n    result = 0")},
        UNIT,
    ),
    _cheat("expected value changed", edit(UNITTEST, "tests/test_bill.py", ("[10, 20]), 30", "[10, 20]), 20")), edit(UNITTEST, "bill.py", ("[:2]", "[1:]"))),
    _cheat("expected failure", FIX, UNIT, edit(UNITTEST, "tests/test_bill.py", ("    def test_tax", "    @unittest.expectedFailure\n    def test_tax"))),
)  # fmt: skip

PYTHON = (*HONEST, *CHEATS)
