"""Defines which commands test, build or lint. This is the only list of them.

A command is recognized by its program, as that program is documented, or by the name of a file or
task that it runs. A command that only shows, lists or installs something is not a check.
"""

import re
from collections.abc import Sequence
from posixpath import basename

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

_ALWAYS = TESTERS | LINTERS

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
"""Formatters. They are checks only with one of the options in `_LOOKS`, which change no file."""

_LOOKS = frozenset({"--check", "--check-only", "--diff", "-c", "-l", "--list-different"})

_TASKS = frozenset(
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

_TASK = re.compile(
    r"(?:[\w.-]*:)*(?:(?:\w*[_.-])?(?:py|unit|run)?"
    r"(?:tests?|specs?|check|lint|verify|build|typecheck|vet)(?:[_:./-]\S*)?"
    r"|[a-z]\w*(?:Tests?|Check|Lint)|test[A-Z]\w*)"
)
"""Names of tasks that are checks."""

_VALUED = {
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

_BORROWED = {
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
_VERSION = re.compile(r"(?<=[a-z])-?\d[\d.]*$")
_TEST_FOLDERS = frozenset({"test", "tests", "spec", "specs", "__tests__"})
_TEST_FILE = re.compile(
    r"(?:\S*[_.-])?(?:run[_-]?)?(?:tests?|specs?)(?:[_.-]\S*)?"
    r"|(?:\S*[_-])?(?:run[_-]?)?(?:checks?|lint)(?:\.\w+)?"
)
"""Names of files and scripts that run tests or checks."""

_ONLY_SHOWS = frozenset(
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

_SHOWS = {
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

_DEEPEST = 6
_LONGEST = 200
"""Maximum characters of a word that are matched with a pattern."""


def checking(argv: Sequence[str], depth: int = 0) -> tuple[str, ...]:
    """Return the words of the check that a command runs; empty if it runs none.

    Programs that run the check are left out: `python -m pytest -q` gives `pytest -q`.

    argv: the words without quotes, with wrappers such as `sudo` removed.
    """
    if not argv or depth > _DEEPEST:
        return ()
    name, args = _program(argv[0]), list(argv[1:])
    if _shows(name, args):
        return ()
    inner = _borrowed(name, args) or _module(name, args)
    if inner and (found := checking(inner, depth + 1)):
        return found
    return tuple(argv) if _is_check(argv[0], name, args) else ()


def _program(word: str) -> str:
    name = basename(word)
    return _VERSION.sub("", name) if len(name) <= _LONGEST else ""


def _shows(name: str, args: Sequence[str]) -> bool:
    shows = _SHOWS.get(name, set())
    return any(
        arg.partition("=")[0] in _ONLY_SHOWS
        or arg in shows
        or arg.startswith(("-DskipTests", "-Dmaven.test.skip"))
        for arg in args
    )


def _borrowed(name: str, args: Sequence[str]) -> Sequence[str]:
    """Return the command that a runner such as `npx` or `coverage run` runs; empty if none."""
    if name not in _BORROWED:
        return ()
    rest = _from_operand(name, args)
    words = _BORROWED[name]
    if words and (not rest or (rest[0] not in words and "" not in words)):
        return ()
    if words and rest[0] in words:
        rest = _from_operand(name, rest[1:], module=name == "coverage")
    if name == "coverage" and rest:
        return ("python", *rest)
    return rest


def _module(name: str, args: Sequence[str]) -> Sequence[str]:
    """Return the command that `python -m` runs, under the module's name or its test file."""
    if name not in {"python", "pypy"}:
        return ()
    rest = _from_operand(name, args, module=True)
    if len(rest) < 2 or rest[0] != "-m":
        return ()
    if _is_test_file(module := rest[1].replace(".", "/")):
        return ("python", f"{module}.py", *rest[2:])
    return (rest[1].partition(".")[0], *rest[2:])


def _from_operand(name: str, args: Sequence[str], *, module: bool = False) -> Sequence[str]:
    """Return the arguments from the first operand on. module: or from `-m`, if that comes first."""
    valued, at = _VALUED.get(name, set()), 0
    while at < len(args) and args[at].startswith(("-", "+")):
        if (module and args[at] == "-m") or args[at] == "-c":
            break
        if args[at] == "--":
            return args[at + 1 :]
        at += 2 if args[at] in valued else 1
    return args[at:]


def _is_check(program: str, name: str, args: Sequence[str]) -> bool:
    if name in _ALWAYS:
        return True
    rest = _from_operand(name, args)
    if name in FORMATTERS and any(arg in _LOOKS for arg in args):
        return True
    if name in _SUBCOMMANDS:
        return bool(rest) and _any_sub(name, rest)
    if name in _TASKS and any(_TASK.fullmatch(each[:_LONGEST]) for each in _tasks(name, args)):
        return True
    if name in _INTERPRETERS:
        return _runs_tests(name, args, rest)
    if "/" in program:
        return not program.startswith(("/bin/", "/usr/bin/")) and _is_test_file(program)
    return name.replace("-", "_").partition(".")[0] in {"run_tests", "runtests", "run_test"}


def _any_sub(name: str, rest: Sequence[str]) -> bool:
    known = _SUBCOMMANDS[name].split()
    # Maven runs all phases that are named; in other programs, the first word decides
    named = rest if name in {"mvn", "mvnw"} else rest[:1]
    return any(word in known for word in named)


def _tasks(name: str, args: Sequence[str]) -> list[str]:
    """Return the words that may name a task: for programs that pass arguments to the task, only the
    first."""
    valued, found, skip = _VALUED.get(name, set()), [], False
    for arg in args:
        if arg == "--":
            break
        if skip:
            skip = False
        elif arg in valued:
            skip = True
        elif not arg.startswith("-") and "=" not in arg:
            found.append(arg)
    if name in {"npm", "pnpm", "yarn", "bun", "composer", "hatch", "pdm", "rye", "poe", "mise"}:
        first = [each for each in found if each not in {"run", "run-script", "x", "-"}]
        at = 2 if first[:1] == ["workspace"] else 0
        if name == "npm" and found[:1] == ["t"]:
            return ["test"]
        return first[at : at + 1]
    return found


def _runs_tests(name: str, args: Sequence[str], rest: Sequence[str]) -> bool:
    if name == "node" and "--test" in args:
        return True
    if "-c" in args[: len(args) - len(rest)] or not rest or rest[0].startswith("-"):
        return False
    if (file := basename(rest[0])) in _SUBCOMMANDS:
        return len(rest) > 1 and _any_sub(file, rest[1:])
    return file in _ALWAYS or _is_test_file(rest[0])


def _is_test_file(path: str) -> bool:
    *folders, name = path.split("/")
    in_folder = not _TEST_FOLDERS.isdisjoint(folders)
    return in_folder or _TEST_FILE.fullmatch(name[:_LONGEST]) is not None
