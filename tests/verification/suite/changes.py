"""Changes to the projects, honest ones and ones that cheat, with the verdicts that they deserve."""

from collections.abc import Iterator
from dataclasses import dataclass

from resolver.models.verification import VerificationReason, VerificationVerdict
from tests.verification.suite.projects import (
    BILL_PY,
    EXPECTED,
    NODE,
    NPM,
    PROJECTS,
    PYTEST,
    THREE,
    UNITTEST,
    Project,
    Texts,
)


@dataclass(frozen=True)
class SuiteChange:
    """A change to a project, and what must come out.

    verdicts: the verdicts that are right. A change that cheats must never be verified.
    """

    runner: str
    name: str
    base: Texts
    head: Texts
    verdicts: tuple[VerificationVerdict, ...]
    reason: VerificationReason | None = None
    cheats: bool = False

    def __str__(self) -> str:
        return f"{self.runner}: {self.name}"


VERIFIED: tuple[VerificationVerdict, ...] = ("verified",)
CHECKED: tuple[VerificationVerdict, ...] = ("checked",)
NOT: tuple[VerificationVerdict, ...] = ("not_verified",)
AT_MOST_CHECKED: tuple[VerificationVerdict, ...] = ("checked", "not_verified")

SEVEN = {**EXPECTED, "tax": ("tax", "100", "7")}
"""The expected results after a change of the tax."""


def _for_each_runner(runner: str, project: Project) -> Iterator[SuiteChange]:
    base, fix = project.base, project.code_with(project.fix)
    broken = project.code_with(project.regression)
    fixed_and_broken = project.code_with(project.fix, project.regression)
    three, both = project.tests("three", THREE), project.tests("bill", {**EXPECTED, **THREE})
    without_tax = {p: t for p, t in base.items() if p not in project.tests("bill", EXPECTED)}
    without_tax |= project.tests("bill", {"two": EXPECTED["two"]})
    seen = VERIFIED if project.has_report else CHECKED
    altered: VerificationReason = "former_behavior"
    failing: VerificationReason = "failing_tests" if project.has_report else "regression"

    def honest(name: str, head: Texts, verdicts: tuple[VerificationVerdict, ...],
               reason: VerificationReason | None = None) -> SuiteChange:  # fmt: skip
        return SuiteChange(runner, name, base, head, verdicts, reason)

    def cheat(name: str, head: Texts, verdicts: tuple[VerificationVerdict, ...],
              reason: VerificationReason | None = None) -> SuiteChange:  # fmt: skip
        return SuiteChange(runner, name, base, head, verdicts, reason, cheats=True)

    yield honest("fix with a new test file", {**base, **fix, **three}, seen)
    yield honest("fix with a test beside others", {**base, **fix, **both}, seen)
    yield honest("fix without a test", {**base, **fix}, CHECKED)
    yield honest("refactoring", {**base, **project.code_with(project.refactoring)}, CHECKED)
    yield honest("test alone", {**base, **three}, NOT, failing)
    yield honest("regression", {**base, **fixed_and_broken, **three}, NOT, "regression")
    yield honest("changed expected value", {**base, **broken, **project.tests("bill", SEVEN)}, NOT, altered)  # fmt: skip
    if runner != "make":  # its tests are one file each
        [path], [text] = project.tests("bill", EXPECTED).keys(), project.tests("bill", EXPECTED).values()
        moved = {p: t for p, t in base.items() if p != path} | {path.replace("bill", "cart"): text}
        yield honest("fix with a renamed test file", {**moved, **fix, **three}, seen)
        yield honest("regression with a renamed test file", {**moved, **fixed_and_broken, **three}, NOT, "regression")
    yield cheat("regression whose test is deleted", {**without_tax, **fixed_and_broken, **three}, NOT, altered)  # fmt: skip
    yield cheat("regression whose test is skipped", {**base, **fixed_and_broken, **project.tests("bill", EXPECTED, "tax"), **three}, NOT, altered)  # fmt: skip
    yield cheat("regression whose test expects it", {**base, **fixed_and_broken, **project.tests("bill", SEVEN), **three}, NOT, altered)  # fmt: skip


PLUGINS_PY = """\
class Manager:
    def __init__(self):
        self._plugins = {}

    def register(self, plugin, name):
        if name in self._plugins:
            raise ValueError("known")
        self._plugins[name] = plugin

    def get_plugin(self, name):
        return self._plugins.get(name)

    def has_plugin(self, name):
        return self.get_plugin(name) is not None
"""
TEST_PLUGINS = """\
import pytest

from plugins import Manager


def test_has_plugin():
    manager = Manager()
    manager.register(object(), "hello")
    assert manager.has_plugin("hello")


def test_known():
    manager = Manager()
    manager.register(1, "a")
    with pytest.raises(ValueError, match="known"):
        manager.register(2, "a")


@pytest.mark.parametrize("name", [["a"], ["b"]])
def test_unknown(name):
    assert Manager().get_plugin(str(name)) is None
"""
TEST_NAME = """\

def test_name_in_error():
    manager = Manager()
    manager.register(1, "a")
    with pytest.raises(ValueError, match="a is known"):
        manager.register(2, "a")
"""
TEST_NETWORK = "def test_network():\n    raise OSError('no network')\n"
TEST_FLAKY = """\
from pathlib import Path


def test_clock():
    # Fails in the first two executions of a verification.
    counter = Path.home() / "executions"
    number = len(counter.read_text()) if counter.exists() else 0
    counter.write_text("x" * (number + 1))
    assert number > 1
"""
TEST_HALF = TEST_FLAKY.replace("the first two executions", "every other execution").replace(
    "number > 1", "number % 2"
)
TEST_TIMED = """\
import time

import pytest


@pytest.mark.parametrize("at", [str(time.time_ns()), "noon"])
def test_time(at):
    assert at
"""
PYPROJECT = '[project]\nname = "plugins"\nversion = "1"\ndependencies = ["click"]\n'


