"""Finds changes to what decides which tests are run, how, and by which program."""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from operator import attrgetter, itemgetter
from pathlib import PurePosixPath
from typing import cast

from resolver.models.verification import TamperingFinding, TamperingKind
from resolver.security.shell.checkers import TESTERS
from resolver.verification.project_files import is_test_configuration, is_workflow_file
from resolver.verification.statements import (
    MAX_TEXT,
    CodeBlock,
    Statement,
    read_blocks,
    take_additions,
)

_RUNNERS = TESTERS | {
    "nose", "coverage", "python", "python3", "pip", "tape", "node", "npm", "npx", "pnpm", "yarn",
    "bun", "deno", "tsc", "go", "gotestsum", "cargo", "cargo-nextest", "rustc", "java", "javac",
    "mvn", "mvnw", "gradle", "gradlew", "dotnet", "make", "cmake", "gcc", "cc", "g++", "clang",
    "bash", "sh", "env", "bundle", "ruby", "rake", "php",
}  # fmt: skip
"""Names of programs that run tests, or that are started to run them."""

_RUNNER_MODULES = frozenset(
    {"pytest", "_pytest", "pluggy", "iniconfig", "nose", "nose2", "coverage", "xdist", "pytest_cov"}
)
_STANDARD_MODULES = sys.stdlib_module_names - {"test", "this", "antigravity"}
_PROGRAM_FOLDERS = frozenset(
    {"", "bin", ".bin", ".local/bin", "scripts", "usr/bin", "usr/local/bin"}
)
_IMPORT_FOLDERS = frozenset({"", "src", "lib", "test", "tests"})
_INSTALLED = re.compile(
    r"(?:.*/)?(?:node_modules|site-packages|\.?venv|\.tox|\.nox|\.yarn/releases"
    r"|\.pnp\.[cm]?js)(?:/.*)?"
    r"|\.mvn/.*|(?:.*/)?gradle/wrapper/.*|(?:.*/)?\.cargo/config(?:\.toml)?"
    r"|(?:.*/)?(?:gradlew|mvnw)(?:\.\w+)?"
    r"|(?:.*/)?vendor/.*(?:testify|gomega|ginkgo|testing|phpunit|pytest).*|__mocks__/.*"
    r"|(?:.*/)?(?:sitecustomize|usercustomize)(?:\.py|/.*)|.*\.pth|(?:.*/)?\.(?:envrc"
    r"|bashrc|profile|bash_profile)"
    r"|(?:.*/)?\.(?:noderc|npmrc|yarnrc(?:\.yml)?|node-version|env(?:\.test)?)"
)
"""Matches files that belong to installed programs or are loaded when one starts."""

