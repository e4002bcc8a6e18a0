"""Determines which checks a command line runs, and whether its exit code tells how they ended.

A check counts only where a command can be; the same word in an argument, a pattern or a document
does not. Any text gives a result, in time linear in its length. Checks that run tests are told
apart: a failing linter or build says nothing about behaviour.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from posixpath import basename

from resolver.security.shell.checkers import FORMATTERS, LINTERS, TESTERS, checking
from resolver.security.shell.syntax import Pipeline, PipelineStage, parse
from resolver.security.shell.wrappers import (
    MOST_WORDS,
    inline_script,
    plain_word,
    skip_assignments,
    unwrapped,
)

MOST_READ = 200_000
"""Maximum characters of a command line; no checks are found in a longer one."""

_DEEPEST = 4
_LEAVES = frozenset({"exit", "return", "logout"})
_REPLACES = frozenset({"trap", "alias"})
_APART = frozenset({"setsid", "watch", "flock"})
"""Wrappers whose exit code may differ from that of the command they run."""

QUIET = frozenset(
    {"cd", "pushd", "popd", "export", "set", "unset", "ulimit", "echo", "source", ".", ""}
)
"""Commands that prepare a check and succeed, or print why they failed."""


@dataclass(frozen=True)
class CommandChecks:
    """Represents the checks of a command line.

    checks: the checks that the line contains, normalized so that variants are equal.
    vouched: an exit code of 0 means that all of them ran and passed.
    alone: any other exit code means that one of them failed.
    """

    checks: tuple[str, ...] = ()
    vouched: bool = False
    alone: bool = False


@dataclass
class _Shell:
    """State of the analysis.

    functions: names of functions that the script has defined.
    pipefail, ends_early: `set -o pipefail` and `set -e` are on.
    lost: the commands that follow may not run, or may mean something else.
    others: number of commands that are not checks and may fail themselves.
    turned: a result may be inverted or ignored, by `!` or `||`.
    """

    functions: frozenset[str] = frozenset()
    pipefail: bool = False
    ends_early: bool = False
    lost: bool = False
    depth: int = 0
    checks: list[str] = field(default_factory=list)
    others: int = 0
    turned: bool = False


_ALL = frozenset({-1})
"""Stands for a command that always fails. Any claim about what passed if it succeeds is true."""


@lru_cache(maxsize=8)  # several callers ask about the same command in a row
def read_checks(command: str) -> CommandChecks:
    """Return the checks of a command line. A command that is too long has none."""
    if len(command) > MOST_READ:
        return CommandChecks()
    shell = _Shell()
    passed = _read_text(command, shell)
    checks = tuple(dict.fromkeys(shell.checks))
    vouched = bool(checks) and passed >= frozenset(range(len(shell.checks)))
    alone = vouched and not shell.others and not shell.turned
    return CommandChecks(checks, vouched, alone)


def _read_text(text: str, shell: _Shell) -> frozenset[int]:
    script = parse(text)
    shell.functions |= frozenset(script.functions)
    return _list(script.pipelines, shell, whole=True)


def _list(pipelines: list[Pipeline], shell: _Shell, *, whole: bool = False) -> frozenset[int]:
    """Return the indexes of the checks that are known to have passed if the list succeeds.

    whole: the list is a complete script. `set -e` is then taken into account. In a part of a script
        it is not, because the shell ignores `set -e` in conditions and before `&&` and `||`:
        https://www.gnu.org/software/bash/manual/html_node/The-Set-Builtin.html
    """
    sure: set[int] = set()
    held: set[int] = set()
    last = frozenset[int]()
    joined, joins = "", False
    for pipeline in pipelines:
        found, behind = _pipeline(pipeline, shell), pipeline[-1].behind
        if joined == "||":
            shell.turned = True
            held = held if found == _ALL else set(found) if held == _ALL else held & found
        elif joined == "&&":
            if _ALL in (held, found):
                held = set(_ALL)
            else:
                held |= found  # in place: a chain of many commands would be quadratic otherwise
        else:
            held = set(found)
        if behind in {"&&", "||"}:
            joined, joins = behind, True
            continue
        if behind == "&":
            held = set()
        if whole and shell.ends_early and not joins:
            sure |= held  # `set -e` ends the script if this one fails
        joined, joins = "", False
        last, held = frozenset(held), set()
    if joins:
        # the list ends in `&&` or `||`, which a shell would reject
        return frozenset()
    return last if last == _ALL else last | sure


def _pipeline(pipeline: Pipeline, shell: _Shell) -> frozenset[int]:
    found: list[frozenset[int]] = []
    for stage in pipeline:
        found.append(_stage(stage, shell, apart=len(pipeline) > 1))
    if any(stage.turned for stage in pipeline):
        shell.turned = True
        return frozenset()
    if len(pipeline) == 1:
        return found[0]
    shell.others += 1
    # without `pipefail`, a pipeline's exit code is that of its last command
    return frozenset[int]().union(*found) - _ALL if shell.pipefail else found[-1] - _ALL


def _stage(stage: PipelineStage, shell: _Shell, *, apart: bool) -> frozenset[int]:
    if stage.body is None:
        return _simple(stage, shell)
    if stage.kind == "function":
        return frozenset()
    if stage.kind in {"{", "("}:
        before = (shell.pipefail, shell.ends_early, shell.lost)
        found = _list(stage.body, shell)
        if stage.kind == "(" or apart:
            shell.pipefail, shell.ends_early, shell.lost = before
        return found
    shell.others += 1
    _list(stage.body, shell)  # it is not known which part of it runs
    return frozenset()


def _simple(stage: PipelineStage, shell: _Shell) -> frozenset[int]:
    words = list(skip_assignments(stage.words[:MOST_WORDS]))
    argv = tuple(plain_word(word) for word in words)
    name = basename(argv[0]) if argv else ""
    script = None if _goes_apart(words) else inline_script(words)
    if script is not None and shell.depth < _DEEPEST:
        return _inline_shell(script, shell)
    _note_state(name, argv, shell)
    if argv and name in {"false", "exit", "return"} and _fails(name, argv):
        shell.others += 1
        return _ALL
    found, inner = _check_of(argv)
    if not found or name in shell.functions or inner in shell.functions:
        if name not in QUIET or name in shell.functions:
            shell.others += 1
        return frozenset()
    shell.checks.append(" ".join(found))
    return frozenset() if shell.lost or _goes_apart(argv) else frozenset({len(shell.checks) - 1})


def _check_of(argv: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Return the check that a command runs, and the name of the program inside its wrappers."""
    if not argv:
        return (), ""
    inner, _ = unwrapped(argv)
    found = checking(inner) or checking(argv)
    return found, basename(inner[0])


