"""Finds added code that ends the process, takes the test runner's place, or asks if it is
tested."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from resolver.models.verification import TamperingFinding, TamperingKind
from resolver.verification.hard_coded_results import Values, find_hard_coded_results
from resolver.verification.statements import CodeBlock, Statement, source_language, take_additions

_DETECTS = re.compile(
    r"[\"']pytest[\"']\s+(?:not\s+)?in\s+sys\.modules"
    r"|[\"']unittest[\"']\s+(?:not\s+)?in\s+sys\.modules"
    r"|sys\.modules\b.{0,40}[\"'](?:_?pytest|unittest)\b|\bPYTEST_(?:CURRENT_TEST|VERSION|XDIST)\w*"
    r"|\bJEST_WORKER_ID\b|\bVITEST(?:_WORKER_ID|_POOL_ID)?\b|\bMOCHA_\w+|\bNODE_TEST_CONTEXT\b"
    r"|\bprocess\.env\.(?:CI|GITHUB_ACTIONS|GITHUB_WORKFLOW)\b"
    r"|\b(?:environ|getenv|Getenv|LookupEnv|env::var|ENV|env)\b\W{1,20}(?:get\b\W{1,4})?"
    r"(?:CI|GITHUB_\w+|BUILD_ID|TRAVIS|JENKINS_\w+|RESOLVER\w*|CONTINUOUS_INTEGRATION)[\"'`]"
    r"|\$\{?(?:CI|GITHUB_ACTIONS|BATS_\w+)\b|/\.dockerenv|/proc/(?:1|self)/(?:cgroup"
    r"|cmdline|environ)"
    r"|\btesting\.Testing\(\)|typeof\s+(?:jest|describe|it|vi)\b|\bflag\.Lookup\(\s*\"test\."
    r"|[\"'][^\"'\n]{0,20}test[\"'].{0,60}\bsys\.(?:argv|orig_argv|modules)\b"
    r"|\bsys\.(?:argv|orig_argv|modules)\b.{0,60}[\"'][^\"'\n]{0,20}test[\"']|(?:inspect\.stack"
    r"|sys\._getframe)\(.*(?:test|filename|f_code)"
    r"|getStackTrace\(\).*(?:junit|[tT]est)|process\.argv.{0,60}(?:jest|mocha|vitest)"
    r"|npm_lifecycle_event|cfg!\(test\)|NODE_ENV\b.{0,12}[\"']test[\"']|__coverage__"
)
_INTERCEPTS = re.compile(
    r"\b(?:_pytest|unittest|pytest|pluggy)\.[\w.]+\s*=[^=]|\bsetattr\(\s*(?:_pytest"
    r"|unittest|pytest|builtins|TestCase)\b"
    r"|\bTestCase\.\w+\s*=[^=]|\bTestReport\.\w+\s*=[^=]|\bbuiltins\.\w+\s*=[^=]|__builtins__\b"
    r"|\bglobal(?:This)?\.(?:expect|it|test|describe|assert)\s*="
    r"|[.\]]assert\w*\s*=[^=>]|\bsetattr\([^,\n]{1,100},\s*[\"']assert|\[[\"']assert\w*[\"']\]\s*=[^=>]"
    r"|\brequire\(\s*[\"'](?:node:)?(?:assert|test|chai)\b[^\"'\n]{0,20}[\"']\s*\)\s*[.\[][^=\n]{1,60}=[^=>]"
    r"|\bassert\.\w+\s*=[^=>]|\bsys\.settrace\(|\bsys\.modules\[\s*[\"\'](?:_?pytest"
    r"|unittest|pluggy|builtins)\b|\bsys\.meta_path\b"
    r"|\bModule\._load\s*=|\brequire\.cache\b|\bjunit_?xml|\bjunit\.xml|TEST-[\w*.]*\.xml|--junit"
    r"|#\s*define\s+(?:assert|ASSERT\w*|EXPECT\w*|CHECK|REQUIRE|NDEBUG)\b|-DNDEBUG"
    r"|macro_rules!\s*assert"
    r"|\bassert_eq\s*=|^(?:export\s+)?PATH=|os\.environ\[[\"']PATH[\"']\]\s*\+?="
    r"|process\.env\.PATH\s*=|PYTEST_ADDOPTS|\bpytest_plugins\s*="
    r"|\bpytest11\b|\bpytest\.exit\(|^alias\b"
)
_HOOK = re.compile(
    r"pytest_(?:runtest_\w+|pyfunc_call|collection\w*|collect_\w+|sessionstart|sessionfinish"
    r"|pycollect_\w+|itemcollected|ignore_collect|configure|unconfigure|cmdline_\w+"
    r"|load_initial_conftests"
    r"|report_\w+|terminal_summary|make_\w+|assertrepr_\w+|assertion_pass"
    r"|exception_interact|generate_tests"
    r"|deselected|addoption|plugin_registered|addhooks|fixture_setup)$"
)
_BY_NAME = re.compile(
    r"\b[gs]etattr\(\s*(?:[^,\n]{1,80},\s*[\"'](?:_exit|exit|abort|kill|exec\w*|assert\w*)[\"']"
    r"|(?:os|sys|builtins)\s*,\s*[^\"'\s])"
    r"|\b(?:import_module|__import__)\(\s*[\"'](?:unittest|_?pytest|pluggy|builtins)\b"
    r"|\bf_(?:locals|globals)\b|\bgc\.get_(?:objects|referrers)\b|\bctypes\.pythonapi\b"
    r"|\b__(?:eq|ne)__\s*=\s*lambda\b|\bfrom\s+os\s+import\b[^\n]*\b(?:_exit|abort|kill)\b"
    r"|\bvars\(\s*(?:os|sys|builtins)\s*\)|\b(?:os|sys|builtins)\.__dict__"
)
"""Matches code that reaches a part of the runner, or ends the process, by a name in a string."""

_TEST_LIBRARY = re.compile(r"(?:import|from)\s+(?:unittest|_?pytest|pluggy|mock)\b")
"""Matches an import that only tests need."""

_SHADOWED = re.compile(
    r"(?P<declared>(?:const|let|var)\s+)?(?<![.\w])(?:jest|expect|assert|describe|it|test)\s*=[^=>]"
)
"""Matches an assignment to a function of a JavaScript test runner."""

_LIBRARY = re.compile(
    r"(?:await\s+)?(?:require|import)\(\s*[\"'][\w@][^\"'\n]*[\"']\s*\)[\w.]*;?$"
    r"|(?:chai|sinon|\w*[tT]est|\w*[bB]ase)\.\w+\b"
)
"""Matches a function of a library at the right of such an assignment."""

_SEAM = re.compile(r"[\"'`]\s*\+\s*[\"'`]")
"""Matches the place where two strings are joined, so that a name in two parts can be read."""

_EXIT = re.compile(
    r"\b(?:sys\.exit|os\._exit|exit|quit|_exit|_Exit|quick_exit|process\.exit"
    r"|os\.Exit|System\.exit|exitProcess"
    r"|Environment\.Exit|Deno\.exit|process::exit|halt)\s*\(\s*(?:0|EXIT_SUCCESS|None"
    r"|code\s*=\s*0)?\s*\)"
    r"|\braise\s+SystemExit\b(?!\(\s*[1-9])|\bprocess\.exitCode\s*=\s*0|\bprocess\.reallyExit\b"
    r"|__import__\(\s*[\"']os[\"']\s*\)\._exit|\bos\._exit\b"
    r"|\bprocess\.kill\(\s*process\.pid|\bos\.(?:kill|abort)\(|\bos\.killpg\(\s*(?:0|os\.getp)|\bos\.exec\w+\("
    r"|\bprocess\.abort\(|\bsignal\.raise_signal\("
)
_ANY_EXIT = re.compile(
    r"(?<![\w.])(?:sys\.exit|exit|quit)\((?!\s*(?:[1-9]\d*\s*\)|[frb]{0,2}[\"']|[\w.]+\())"
    r"|\bprocess\.exit\((?!\s*[1-9])"
)
"""Matches an exit whose code is not known to be another than 0: no number, message or call."""

_HARD_EXIT = re.compile(
    r"\bos\._exit\(\s*0\b|\b_exit\s*\(\s*(?:0|EXIT_SUCCESS)|\b_Exit\(|\bquick_exit\("
    r"|__attribute__\s*\(\(\s*constructor"
    r"|\bRuntime\.getRuntime\(\)\.halt|process\.exitCode\s*=\s*0|\bprocess\.reallyExit\b"
    r"|process\.on\(\s*[\"']exit[\"']"
)
_SHELL_EXIT = re.compile(r"^(?:exit(?:\s+0)?|trap\b.*\bexit\b.*|exec\s+true)$")
_HIDDEN = re.compile(
    r"\b(?:exec|eval)\s*\(|__import__\(|\bb64decode\(|\bmarshal\.loads|\bFunction\(\s*[\"']"
)
_TEST_PATH = re.compile(
    r"[\"'`][^\"'`\n]{0,60}\btests?/[^\"'`\n]{0,60}\.(?:py|[cm]?[jt]sx?|go|rs|java|rb)[\"'`]"
)
_READS = re.compile(
    r"\b(?:r?glob|open|read_text|read_bytes|readFile\w*|ReadFile|listdir|scandir|walk)\("
)
"""Together they match a statement that reads the source of a test, from which code could take the
values that it expects."""

_COMPARES = re.compile(r"[=!]=|\bis\b|\b__eq__\b|\beq\(|\bNotImplemented\b|compare|equal", re.I)
"""Matches the body of a method that says whether two values are equal."""

_ALWAYS_EQUAL = re.compile(r"\b__(?:eq|ne|bool|contains)__\b")
_MAIN = re.compile(
    r"\bif\s+__name__\b|\bint\s+main\b|\bfn\s+main\b|\bfunc\s+main\b|\bvoid\s+main\b|^#!"
)
_CALLED = re.compile(r"(?<![\w.])(\w{1,100})\(")
_GUARD = re.compile(r"""if\s+__name__\s*==\s*["']__main__["']\s*:""")


def find_suspicious_code(
    path: str,
    old: list[CodeBlock],
    new: list[CodeBlock],
    *,
    is_test: bool,
    expected: frozenset[Values],
) -> Iterator[TamperingFinding]:
    """Yield the suspicious statements that a source file has after the change and had not before.

    expected: the values of each assertion in tests, to recognize hard-coded results.
    """
    language = source_language(path)
    known = Counter(statement.text for block in old for statement in block.all_statements)
    everything = [statement for block in new for statement in block.all_statements]
    has_main = any(_MAIN.search(statement.text) for statement in everything)
    guarded = _guarded(new[0].statements) if new else set()
    loaded = _loaded(new, guarded) if language in {"python", "java"} else set()
    names = {block.name for block in old}
    for block in new:
        if _HOOK.match(block.name) and block.name not in names and language == "python":
            yield _found("intercepted_runner", path, block.line, block.name)
        for statement in take_additions(block.all_statements, known, attrgetter("text")):
            if statement in guarded or statement.is_text:
                continue
            at_load = not block.name or block.name in loaded
            kind = _kind(
                statement, block, language, is_test=is_test, has_main=has_main, at_load=at_load
            )
            if kind is not None:
                yield _found(kind, path, statement.line, statement.text)
        if not is_test:
            yield from _always_equal(path, block, old)
    if not is_test:
        for answer in find_hard_coded_results(old, new, expected):
            detail = f"{', '.join(answer.inputs)}: {', '.join(answer.value)}"
            yield _found("hard_coded_result", path, answer.statement.line, detail)


def _guarded(statements: Iterable[Statement]) -> set[Statement]:
    """Return the statements of a Python file's `if __name__ == "__main__":`."""
    found, inside = set(), False
    for statement in statements:
        inside = _is_main_guard(statement) or (inside and statement.indent > 0)
        if inside:
            found.add(statement)
    return found


def _loaded(blocks: Sequence[CodeBlock], guarded: set[Statement]) -> set[str]:
    """Return the names of the classes, and of the functions that are called as the file loads."""
    groups = {block.name for block in blocks if block.is_group}
    outside = (
        statement
        for block in blocks
        if not block.name or block.is_group
        for statement in block.statements
        if statement not in guarded
    )
    return groups | {name for statement in outside for name in _CALLED.findall(statement.masked)}


def _kind(
    statement: Statement,
    block: CodeBlock,
    language: str,
    *,
    is_test: bool,
    has_main: bool,
    at_load: bool,
) -> TamperingKind | None:
    text, masked = _SEAM.sub("", statement.text), statement.masked
    at_top = not block.name or block.is_group
    reads_tests = not is_test and _TEST_PATH.search(text) and _READS.search(text)
    if _DETECTS.search(text) or reads_tests:
        return "detects_tests"
    if _INTERCEPTS.search(text if not is_test else masked) or _BY_NAME.search(text):
        return "intercepted_runner"
    if language == "script" and _is_shadowed(statement, is_test=is_test):
        return "intercepted_runner"
    if language == "python" and not is_test and _TEST_LIBRARY.match(masked):
        return "intercepted_runner"
    if language == "shell":
        return "early_exit" if is_test and at_top and _SHELL_EXIT.match(masked) else None
    if _EXIT.search(masked) or _HARD_EXIT.search(masked):
        return _exit_kind(
            statement, block, language, is_test=is_test, has_main=has_main, at_load=at_load
        )
    if at_load and _ANY_EXIT.search(masked) and (language == "python" or statement.indent == 0):
        return "early_exit"
    if language == "python" and _HIDDEN.search(masked) and (at_top if is_test else at_load):
        return "early_exit"
    if is_test and at_top and language == "python" and _is_patch(masked):
        return "intercepted_runner"
    return None


def _is_shadowed(statement: Statement, *, is_test: bool) -> bool:
    """Return True if a function of the test runner is replaced.

    A variable of that name replaces it in its own file only, and most tests declare one for a
    function that they take from a library.
    """
    match = _SHADOWED.search(statement.masked)
    if match is None or (match["declared"] and not is_test):
        return False
    value = statement.text[match.end() - 1 :].strip()
    return not (match["declared"] and _LIBRARY.match(value))


def _exit_kind(
    statement: Statement,
    block: CodeBlock,
    language: str,
    *,
    is_test: bool,
    has_main: bool,
    at_load: bool,
) -> TamperingKind | None:
    """Return "early_exit" if the exit can be reached without the program's own main function."""
    own = block.name.rpartition(".")[2]
    loads = at_load or own in {"init", "TestMain", "setUpModule", "__init__", "setup_module"}
    if _HARD_EXIT.search(statement.masked):
        return "early_exit"
    if language == "python":
        reached = loads or is_test
        return "early_exit" if reached and not _is_inside_string_check(statement) else None
    if language == "script":
        return "early_exit" if is_test or (loads and statement.indent == 0) else None
    if language == "c":
        return None if has_main and not is_test else "early_exit" if own != "main" else None
    is_static = language == "java" and at_load and bool(block.name)
    return "early_exit" if is_test or is_static or own == "init" else None


def _is_inside_string_check(statement: Statement) -> bool:
    """Return True for a test that expects an exit, as in `with pytest.raises(SystemExit)`."""
    return "raises" in statement.masked or "assertRaises" in statement.masked


def _is_main_guard(statement: Statement) -> bool:
    return bool(_GUARD.match(statement.text))


def _is_patch(masked: str) -> bool:
    """Return True for an assignment to an attribute of something imported, at the top of a test."""
    return bool(re.match(r"[a-zA-Z_]\w*(?:\.\w+)+\s*=[^=]", masked)) and not masked.startswith(
        ("self.", "cls.", "app.", "pytestmark")
    )


def _always_equal(path: str, block: CodeBlock, old: list[CodeBlock]) -> Iterator[TamperingFinding]:
    """Yield a finding for an added comparison that does not look at what it compares with."""
    if not _ALWAYS_EQUAL.search(block.name) or not block.statements:
        return
    text = " ".join(statement.masked for statement in block.statements)
    if any(
        old_block.name == block.name and old_block.statements == block.statements
        for old_block in old
    ):
        return
    other = re.search(r"\(\s*\w+\s*,\s*(\w+)", block.marks[-1].masked if block.marks else "")
    is_blind = other and not re.search(rf"\b{other[1]}\b", text)
    is_other = re.search(r"\b__(?:eq|ne)__\b", block.name) and not _COMPARES.search(text)
    if text == "return True" or is_blind or is_other:
        yield _found("weakened_assertion", path, block.line, f"{block.name}: {text}")


def _found(kind: TamperingKind, path: str, line: int, detail: str) -> TamperingFinding:
    return TamperingFinding(kind=kind, path=path, line=line, detail=detail[:200])
