"""Determines which checks a command line of a project's configuration runs.

A check counts only where a command can be; the same word in an argument, a pattern or a document
does not. Any text gives a result, in time linear in its length. Checks that run tests are told
apart: a failing linter or build says nothing about behaviour.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from posixpath import basename

from resolver.security.shell.checkers import FORMATTERS, LINTERS, TESTERS, find_check
from resolver.security.shell.syntax import Pipeline, PipelineStage, parse
from resolver.security.shell.wrappers import (
    MAX_WORDS,
    inline_script,
    plain_word,
    skip_assignments,
    unwrap_command,
)

MAX_READ_CHARACTERS = 200_000
"""Maximum characters of a command line; no checks are found in a longer one."""

_MAX_DEPTH = 4
_EXIT_COMMANDS = frozenset({"exit", "return", "logout"})
_REDEFINING_COMMANDS = frozenset({"trap", "alias"})
_DETACHED_WRAPPERS = frozenset({"setsid", "watch", "flock"})
"""Wrappers whose exit code may differ from that of the command they run."""


@dataclass(frozen=True)
class CommandChecks:
    """Represents the checks of a command line.

    checks: the checks that the line contains, normalized so that variants are equal.
    is_conclusive: an exit code of 0 means that all of them ran and passed.
    """

    checks: tuple[str, ...] = ()
    is_conclusive: bool = False


@dataclass
class _Shell:
    """State of the analysis.

    functions: names of functions that the script has defined.
    pipefail, errexit: `set -o pipefail` and `set -e` are on.
    is_uncertain: the commands that follow may not run, or may mean something else.
    """

    functions: frozenset[str] = frozenset()
    pipefail: bool = False
    errexit: bool = False
    is_uncertain: bool = False
    depth: int = 0
    checks: list[str] = field(default_factory=list)


_ALWAYS_FAILS = frozenset({-1})
"""Stands for a command that always fails. Any claim about what passed if it succeeds is true."""


@lru_cache(maxsize=8)  # several callers ask about the same command in a row
def read_checks(command: str) -> CommandChecks:
    """Return the checks of a command line. A command that is too long has none."""
    if len(command) > MAX_READ_CHARACTERS:
        return CommandChecks()
    shell = _Shell()
    passed = _read_text(command, shell)
    checks = tuple(dict.fromkeys(shell.checks))
    is_conclusive = bool(checks) and passed >= frozenset(range(len(shell.checks)))
    return CommandChecks(checks, is_conclusive)


def _read_text(text: str, shell: _Shell) -> frozenset[int]:
    script = parse(text)
    shell.functions |= frozenset(script.functions)
    return _read_list(script.pipelines, shell, is_complete=True)


def _read_list(
    pipelines: list[Pipeline], shell: _Shell, *, is_complete: bool = False
) -> frozenset[int]:
    """Return the indexes of the checks that are known to have passed if the list succeeds.

    is_complete: the list is a complete script. `set -e` is then taken into account. In a part of a
        script it is not, because the shell ignores `set -e` in conditions and before `&&` and `||`:
        https://www.gnu.org/software/bash/manual/html_node/The-Set-Builtin.html
    """
    certain: set[int] = set()
    pending: set[int] = set()
    last = frozenset[int]()
    joined_by, is_joined = "", False
    for pipeline in pipelines:
        passed, operator = _read_pipeline(pipeline, shell), pipeline[-1].next_operator
        if joined_by == "||":
            pending = (
                pending
                if passed == _ALWAYS_FAILS
                else set(passed)
                if pending == _ALWAYS_FAILS
                else pending & passed
            )
        elif joined_by == "&&":
            if _ALWAYS_FAILS in (pending, passed):
                pending = set(_ALWAYS_FAILS)
            else:
                pending |= passed  # in place: a chain of many commands would be quadratic otherwise
        else:
            pending = set(passed)
        if operator in {"&&", "||"}:
            joined_by, is_joined = operator, True
            continue
        if operator == "&":
            pending = set()
        if is_complete and shell.errexit and not is_joined:
            certain |= pending  # `set -e` ends the script if this one fails
        joined_by, is_joined = "", False
        last, pending = frozenset(pending), set()
    if is_joined:
        # the list ends in `&&` or `||`, which a shell would reject
        return frozenset()
    return last if last == _ALWAYS_FAILS else last | certain


def _read_pipeline(pipeline: Pipeline, shell: _Shell) -> frozenset[int]:
    passed_by_stage: list[frozenset[int]] = []
    for stage in pipeline:
        passed_by_stage.append(_read_stage(stage, shell, in_pipeline=len(pipeline) > 1))
    if any(stage.is_inverted for stage in pipeline):
        return frozenset()
    if len(pipeline) == 1:
        return passed_by_stage[0]
    # without `pipefail`, a pipeline's exit code is that of its last command
    return (
        frozenset[int]().union(*passed_by_stage) - _ALWAYS_FAILS
        if shell.pipefail
        else passed_by_stage[-1] - _ALWAYS_FAILS
    )


def _read_stage(stage: PipelineStage, shell: _Shell, *, in_pipeline: bool) -> frozenset[int]:
    if stage.body is None:
        return _read_simple(stage, shell)
    if stage.kind == "function":
        return frozenset()
    if stage.kind in {"{", "("}:
        options = (shell.pipefail, shell.errexit, shell.is_uncertain)
        passed = _read_list(stage.body, shell)
        if stage.kind == "(" or in_pipeline:
            shell.pipefail, shell.errexit, shell.is_uncertain = options
        return passed
    _read_list(stage.body, shell)  # it is not known which part of it runs
    return frozenset()


def _read_simple(stage: PipelineStage, shell: _Shell) -> frozenset[int]:
    words = list(skip_assignments(stage.words[:MAX_WORDS]))
    argv = tuple(plain_word(word) for word in words)
    name = basename(argv[0]) if argv else ""
    script = None if _is_detached(words) else inline_script(words)
    if script is not None and shell.depth < _MAX_DEPTH:
        return _inline_shell(script, shell)
    _note_state(name, argv, shell)
    if argv and name in {"false", "exit", "return"} and _fails(name, argv):
        return _ALWAYS_FAILS
    check, inner_name = _check_of(argv)
    if not check or name in shell.functions or inner_name in shell.functions:
        return frozenset()
    shell.checks.append(" ".join(check))
    return (
        frozenset()
        if shell.is_uncertain or _is_detached(argv)
        else frozenset({len(shell.checks) - 1})
    )


def _check_of(argv: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Return the check that a command runs, and the name of the program inside its wrappers."""
    if not argv:
        return (), ""
    inner_argv = unwrap_command(argv)
    check = find_check(inner_argv) or find_check(argv)
    return check, basename(inner_argv[0])