def _note_state(name: str, argv: tuple[str, ...], shell: _Shell) -> None:
    """Record what the command changes for the commands after it."""
    if (name in _LEAVES and not _fails(name, argv)) or name in _REPLACES:
        shell.lost = True
    elif name == "[[" and "]]" not in argv:
        shell.lost = True  # the operators between its brackets would be read as commands
    elif name == "exec" and len(argv) > 1:
        shell.lost = shell.lost or not _check_of(argv)[0]
    elif name == "set":
        _set(argv[1:], shell)


def _set(args: tuple[str, ...], shell: _Shell) -> None:
    for at, arg in enumerate(args):
        if arg == "--":
            break
        if arg[:1] not in {"-", "+"}:
            continue
        on = arg[0] == "-"
        if "e" in arg[1:]:
            shell.ends_early = on
        if "n" in arg[1:]:
            shell.lost = True
        if arg.endswith("o") and args[at + 1 : at + 2] == ("pipefail",):
            shell.pipefail = on
        if arg.endswith("o") and args[at + 1 : at + 2] == ("errexit",):
            shell.ends_early = on


def _fails(name: str, argv: tuple[str, ...]) -> bool:
    """Return True if the command is known to exit with a code other than 0."""
    if name == "false":
        return True
    code = argv[1] if len(argv) > 1 else ""
    return code.isascii() and code.isdigit() and int(code[:9]) % 256 != 0


def _inline_shell(script: str, shell: _Shell) -> frozenset[int]:
    """Analyze the script of `bash -c`. It has options of its own, and its exit code becomes that of
    the command."""
    before = (shell.pipefail, shell.ends_early, shell.lost, shell.functions)
    shell.pipefail = shell.ends_early = False
    shell.depth += 1
    found = _read_text(script, shell)
    shell.depth -= 1
    shell.pipefail, shell.ends_early, shell.lost, shell.functions = before
    return frozenset() if shell.lost else found


def _goes_apart(words: Sequence[str]) -> bool:
    return any(basename(word) in _APART for word in words[:4])


_NO_TESTERS = LINTERS | FORMATTERS | {"ty", "pyre", "pre-commit"}
_RUNNERS = TESTERS | {"cypress"}
_NAMES_TESTS = re.compile(
    r"(?:^|[^a-z])(?:c|py|unit|run|php|vi|doc)?(?:tests?|specs?|nextest|eunit)(?:$|[^a-z])"
    r"|Tests?\b|^rspec$|^phpunit$|^t$|^ct$|^verify$"
)
_MAKE = frozenset({"make", "gmake", "ninja", "gradle", "gradlew"})
_MOST = 200


def is_test_command(check: str) -> bool:
    """Return True if the check, in the form that `read_checks` returns, runs tests."""
    words = check.split()
    name = basename(words[0])[:_MOST] if words else ""
    if name in _NO_TESTERS:
        return False
    if name in _RUNNERS or _NAMES_TESTS.search(name):
        return True
    operands = [word[:_MOST] for word in words[1:] if not word.startswith("-")][:20]
    if name in _MAKE and "check" in operands:
        return True
    if name == "node" and "--test" in words:
        return True
    first = operands if name in {"mvn", "mvnw", *_MAKE} else operands[:4]
    return any(_NAMES_TESTS.search(word) for word in first)