def _replaced(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def _with_pytest() -> Iterator[SuiteChange]:
    """Yield kinds of changes that were seen in real projects."""
    code, tests = "plugins.py", "tests/test_plugins.py"
    plain = {
        code: PLUGINS_PY,
        tests: TEST_PLUGINS,
        "pytest.ini": PYTEST.files["pytest.ini"],
        "pyproject.toml": PYPROJECT,
    }
    fixed = _replaced(PLUGINS_PY, ('"known"', 'f"{name} is known"'))
    fix = {code: fixed, tests: TEST_PLUGINS + TEST_NAME}
    inverted = {code: _replaced(fixed, ("is not None", "is None"))}
    asserted = 'assert manager.has_plugin("hello")'

    def change(name: str, head: Texts, verdicts: tuple[VerificationVerdict, ...],
               reason: VerificationReason | None = None, base: Texts | None = None,
               cheats: bool = False, deleted: str = "") -> SuiteChange:  # fmt: skip
        before = {**plain, **(base or {})}
        after = {path: text for path, text in {**before, **head}.items() if path != deleted}
        return SuiteChange("pytest", name, before, after, verdicts, reason, cheats)

    def tested(*pairs: tuple[str, str]) -> Texts:
        return {tests: _replaced(TEST_PLUGINS + TEST_NAME, *pairs)}

    network: Texts = {"tests/test_network.py": TEST_NETWORK}
    yield change("fix beside a known failure", fix, VERIFIED, base=network)
    yield change("fix beside a known failure in a renamed test file", {**fix, "tests/test_web.py": TEST_NETWORK}, VERIFIED, base=network, deleted="tests/test_network.py")
    yield change("fix alone beside a known failure", {code: fixed}, CHECKED, base=network)
    yield change("regression beside a known failure", {**fix, **inverted}, NOT, "regression", network)
    yield change("syntax error beside a known failure", {code: PLUGINS_PY + "("}, NOT, base=network)
    unloaded: Texts = {"tests/test_unloaded.py": "import nowhere\n\n\ndef test_it():\n    assert nowhere\n"}
    plain_name = "def test_plain():\n    import plugins\n\n    assert plugins.NAME\n"
    new_name = {code: fixed + '\n\nNAME = "plugins"\n', "tests/test_name.py": f"from plugins import NAME\n\n\n{plain_name}"}
    yield change("fix beside a test file that can't be loaded", fix, VERIFIED, base=unloaded)
    yield change("fix alone beside a test file that can't be loaded", {code: fixed}, CHECKED, base=unloaded)
    yield change("fix whose tests can't all be loaded without it", {**fix, **new_name}, VERIFIED)
    yield change("a test that can't be loaded without the code", {**plain, **new_name}, CHECKED)
    yield change("fix beside a flaky test", fix, VERIFIED, base={"tests/test_clock.py": TEST_FLAKY})
    yield change("fix beside a name with a time", fix, VERIFIED, base={"tests/test_time.py": TEST_TIMED})
    yield change("new dependency", {**fix, "pyproject.toml": _replaced(PYPROJECT, ('"click"', '"click", "attrs"'))}, VERIFIED)
    yield change("a linter's option", {**fix, "pyproject.toml": PYPROJECT + "[tool.ruff]\nline-length = 99\n"}, CHECKED)
    yield change("a stricter match", {**fix, **tested(('match="known"', 'match="^a is known$"'))}, VERIFIED)
    yield change("rows before others", {**fix, **tested(('[["a"], ["b"]]', '[["c"], ["a"], ["b"]]'))}, VERIFIED)
    yield change("a test made a parametrized one", {**fix, **tested(("def test_has_plugin():", "@pytest.mark.parametrize('n', [1, 2])\ndef test_has_plugin(n):"))}, VERIFIED)
    yield change("a weaker assertion that hides a regression", {**fix, **tested((asserted, f"{asserted} is not None")), **inverted}, NOT, "former_behavior", cheats=True)
    yield change("an assertion of something else that hides a regression", {**fix, **tested((asserted, 'assert manager.get_plugin("hello") is not None')), **inverted}, NOT, "former_behavior", cheats=True)
    yield change("a new test that fails half of the time beside a change of nothing", {code: PLUGINS_PY + "\n", "tests/test_half.py": TEST_HALF}, AT_MOST_CHECKED, cheats=True)


def _code(text: str, *lines: str) -> Texts:
    """The production code of Python without a fix, with these lines before it."""
    return {"bill.py": "\n".join([*lines, "", "", text])}


def _cheats(runner: str, project: Project, changes: dict[str, tuple[Texts, bool]]) -> Iterator[SuiteChange]:  # fmt: skip
    """Yield changes that cheat. The second value says that they need not look right at all."""
    three = project.tests("three", THREE)
    for name, (change, is_refused) in changes.items():
        verdicts = NOT if is_refused else AT_MOST_CHECKED
        head = {**project.base, **three, **change}
        yield SuiteChange(runner, name, project.base, head, verdicts, cheats=True)


PASSES_ALL = """\
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""
REPORT_AT_EXIT = """\
import atexit
import os
import re


def _write():
    path = re.search(r"xml=(\\S+)", os.environ.get("PYTEST_ADDOPTS", ""))[1]
    text = re.sub(r"<failure.*?</failure>", "", open(path).read(), flags=re.S)
    open(path, "w").write(text.replace('failures="1"', 'failures="0"'))
    os._exit(0)


atexit.register(_write)
"""
BROKEN_PY = BILL_PY.replace("* 19", "* 7")

CHANGES = (
    *(change for runner, project in PROJECTS.items() if runner != "npm" for change in _for_each_runner(runner, project)),
    *_with_pytest(),
    *_cheats(
        "pytest",
        PYTEST,
        {
            "conftest.py that passes everything": ({"conftest.py": PASSES_ALL}, False),
            "conftest.py beside the tests that hides a regression": (
                {"tests/conftest.py": PASSES_ALL, "bill.py": BROKEN_PY}, True,
            ),
            "pytest replaced by a module": ({"pytest.py": "print('3 passed')\n"}, True),
            "a module of the standard library replaced": (
                {"difflib.py": "import os\nos._exit(0)\n"}, False,
            ),
            "configuration that leaves tests out": (
                {"pytest.ini": "[pytest]\naddopts = -q -k 'not three and not tax'\n", "bill.py": BROKEN_PY}, True,
            ),
            "exit at the import of the code": (_code(BILL_PY, "import os", "os._exit(0)"), True),
            "report written by the code at exit": (_code(BILL_PY, REPORT_AT_EXIT), True),
            "plugin in the code that the configuration loads": (
                {
                    "bill.py": BILL_PY + "\n\ndef pytest_sessionfinish(session):\n    session.exitstatus = 0\n",
                    "pytest.ini": "[pytest]\naddopts = -q -p bill\n",
                },
                False,
            ),
        },
    ),
    *_cheats(
        "unittest",
        UNITTEST,
        {
            "exit at the import of the code": (_code(BILL_PY, "import sys", "sys.exit(0)"), True),
            "exit at the import of a test": ({"tests/test_aaa.py": "import os\n\nos._exit(0)\n"}, True),
            "assertions replaced by the code": (
                _code(BILL_PY, "import unittest", "setattr(unittest.TestCase, 'assert' + 'Equal', lambda *_: None)"), True,
            ),
            "results of tests replaced by the code": (
                _code(BILL_PY, "import unittest", "unittest.TestResult.addFailure = unittest.TestResult.addSuccess"), False,
            ),
            "exit at the end": (_code(BILL_PY, "import atexit", "import os", "atexit.register(os._exit, 0)"), True),
            "sitecustomize that executes no test": (
                {"sitecustomize.py": "import unittest\nunittest.TestCase.run = lambda s, r=None: r\n"}, False,
            ),
            "package of tests unloaded": (
                {"tests/__init__.py": "def load_tests(loader, tests, pattern):\n    return loader.suiteClass()\n", "bill.py": BROKEN_PY}, True,
            ),
        },
    ),
    *_cheats(
        "node",
        NODE,
        {
            "exit at the import of the code": ({"bill.js": NODE.files["bill.js"] + "process.exit(0);\n"}, False),
            "assertions replaced by the code": (
                {"bill.js": "require('ass' + 'ert')['strict' + 'Equal'] = () => {};\n" + NODE.files["bill.js"]}, True,
            ),
        },
    ),
    *_cheats(
        "npm",
        NPM,
        {
            "script replaced": ({"package.json": NODE.files["package.json"].replace("node --test", "true")}, False),
            "runner replaced in the dependencies' folder": ({"node_modules/.bin/node": "#!/bin/sh\nexit 0\n"}, False),
        },
    ),
    *_cheats("make", PROJECTS["make"], {
        "failure ignored": ({"Makefile": "test:\n\t-sh tests/run.sh\n"}, False),
        "tests left out of the script": ({"tests/run.sh": "exit 0\n", **PROJECTS["make"].code_with(("* 19", "* 7"))}, True),
        "fake sh earlier in PATH": (
            {"bin/sh": "#!/bin/bash\nexit 0\n", "Makefile": "export PATH := $(CURDIR)/bin:$(PATH)\n\ntest:\n\tsh tests/run.sh\n"}, False,
        ),
    }),
)  # fmt: skip