_SECTION = re.compile(r"\[{1,2}\s*[\w.\-:\"'/ ]+\s*\]{1,2}$")
_TEST_SECTION = re.compile(
    r"pytest|coverage|^tox|testenv|\bnox|\.tox\b|hatch\.envs|poe\.tasks|pdm\.scripts"
    r"|entry.?points|poetry\.plugins"
    r"|^patch|profile\.test|^test$|\[test\]|unittest|nosetests|aliases|mutmut|ward"
)
_TEST_OPTION = re.compile(
    r"pytest11|addopts|testpaths|deselect|--ignore|fail.under|python_files"
    r"|python_functions|python_classes"
    r"|norecursedirs|collect_ignore|ini_options|harness\s*=\s*false|\b(?:auto)?tests?\s*=\s*false"
    r"|skipTests|testFailureIgnore|maven\.test\.skip|skipITs|ignoreFailures"
    r"|excludeTestsMatching|failIfNoTests"
    r"|<excludes?>|\benabled\s*=\s*false|onlyIf|VSTestTestCaseFilter|IsTestProject|NDEBUG"
    r"|^replace\b.*(?:testing|testify|ginkgo|gomega|go-cmp|quicktest|gotest|goconvey)"
    r"|(?:testify|ginkgo|gomega|go-cmp|quicktest|goconvey)\S*(?:\s+\S+)?\s*=>|WILL_FAIL|DISABLED"
    r"|\bpytest\s*@\s|setup_requires|tests_require|cmdclass|\bdoctest\s*=\s*false"
    r"|--no-run|passWithNoTests"
)
_HARMLESS = re.compile(
    r"[\[\]{}(),\"']*$|[\"']?[\w.-]+\s*:\s*[A-Za-z][^=]*$|minversion\b|[\"']?(?:error|default)\b"
)
_THRESHOLD = re.compile(
    r"fail.?under|threshold|branches|functions|\blines\b|statements"
    r"|max.(?:line.length|complexity|warnings)"
    r"|min.?(?:imum|score|coverage)|\bscore\b|covered.?ratio|target",
    re.IGNORECASE,
)
_IGNORES_FAILURE = re.compile(
    r"\|\|\s*(?:true|:|exit\s+0|echo)|;\s*(?:true|exit\s+0|:)\s*$|\bexit\s+0\b"
    r"|^-\s*\S|^\.(?:IGNORE|SILENT|SHELLFLAGS)"
    r"|^(?:export\s+)?(?:SHELL|MAKEFLAGS|PATH|CC|CXX|LD_PRELOAD)\s*[:?+]?="
    r"|\bset\s+\+e\b|\bNDEBUG\b|\$\(MAKE\)\s+-[ik]"
    r"|^@?(?:true|:)$|^@?echo\b.*(?:ok|pass)"
)
_TEST_TARGET = re.compile(
    r"^[\w.\-\s]*\b(?:tests?|check|verify|spec)\b[^=]*:(?!=)|\badd_test|\benable_testing|^test\s*\("
    r"|(?:^|[\s/@])(?:test[\w.-]*|pytest|ctest|bats|jest|tox|nose2?)(?:\s|$)"
    r"|\b(?:go|cargo|npm|mvn|gradle|dotnet)\s+(?:run\s+)?test\b"
)
_SCRIPT_NAME = re.compile(r"test|check|spec|coverage|lint|verify|^ci")
_SCRIPT_TOOLS = (
    "jest",
    "vitest",
    "mocha",
    "ava",
    "tap",
    "c8",
    "nyc",
    "overrides",
    "resolutions",
    "pnpm",
    "imports",
)
_REPLACED = re.compile(r"(?:file|link|portal|npm|git|github|https?|workspace)[+:\w]*:|\.{0,2}/")
_BUILT_IN_FIXTURES = frozenset(
    {
        "request",
        "capsys",
        "capfd",
        "caplog",
        "tmp_path",
        "tmpdir",
        "tmp_path_factory",
        "monkeypatch",
        "pytestconfig",
        "recwarn",
        "cache",
        "doctest_namespace",
        "record_property",
        "testdir",
        "pytester",
        "client",
        "db",
        "settings",
        "mocker",
        "event_loop",
    }
)
_PATCHES = re.compile(
    r"\b(?:setattr|monkeypatch|patch|atexit|builtins|settrace|_pytest|session"
    r"|exitstatus|exec|eval|__import__)\b"
    r"|\bsys\.|\bgc\.|\bos\.(?:_exit|environ|kill)|\.__\w+__\s*=|^[\w.]+\.\w+\s*="
)


Line = tuple[int, str]
"""The number of a line, and its text."""


def find_replaced_runner(path: str, old: str | None, new: str | None) -> Iterator[TamperingFinding]:
    """Yield a finding if the file takes the place of a program or module that runs tests."""
    if new is None or old == new:
        return
    at = PurePosixPath(path)
    folder = "" if str(at.parent) == "." else str(at.parent)
    is_installed = _INSTALLED.fullmatch(path) is not None
    stem = (
        at.name.partition(".")[0] if at.suffix in {".py", ".sh", ".js", ".cmd", ".bat"} else at.name
    )
    is_program = stem in _RUNNERS and folder in _PROGRAM_FOLDERS
    module, root = (stem, folder) if at.suffix == ".py" else ("", "")
    if at.name == "__init__.py":
        module = at.parent.name
        root = "" if str(at.parent.parent) == "." else str(at.parent.parent)
    shadows = module in _RUNNER_MODULES or (
        module in _STANDARD_MODULES and root in {"", "test", "tests"}
    )
    is_module = bool(module) and shadows and root in _IMPORT_FOLDERS
    if is_installed or (old is None and (is_program or is_module)):
        yield _finding("intercepted_runner", path, 0, at.name)


