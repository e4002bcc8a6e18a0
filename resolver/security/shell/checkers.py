"""Defines which commands test, build or lint. This is the only list of them.

A command is recognized by its program, as that program is documented, or by the name of a file or
task that it runs. A command that only shows, lists or installs something is not a check.
"""

import re
from collections.abc import Sequence
from posixpath import basename

from resolver.security.shell.wrappers import unwrap_command

TESTERS = frozenset(
    [
        "pytest",
        "py.test",
        "unittest",
        "nose2",
        "nosetests",
        "tox",
        "nox",
        "trial",
        "stestr",
        "doctest",
        "jest",
        "vitest",
        "mocha",
        "_mocha",
        "ava",
        "tap",
        "rspec",
        "phpunit",
        "pest",
        "ctest",
        "bats",
        "busted",
        "prove",
        "behave",
        "cucumber",
    ]
)
"""Programs that only run tests."""

LINTERS = frozenset(
    [
        "mypy",
        "pyright",
        "basedpyright",
        "pylint",
        "flake8",
        "pyflakes",
        "tsc",
        "vue-tsc",
        "eslint",
        "oxlint",
        "stylelint",
        "shellcheck",
        "golangci-lint",
        "staticcheck",
        "rubocop",
        "standardrb",
        "phpstan",
        "psalm",
        "hadolint",
        "actionlint",
        "zizmor",
        "yamllint",
        "lint-imports",
    ]
)
"""Programs that only analyze source code."""

_ALWAYS_CHECKS = TESTERS | LINTERS

_SUBCOMMANDS = {
    "go": "test vet build",
    "cargo": "test t nextest check c clippy build b",
    "dotnet": "test build",
    "swift": "test build",
    "mix": "test credo dialyzer",
    "deno": "test check lint",
    "zig": "test build",
    "ruff": "check",
    "biome": "check lint ci",
    "ty": "check",
    "pyre": "check",
    "playwright": "test",
    "cypress": "run",
    "pre-commit": "run",
    "rails": "test",
    "artisan": "test",
    "manage.py": "test check",
    "setup.py": "test",
    "ng": "test lint build",
    "react-scripts": "test build",
    "dart": "test analyze",
    "flutter": "test analyze build",
    "bazel": "test build",
    "buck": "test build",
    "buck2": "test build",
    "stack": "test build",
    "cabal": "test build",
    "dune": "test runtest build",
    "rebar3": "eunit ct dialyzer",
    "mvn": "test verify package install integration-test compile test-compile",
    "mvnw": "test verify package install integration-test compile test-compile",
}
"""Subcommands that are checks, by program, separated by spaces."""

FORMATTERS = frozenset({"ruff", "black", "isort", "prettier", "rustfmt", "gofmt", "biome"})
"""Formatters. They are checks only with one of `_CHECK_OPTIONS`, which change no file."""

_CHECK_OPTIONS = frozenset({"--check", "--check-only", "--diff", "-c", "-l", "--list-different"})

_TASK_RUNNERS = frozenset(
    [
        "npm",
        "yarn",
        "pnpm",
        "bun",
        "make",
        "gmake",
        "gradle",
        "gradlew",
        "sbt",
        "lein",
        "rake",
        "just",
        "task",
        "composer",
        "invoke",
        "inv",
        "poe",
        "ninja",
        "meson",
        "nimble",
        "pants",
        "nx",
        "turbo",
        "lerna",
        "hatch",
        "pdm",
        "rye",
        "mise",
        "ant",
    ]
)
"""Programs that run a task by its name."""

_CHECK_TASK = re.compile(
    r"(?:[\w.-]*:)*(?:(?:\w*[_.-])?(?:py|unit|run)?"
    r"(?:tests?|specs?|check|lint|verify|build|typecheck|vet)(?:[_:./-]\S*)?"
    r"|[a-z]\w*(?:Tests?|Check|Lint)|test[A-Z]\w*)"
)
"""Names of tasks that are checks."""

