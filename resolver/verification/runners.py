"""The test runners: how each is recognized in a command, asked for a report, and given some tests.

A command is looked at only as far as words that `&&` joins. In any other shell syntax no runner is
recognized: the command is executed as it is, and its exit code alone counts.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from posixpath import basename, dirname

from resolver.models.verification import ProjectCheck, ReportFormat

MAX_TESTS = 100
"""Maximum number of files or tests that are named in a command."""

MAX_COMMAND = 4_000
"""Maximum number of characters of a command in which a runner is looked for. A longer one is a
script, which takes seconds to be split."""

FILES = "{files}"
"""Stands for the test files in the command of a check that can be narrowed."""

MANAGERS = frozenset({"npm", "pnpm", "yarn", "bun"})
"""Programs that run the scripts of package.json."""

_PYTHON = (".py",)
_SCRIPT = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
# A file that can't be loaded, for a module that is not installed, ends no other file's tests.
_ADDOPTS = (
    "--junitxml={folder}/report%s.xml -o junit_family=xunit1 --maxfail=0 "
    "--continue-on-collection-errors"
)
_PYTEST = {"PYTEST_ADDOPTS": _ADDOPTS % ""}
_REPORTS = re.compile(
    r"--(?:junit-?xml|json|outputFile|log-junit|output-junit|report-formatter|reporter-outfile)\b"
)
"""Matches options of a command that asks for a report itself: a second one would contradict it."""

_NODE = (
    "--test-reporter={folder}.mjs --test-reporter-destination={folder}/report.xml "
    "--test-reporter=spec --test-reporter-destination=stdout"
)


@dataclass(frozen=True)
class TestRunner:
    """A test runner, and what makes it write a report. In all texts, `{folder}` is the folder of
    reports, which belongs to one execution.

    words: patterns of the words that start it, the first of which is the program's name.
    report: glob of its reports, without a folder a name below the repository; None for the output.
    options: added at the end of its arguments. replace: a part of the command, and its replacement.
    variables: added to those that the check sets itself.
    endings: of test files that it takes as arguments.
    """

    words: tuple[str, ...]
    report_format: ReportFormat = "junit"
    report: str | None = "{folder}/report.xml"
    options: str = ""
    replace: tuple[str, str] | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    endings: tuple[str, ...] = ()


RUNNERS: Mapping[str, TestRunner] = {
    # pytest reads the project's `addopts` first, then this variable. The family xunit1 is the only
    # one with the file of a test: https://docs.pytest.org/en/stable/reference/customize.html
    "pytest": TestRunner((r"pytest|py\.test",), variables=_PYTEST, endings=_PYTHON),
    # tox 4 reads TOX_OVERRIDE. pytest replaces the variable in the path of the report.
    "tox": TestRunner(
        ("tox",), report="{folder}/report-*.xml",
        variables={"PYTEST_ADDOPTS": _ADDOPTS % "-${{TOX_ENV_NAME}}",
                   "TOX_OVERRIDE": "testenv.pass_env+=PYTEST_ADDOPTS"}),
    "nox": TestRunner(("nox",), variables=_PYTEST),
    "unittest": TestRunner(
        ("unittest",), replace=("-m unittest", "{folder}.py -m unittest"), endings=_PYTHON),
    "django": TestRunner(
        (r"manage\.py", "test"), replace=("manage.py test", "{folder}.py manage.py test")),
    # The processes of single files ignore it: https://nodejs.org/api/cli.html#node_optionsoptions
    "node": TestRunner(("node", "--test"), variables={"NODE_OPTIONS": _NODE}, endings=_SCRIPT),
    "jest": TestRunner(
        ("jest",), "jest-json", "{folder}/report.json",
        "--json --outputFile={folder}/report.json --bail=0",
        endings=_SCRIPT),
    "vitest": TestRunner(
        ("vitest",), options="--reporter=default --reporter=junit "
        "--outputFile.junit={folder}/report.xml --bail=0", endings=_SCRIPT),
    # Of several reporters, mocha takes the last.
    "mocha": TestRunner(
        ("_?mocha",), options="--reporter=xunit --reporter-option=output={folder}/report.xml "
        "--no-bail", endings=_SCRIPT),
    "bun": TestRunner(
        ("bun", "test"), options="--reporter=junit --reporter-outfile={folder}/report.xml",
        endings=_SCRIPT),
    # The results go to a file: they are longer than an output may be.
    "go": TestRunner(
        ("go", "test"), "go-json", "{folder}/report.json", "> {folder}/report.json",
        ("go test", "go test -json"), endings=("_test.go",)),
    "nextest": TestRunner(
        ("cargo", "nextest"), report="target/nextest/*/**/*.xml",
        replace=("nextest run", "nextest run --no-fail-fast")),
    "cargo": TestRunner(
        ("cargo", "test"), "cargo", None, replace=("cargo test", "cargo test --no-fail-fast"),
        variables={"CARGO_TERM_COLOR": "never"}),
    "maven": TestRunner(
        ("mvnw?", "test|verify|install"), report="**/target/*-reports/TEST-*.xml",
        options="--fail-at-end"),
    "gradle": TestRunner(
        ("gradlew?", "(?:.*:)?(?:test|check|build)"), report="**/build/test-results/**/*.xml",
        options="--continue"),
    "ctest": TestRunner(("ctest",), options="--output-junit {folder}/report.xml"),
    "phpunit": TestRunner(("phpunit",), options="--log-junit {folder}/report.xml"),
    "bats": TestRunner(
        ("bats",), options="--report-formatter junit --output {folder}", endings=(".bats",)),
}  # fmt: skip


def split_command(command: str) -> list[list[str]]:
    """Return the words of the commands that `&&` joins; [] if the shell would see more in it."""
    text = command.strip()
    if len(text) > MAX_COMMAND or any(char in text for char in "\n`") or "$(" in text:
        return []
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    commands: list[list[str]] = [[]]
    try:
        for part in lexer:
            if part == "&&":
                commands.append([])
            elif part.startswith("#") or not part.strip("();<>|&"):
                return []
            else:
                commands[-1].append(part)
    except ValueError:
        return []
    return commands


def runner_of(command: str) -> str | None:
    """Return the runner that the last of the joined commands starts, as long as no other does."""
    found = [_runner_of_words(words) for words in split_command(command)]
    return found[-1] if found and not any(found[:-1]) else None


def _runner_of_words(words: Sequence[str]) -> str | None:
    for name, runner in RUNNERS.items():
        program, *rest = runner.words
        starts = (n for n, word in enumerate(words) if re.fullmatch(program, basename(word)))
        start = next(starts, None)
        if start is not None and all(
            any(re.fullmatch(pattern, word) for word in words[start + 1 :]) for pattern in rest
        ):
            return name
    return None


def script_of(command: str) -> str | None:
    """Return the package script that a command ends with, such as "test"; None for none."""
    commands = split_command(command)
    words = [word for word in commands[-1] if word[:1] != "-"] if commands else []
    if len(words) < 2 or basename(words[0]) not in MANAGERS:
        return None
    if words[1] in {"run", "run-script"}:
        return words[2] if len(words) > 2 else None
    return "test" if words[1] in {"t", "test"} and words[0] != "bun" else None


def append(command: str, *arguments: str) -> str:
    """Return the command with further arguments for its runner."""
    words = (split_command(command) or [[]])[-1]
    # Only npm takes the arguments before `--` for itself.
    separate = bool(script_of(command)) and basename(words[0]) == "npm" and "--" not in words
    return " ".join([command, *(["--"] if separate else []), *arguments])


def takes_arguments(text: str) -> bool:
    """Return True if arguments at the end of a package script reach its runner, which names none.

    A word that is no option may be a file: with further ones, more than those would be executed.
    """
    words = (split_command(text) or [[]])[-1]
    counts = range(1, len(words) + 1)
    end = next((count for count in counts if _runner_of_words(words[:count])), len(words))
    return all(word[:1] == "-" or word == "run" for word in words[end:])


def instrument(check: ProjectCheck, folder: str) -> ProjectCheck:
    """Return the check with a command and variables by which its runner writes a report.

    Only options that the runners document are added, and the project's own stay. A check that
    declares its report is left as it is.

    folder: absolute path of an existing empty folder outside the work tree, of this execution
        alone. It has no white space and no characters that are special in a glob.
    """
    runner = RUNNERS.get(check.runner) if check.runner else None
    if check.report_format or check.report or runner is None or _REPORTS.search(check.command):
        return check
    command = check.command
    if runner.replace:
        old, new = runner.replace
        if command.count(old) != 1:
            return check
        command = command.replace(old, new.format(folder=folder))
    if runner.options:
        command = append(command, *runner.options.format(folder=folder).split())
    variables = dict(check.environment)
    for name, value in runner.variables.items():
        earlier = variables.get(name, "")
        variables[name] = f"{earlier} {value.format(folder=folder)}".strip()
    report = runner.report and runner.report.format(folder=folder)
    if report and not report.startswith("/") and check.folder:
        report = f"{check.folder}/{report}"
    return check.model_copy(
        update={
            "command": command,
            "environment": variables,
            "report": report,
            "report_format": runner.report_format,
        }
    )


def reporter_of(check: ProjectCheck) -> tuple[str, bytes] | None:
    """Return the ending and the content of the program that the instrumented check expects beside
    its folder of reports; None if it expects none."""
    reporters = resources.files("resolver.sandbox")
    if check.runner == "node":
        return ".mjs", reporters.joinpath("node_report.mjs").read_bytes()
    if check.runner in {"unittest", "django"}:
        return ".py", reporters.joinpath("unittest_report.py").read_bytes()
    return None


def narrow_to_files(check: ProjectCheck, files: Sequence[str]) -> ProjectCheck | None:
    """Return the check for the tests in these files; None if it can't be narrowed to them.

    files: paths relative to the repository. Those that the runner does not take are left out.
    """
    runner = RUNNERS.get(check.runner) if check.runner else None
    endings = runner.endings if runner else ()
    start = f"{check.folder}/" if check.folder else ""
    inside = [
        path.removeprefix(start)
        for path in files
        if path.startswith(start) and (not check.runner or path.endswith(endings))
    ]
    if check.runner == "go":
        inside = sorted({f"./{dirname(path)}" for path in inside})
    return _narrowed(check, inside)


def narrow_to_tests(check: ProjectCheck, ids: Sequence[str]) -> ProjectCheck | None:
    """Return the check for the tests with these ids; None if its runner takes no ids.

    pytest takes the ids of its reports: https://docs.pytest.org/en/stable/how-to/usage.html
    unittest takes dotted names: https://docs.python.org/3/library/unittest.html#command-line-interface
    """
    start = f"{check.folder}/" if check.folder else ""
    own = [test_id.removeprefix(start) for test_id in ids]
    if check.runner == "pytest" and all("::" in test_id for test_id in own):
        return _narrowed(check, own)
    if check.runner == "unittest" and all(re.fullmatch(r"[\w.]+", test_id) for test_id in own):
        return _narrowed(check, own)
    return None


def _narrowed(check: ProjectCheck, arguments: Sequence[str]) -> ProjectCheck | None:
    if not check.narrowed or not 0 < len(arguments) <= MAX_TESTS:
        return None
    # A name that looks like an option must not become one.
    safe = [f"./{argument}" if argument.startswith("-") else argument for argument in arguments]
    command = check.narrowed.replace(FILES, shlex.join(safe))
    return check.model_copy(update={"command": command})