def find_changed_configuration(
    path: str, old: str | None, new: str | None
) -> Iterator[TamperingFinding]:
    """Yield the findings of a file that configures tests, builds or continuous integration."""
    before, after = old or "", new or ""
    name = PurePosixPath(path).name
    if name == "conftest.py":
        yield from _conftest(path, old, after)
    elif is_workflow_file(path):
        yield from _lines(path, before, after, "changed_workflow")
    elif name == "package.json":
        yield from _package(path, before, after)
    elif name in {"pyproject.toml", "setup.cfg", "Cargo.toml"}:
        yield from _sections(path, before, after)
    elif is_test_configuration(path):
        yield from _lines(path, before, after, "changed_test_configuration")
    else:
        yield from _build_file(path, before, after)


def _conftest(path: str, old: str | None, new: str) -> Iterator[TamperingFinding]:
    """Yield a finding for anything but new fixtures and helpers, which only new tests can use."""
    known = {block.name: block for block in read_blocks(path, old or "")}
    for block in read_blocks(path, new):
        before = known.get(block.name, CodeBlock(""))
        unmatched = Counter(statement.text for statement in before.all_statements)
        changed = take_additions(block.all_statements, unmatched, attrgetter("text"))
        removed = [text for text in unmatched.elements() if not _is_import(text)]
        if not block.name:
            changed = [
                statement
                for statement in changed
                if not _is_import(statement.text) and not _is_doc(statement)
            ]
        elif block.name not in known and _is_new_helper(block) and old is not None:
            changed = [
                statement for statement in block.statements if _PATCHES.search(statement.masked)
            ]
        if changed or (removed and block.name in known):
            line = changed[0].line if changed else block.line
            detail = changed[0].text if changed else removed[0]
            yield _finding("intercepted_runner", path, line, detail)


def _is_new_helper(block: CodeBlock) -> bool:
    """Return True for a function that pytest calls only if a test asks for it by its name."""
    marks = " ".join(mark.text for mark in block.marks)
    own = block.name.rpartition(".")[2]
    return (
        "autouse" not in marks
        and not own.startswith(("pytest_", "__"))
        and own not in _BUILT_IN_FIXTURES
        and "name=" not in marks.replace(" ", "")
        and not block.is_group
    )


def _is_import(text: str) -> bool:
    return text.startswith(("import ", "from ")) and not re.search(r"\bimport \*|;", text)


def _is_doc(statement: Statement) -> bool:
    return statement.text.startswith(('"', "'"))


def _significant(text: str) -> list[Line]:
    """Return the lines without comments and white space, with their numbers."""
    lines = []
    for number, line in enumerate(text[:MAX_TEXT].splitlines(), 1):
        bare = re.sub(r"(?:^|\s)(?:#|//|;).*", "", line[:2_000]).strip().rstrip(",")
        if bare:
            lines.append((number, bare))
    return lines


def _difference(old: str, new: str) -> tuple[list[str], list[Line]]:
    """Return the lines that are gone and those that are added."""
    return _compare(_significant(old), _significant(new))


def _compare(old: list[Line], new: list[Line]) -> tuple[list[str], list[Line]]:
    left = Counter(text for _, text in old)
    added = take_additions(new, left, itemgetter(1))
    return list(left.elements()), added


def _lines(path: str, old: str, new: str, kind: TamperingKind) -> Iterator[TamperingFinding]:
    """Yield one finding for each changed threshold, or one for the file."""
    removed, added = _difference(old, new)
    thresholds = list(_thresholds(path, removed, added))
    yield from thresholds
    if (removed or added) and not thresholds:
        number, text = added[0] if added else (0, removed[0])
        yield _finding(kind, path, number, text)