_VALUE_OPTIONS = {
    "make": {"-C", "-f", "-I", "-o", "-W", "--directory", "--file"},
    "gmake": {"-C", "-f", "-I", "-o", "-W", "--directory", "--file"},
    "npm": {"-w", "--workspace", "--prefix", "-C"},
    "pnpm": {"-F", "--filter", "-C", "--dir"},
    "yarn": {"--cwd"},
    "gradle": {"-p", "-b", "-c", "-I", "-x", "--exclude-task", "--project-dir"},
    "gradlew": {"-p", "-b", "-c", "-I", "-x", "--exclude-task", "--project-dir"},
    "ninja": {"-C", "-f"},
    "python": {"-W", "-X"},
    "node": {"-r", "--require", "--import", "--loader"},
    "go": {"-C"},
    "mvn": {"-f", "-pl", "-P", "-s"},
    "mvnw": {"-f", "-pl", "-P", "-s"},
}
"""Options that take the next word as their value, for programs where that word could be mistaken
for a task or a file."""

_RUNNERS = {
    "npx": (),
    "bunx": (),
    "uvx": (),
    "pipx": ("run",),
    "pnpm": ("exec", "dlx"),
    "yarn": ("exec", "dlx", "run", ""),
    "bun": ("x",),
    "coverage": ("run",),
    "npm": ("exec",),
}  # fmt: skip
"""Programs that run another program, named after one of these words. An empty tuple needs no such
word; an empty string means that the word may be left out."""

_INTERPRETERS = frozenset(
    [
        "python",
        "pypy",
        "node",
        "bash",
        "sh",
        "zsh",
        "ruby",
        "perl",
        "php",
        "bun",
        "tsx",
        "ts-node",
        "deno",
    ]
)
_VERSION_SUFFIX = re.compile(r"(?<=[a-z])-?\d[\d.]*$")
_TEST_FOLDERS = frozenset({"test", "tests", "spec", "specs", "__tests__"})
_TEST_FILE = re.compile(
    r"(?:\S*[_.-])?(?:run[_-]?)?(?:tests?|specs?)(?:[_.-]\S*)?"
    r"|(?:\S*[_-])?(?:run[_-]?)?(?:checks?|lint)(?:\.\w+)?"
)
"""Names of files and scripts that run tests or checks."""

_SHOW_OPTIONS = frozenset(
    [
        "--help",
        "--version",
        "--collect-only",
        "--co",
        "--dry-run",
        "--list",
        "--listTests",
        "--list-tests",
        "--no-run",
        "--setup-plan",
        "--fixtures",
        "--markers",
        "--just-print",
        "--recon",
        "--exit-zero",
        "--showConfig",
        "--print-config",
        "--show-config",
        "--show-files",
        "--show-settings",
        "--init",
    ]
)
"""Options with which any program only shows something."""

_SHOW_OPTIONS_BY_PROGRAM = {
    "make": {"-n", "-q", "-t", "-h"},
    "gmake": {"-n", "-q", "-t", "-h"},
    "ctest": {"-N"},
    "tox": {"-l", "-a"},
    "nox": {"-l"},
    "go": {"-list", "-n"},
    "pytest": {"-h", "-V"},
    "mypy": {"-h", "-V"},
    "gradle": {"-m"},
    "gradlew": {"-m"},
}
"""Further options, by program, with which a check only shows something, or succeeds whatever it
found."""

_MAX_DEPTH = 6
_MAX_WORD_CHARACTERS = 200
"""Maximum characters of a word that are matched with a pattern."""


def find_check(argv: Sequence[str], depth: int = 0) -> tuple[str, ...]:
    """Return the words of the check that a command runs; empty if it runs none.

    Programs that run the check are left out: `python -m pytest -q` gives `pytest -q`.

    argv: the words without quotes, with wrappers such as `sudo` removed.
    """
    if not argv or depth > _MAX_DEPTH:
        return ()
    name, args = _program(argv[0]), list(argv[1:])
    if _only_shows(name, args):
        return ()
    inner_argv = _command_of_runner(name, args) or _command_of_module(name, args)
    if inner_argv and (check := find_check(unwrap_command(tuple(inner_argv)), depth + 1)):
        return check
    return tuple(argv) if _is_check(argv[0], name, args) else ()


def _program(word: str) -> str:
    name = basename(word)
    return _VERSION_SUFFIX.sub("", name) if len(name) <= _MAX_WORD_CHARACTERS else ""


def _only_shows(name: str, args: Sequence[str]) -> bool:
    show_options = _SHOW_OPTIONS_BY_PROGRAM.get(name, set())
    return any(
        arg.partition("=")[0] in _SHOW_OPTIONS
        or arg in show_options
        or arg.startswith(("-DskipTests", "-Dmaven.test.skip"))
        for arg in args
    )