def _note_state(name: str, argv: tuple[str, ...], shell: _Shell) -> None:
    """Record what the command changes for the commands after it."""
    if (name in _EXIT_COMMANDS and not _fails(name, argv)) or name in _REDEFINING_COMMANDS:
        shell.is_uncertain = True
    elif name == "[[" and "]]" not in argv:
        shell.is_uncertain = True  # the operators between its brackets would be read as commands
    elif name == "exec" and len(argv) > 1:
        shell.is_uncertain = shell.is_uncertain or not _check_of(argv)[0]
    elif name == "set":
        _apply_set(argv[1:], shell)


def _apply_set(args: tuple[str, ...], shell: _Shell) -> None:
    for index, arg in enumerate(args):
        if arg == "--":
            break
        if arg[:1] not in {"-", "+"}:
            continue
        is_enabled = arg[0] == "-"
        if "e" in arg[1:]:
            shell.errexit = is_enabled
        if "n" in arg[1:]:
            shell.is_uncertain = True
        if arg.endswith("o") and args[index + 1 : index + 2] == ("pipefail",):
            shell.pipefail = is_enabled
        if arg.endswith("o") and args[index + 1 : index + 2] == ("errexit",):
            shell.errexit = is_enabled


def _fails(name: str, argv: tuple[str, ...]) -> bool:
    """Return True if the command is known to exit with a code other than 0."""
    if name == "false":
        return True
    code = argv[1] if len(argv) > 1 else ""
    return code.isascii() and code.isdigit() and int(code[:9]) % 256 != 0


def _inline_shell(script: str, shell: _Shell) -> frozenset[int]:
    """Analyze the script of `bash -c`. It has options of its own, and its exit code becomes that of
    the command."""
    outer_state = (shell.pipefail, shell.errexit, shell.is_uncertain, shell.functions)
    shell.pipefail = shell.errexit = False
    shell.depth += 1
    passed = _read_text(script, shell)
    shell.depth -= 1
    shell.pipefail, shell.errexit, shell.is_uncertain, shell.functions = outer_state
    return frozenset() if shell.is_uncertain else passed


def _is_detached(words: Sequence[str]) -> bool:
    return any(basename(word) in _DETACHED_WRAPPERS for word in words[:4])


_NON_TEST_CHECKS = LINTERS | FORMATTERS | {"ty", "pyre", "pre-commit"}
_TEST_RUNNERS = TESTERS | {"cypress"}
_TEST_NAME = re.compile(
    r"(?:^|[^a-z])(?:c|py|unit|run|php|vi|doc)?(?:tests?|specs?|nextest|eunit)(?:$|[^a-z])"
    r"|Tests?\b|^rspec$|^phpunit$|^t$|^ct$|^verify$"
)
_BUILD_TOOLS = frozenset({"make", "gmake", "ninja", "gradle", "gradlew"})
_MAX_WORD_CHARACTERS = 200


def is_test_command(check: str) -> bool:
    """Return True if the check, in the form that `read_checks` returns, runs tests."""
    words = check.split()
    name = basename(words[0])[:_MAX_WORD_CHARACTERS] if words else ""
    if name in _NON_TEST_CHECKS:
        return False
    if name in _TEST_RUNNERS or _TEST_NAME.search(name):
        return True
    operands = [word[:_MAX_WORD_CHARACTERS] for word in words[1:] if not word.startswith("-")][:20]
    if name in _BUILD_TOOLS and "check" in operands:
        return True
    if name == "node" and "--test" in words:
        return True
    task_words = operands if name in {"mvn", "mvnw", *_BUILD_TOOLS} else operands[:4]
    return any(_TEST_NAME.search(word) for word in task_words)