def _thresholds(path: str, removed: list[str], added: list[Line]) -> Iterator[TamperingFinding]:
    number_pattern = r"\d+(?:\.\d+)?"
    old = {re.sub(number_pattern, "?", text): text for text in removed}
    for number, text in added:
        other = old.get(re.sub(number_pattern, "?", text))
        if other is not None and _THRESHOLD.search(text):
            yield _finding("changed_threshold", path, number, f"{other} -> {text}")


def _sections(path: str, old: str, new: str) -> Iterator[TamperingFinding]:
    """Yield changes in the sections of a manifest that configure tests."""
    removed, added = _compare(_in_test_sections(old), _in_test_sections(new))
    more = [(number, text) for number, text in added if not _HARMLESS.match(text)]
    less = [text for text in removed if not _HARMLESS.match(text)]
    thresholds = list(_thresholds(path, less, more))
    yield from thresholds
    if (more or less) and not thresholds:
        number, text = more[0] if more else (0, less[0])
        yield _finding("changed_test_configuration", path, number, text)


def _in_test_sections(text: str) -> list[Line]:
    lines, inside = [], False
    for number, line in _significant(text):
        if _SECTION.match(line):
            inside = bool(_TEST_SECTION.search(line.strip("[] ")))
        elif inside or _TEST_OPTION.search(line):
            lines.append((number, line))
    return lines


def _package(path: str, old: str, new: str) -> Iterator[TamperingFinding]:
    """Yield changes to test scripts, to settings of test runners, and to the runners' origin."""
    before, after = _json(old), _json(new)
    if before is None or after is None:
        yield from _lines(path, old, new, "changed_test_configuration")
        return
    scripts, new_scripts = _table(before, "scripts"), _table(after, "scripts")
    for name in sorted({*scripts, *new_scripts}):
        old_script, new_script = scripts.get(name), new_scripts.get(name)
        hooks = name.startswith(("pre", "post"))
        if (
            old_script != new_script
            and _SCRIPT_NAME.search(name)
            and (old_script is not None or hooks)
        ):
            yield _finding(
                "changed_test_configuration", path, 0, f"{name}: {old_script} -> {new_script}"
            )
    for name in _SCRIPT_TOOLS:
        if before.get(name) != after.get(name):
            old_text, new_text = (
                json.dumps(scripts.get(name), indent=1) for scripts in (before, after)
            )
            yield from _lines(path, old_text, new_text, "changed_test_configuration")
    for table in ("dependencies", "devDependencies", "optionalDependencies"):
        known = _table(before, table)
        for name, version in _table(after, table).items():
            if known.get(name) != version and _REPLACED.match(str(version)) and _runs_tests(name):
                yield _finding("intercepted_runner", path, 0, f"{name}: {version}")


def _runs_tests(package: str) -> bool:
    return bool(
        set(re.split(r"[@/\-]", package)) & (_RUNNERS | {"chai", "jasmine", "testing", "sinon"})
    )


def _json(text: str) -> dict[str, object] | None:
    try:
        value = json.loads(text[:MAX_TEXT]) if text.strip() else {}
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def _table(package: dict[str, object], name: str) -> dict[str, object]:
    value = package.get(name)
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _build_file(path: str, old: str, new: str) -> Iterator[TamperingFinding]:
    """Yield changes to a build file that leave tests out or let their failures go unnoticed.

    A line that only grew, such as a list of tests, is none.
    """
    removed, added = _difference(old, new)
    for number, text in added:
        if _TEST_OPTION.search(text) or _IGNORES_FAILURE.search(text):
            yield _finding("changed_test_configuration", path, number, text)
            return
    words = [set(text.split()) for _, text in added][:200]
    for text in removed:
        tests = _TEST_TARGET.search(text) and not text.startswith(("#", "//"))
        if tests and not any(set(text.split()) <= line_words for line_words in words):
            yield _finding("changed_test_configuration", path, 0, text)
            return


def _finding(kind: TamperingKind, path: str, line: int, detail: str) -> TamperingFinding:
    return TamperingFinding(kind=kind, path=path, line=line, detail=detail[:200])