def _command_of_runner(name: str, args: Sequence[str]) -> Sequence[str]:
    """Return the command that a runner such as `npx` or `coverage run` runs; empty if none."""
    if name not in _RUNNERS:
        return ()
    arguments = _from_operand(name, args)
    subcommands = _RUNNERS[name]
    if subcommands and (
        not arguments or (arguments[0] not in subcommands and "" not in subcommands)
    ):
        return ()
    if subcommands and arguments[0] in subcommands:
        arguments = _from_operand(name, arguments[1:], allow_module=name == "coverage")
    if name == "coverage" and arguments:
        return ("python", *arguments)
    return arguments


def _command_of_module(name: str, args: Sequence[str]) -> Sequence[str]:
    """Return the command that `python -m` runs, under the module's name or its test file."""
    if name not in {"python", "pypy"}:
        return ()
    arguments = _from_operand(name, args, allow_module=True)
    if len(arguments) < 2 or arguments[0] != "-m":
        return ()
    if _is_test_file(module := arguments[1].replace(".", "/")):
        return ("python", f"{module}.py", *arguments[2:])
    return (arguments[1].partition(".")[0], *arguments[2:])


def _from_operand(name: str, args: Sequence[str], *, allow_module: bool = False) -> Sequence[str]:
    """Return the arguments from the first operand on.

    allow_module: or from `-m`, if that comes first.
    """
    value_options, index = _VALUE_OPTIONS.get(name, set()), 0
    while index < len(args) and args[index].startswith(("-", "+")):
        if (allow_module and args[index] == "-m") or args[index] == "-c":
            break
        if args[index] == "--":
            return args[index + 1 :]
        index += 2 if args[index] in value_options else 1
    return args[index:]


def _is_check(program: str, name: str, args: Sequence[str]) -> bool:
    if name in _ALWAYS_CHECKS:
        return True
    arguments = _from_operand(name, args)
    if name in FORMATTERS and any(arg in _CHECK_OPTIONS for arg in args):
        return True
    if name in _SUBCOMMANDS:
        return bool(arguments) and _has_check_subcommand(name, arguments)
    if name in _TASK_RUNNERS and any(
        _CHECK_TASK.fullmatch(task[:_MAX_WORD_CHARACTERS]) for task in _named_tasks(name, args)
    ):
        return True
    if name in _INTERPRETERS:
        return _runs_tests(name, args, arguments)
    if "/" in program:
        return not program.startswith(("/bin/", "/usr/bin/")) and _is_test_file(program)
    return name.replace("-", "_").partition(".")[0] in {"run_tests", "runtests", "run_test"}


def _has_check_subcommand(name: str, arguments: Sequence[str]) -> bool:
    check_subcommands = _SUBCOMMANDS[name].split()
    # Maven runs all phases that are named; in other programs, the first word decides
    subcommands = arguments if name in {"mvn", "mvnw"} else arguments[:1]
    return any(word in check_subcommands for word in subcommands)


def _named_tasks(name: str, args: Sequence[str]) -> list[str]:
    """Return the words that may name a task: for programs that pass arguments to the task, only the
    first."""
    value_options, words, skip_next = _VALUE_OPTIONS.get(name, set()), [], False
    for arg in args:
        if arg == "--":
            break
        if skip_next:
            skip_next = False
        elif arg in value_options:
            skip_next = True
        elif not arg.startswith("-") and "=" not in arg:
            words.append(arg)
    if name in {"npm", "pnpm", "yarn", "bun", "composer", "hatch", "pdm", "rye", "poe", "mise"}:
        tasks = [word for word in words if word not in {"run", "run-script", "x", "-"}]
        start = 2 if tasks[:1] == ["workspace"] else 0
        if name == "npm" and words[:1] == ["t"]:
            return ["test"]
        return tasks[start : start + 1]
    return words


def _runs_tests(name: str, args: Sequence[str], arguments: Sequence[str]) -> bool:
    if name == "node" and "--test" in args:
        return True
    if "-c" in args[: len(args) - len(arguments)] or not arguments or arguments[0].startswith("-"):
        return False
    if (file := basename(arguments[0])) in _SUBCOMMANDS:
        return len(arguments) > 1 and _has_check_subcommand(file, arguments[1:])
    return file in _ALWAYS_CHECKS or _is_test_file(arguments[0])


def _is_test_file(path: str) -> bool:
    *folders, name = path.split("/")
    is_in_test_folder = not _TEST_FOLDERS.isdisjoint(folders)
    return is_in_test_folder or _TEST_FILE.fullmatch(name[:_MAX_WORD_CHARACTERS]) is not None
