"""Determines which checks a command line of a project's configuration runs.

A check counts only where a command can be; the same word in an argument, a pattern or a document
does not. Any text gives a result, in time linear in its length. Checks that run tests are told
apart: a failing linter or build says nothing about behaviour.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
    is_conclusive: an exit code of 0 means that all of them ran and passed, if a shell with
        `set -eo pipefail` executes the line.
    """

    checks: tuple[str, ...] = ()
    is_conclusive: bool = False


@lru_cache(maxsize=8)  # several callers ask about the same command in a row
def read_checks(command: str) -> CommandChecks:
    """Return the checks of a command line. A command that is too long has none."""
    if len(command) > MAX_READ_CHARACTERS:
        return CommandChecks()
    reader = _ScriptReader()
    reader.read_script(command, decides=True, depth=0)
    checks = tuple(dict.fromkeys(reader.checks))
    return CommandChecks(checks, bool(checks) and reader.is_conclusive)


class _ScriptReader:
    """Collects the checks of a script, and finds out if the script fails when one of them does.

    decides: a failure of this part of the script is a failure of all of it.
    depth: number of scripts of `bash -c` around this part. They have shell options of their own.
    """

    def __init__(self) -> None:
        self.checks: list[str] = []
        self.is_conclusive = True
        self._functions: set[str] = set()

    def read_script(self, text: str, *, decides: bool, depth: int) -> None:
        script = parse(text)
        self._functions |= script.functions.keys()
        self._read_list(script.pipelines, decides=decides, depth=depth, errexit=depth == 0)

    def _read_list(
        self, pipelines: list[Pipeline], *, decides: bool, depth: int, errexit: bool = False
    ) -> None:
        """Read a list, whose exit code is that of its last chain.

        errexit: `set -e` ends the script if a command of the list fails, but not if the command is
            followed by `&&` or `||`:
            https://www.gnu.org/software/bash/manual/html_node/The-Set-Builtin.html
        """
        chains = list(_chains(pipelines))
        for chain in chains:
            is_plain = len(chain) == 1 and all(stage.body is None for stage in chain[0])
            is_last = chain is chains[-1]
            self._read_chain(
                chain, decides=decides and (is_last or (errexit and is_plain)), depth=depth
            )

    def _read_chain(self, chain: list[Pipeline], *, decides: bool, depth: int) -> None:
        operators = [pipeline[-1].next_operator for pipeline in chain]
        decides = decides and operators[-1] not in {"&", "&&", "||"}
        # A `||` whose right side may succeed makes up for a failure of all that is on its left.
        rescues = (
            number
            for number, pipeline in enumerate(chain[1:])
            if operators[number] == "||" and not _always_fails(pipeline)
        )
        last_rescue = max(rescues, default=-1)
        for number, pipeline in enumerate(chain):
            runs = number == 0 or operators[number - 1] == "&&"
            self._read_pipeline(
                pipeline, decides=decides and runs and number > last_rescue, depth=depth
            )

    def _read_pipeline(self, pipeline: Pipeline, *, decides: bool, depth: int) -> None:
        decides = decides and not any(stage.is_inverted for stage in pipeline)
        for stage in pipeline:
            has_pipefail = depth == 0
            decides_here = decides and (has_pipefail or stage is pipeline[-1])
            if stage.body is None:
                self._read_simple(stage, decides=decides_here, depth=depth)
            elif stage.kind in {"{", "("}:
                self._read_list(stage.body, decides=decides_here, depth=depth)
            elif stage.kind != "function":  # it is not known which part of it runs
                self._read_list(stage.body, decides=False, depth=depth)

    def _read_simple(self, stage: PipelineStage, *, decides: bool, depth: int) -> None:
        words = list(skip_assignments(stage.words[:MAX_WORDS]))
        script = None if _is_detached(words) else inline_script(words)
        if script is not None and depth < _MAX_DEPTH:
            self.read_script(script, decides=decides, depth=depth + 1)
            return
        argv = tuple(plain_word(word) for word in words)
        if not argv:
            return
        if _may_end_early(argv):
            self.is_conclusive = False
        check, inner_name = _check_of(argv)
        if check and self._functions.isdisjoint({basename(argv[0]), inner_name}):
            self.checks.append(" ".join(check))
            self.is_conclusive &= decides and not _is_detached(argv)


def _chains(pipelines: list[Pipeline]) -> Iterator[list[Pipeline]]:
    """Yield the parts of a list that are joined by `&&` and `||`."""
    chain: list[Pipeline] = []
    for pipeline in pipelines:
        chain.append(pipeline)
        if pipeline[-1].next_operator not in {"&&", "||"}:
            yield chain
            chain = []
    if chain:  # ends in an operator, which a shell would reject
        yield chain


def _always_fails(pipeline: Pipeline) -> bool:
    """Return True for `exit 1`, `false`, and a group that ends with one of them."""
    while len(pipeline) == 1 and (body := pipeline[0].body) and pipeline[0].kind in {"{", "("}:
        if any(inner[-1].next_operator == "||" for inner in body):
            return False
        pipeline = body[-1]
    if len(pipeline) > 1 or pipeline[0].is_inverted or pipeline[0].next_operator == "&":
        return False
    return _fails(tuple(plain_word(word) for word in pipeline[0].words[:2]))


def _check_of(argv: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Return the check that a command runs, and the name of the program inside its wrappers."""
    inner_argv = unwrap_command(argv)
    check = find_check(inner_argv) or find_check(argv)
    return check, basename(inner_argv[0])


def _may_end_early(argv: tuple[str, ...]) -> bool:
    """Return True if other commands may not run after the command, or may mean something else."""
    name, args = basename(argv[0]), argv[1:]
    if name in _EXIT_COMMANDS:
        return not _fails(argv)
    if name == "[[":
        return "]]" not in argv  # the operators between its brackets are read as commands
    if name == "exec":
        return bool(args) and not _check_of(argv)[0]
    if name == "set":  # turns an option off, or executes nothing from here on
        return any(arg[:1] == "+" or (arg[:1] == "-" and "n" in arg) for arg in args)
    return name in _REDEFINING_COMMANDS


def _fails(argv: tuple[str, ...]) -> bool:
    """Return True if the command is known to exit with a code other than 0."""
    if argv[:1] == ("false",):
        return True
    code = argv[1] if len(argv) > 1 and argv[0] in {"exit", "return"} else ""
    return code.isascii() and code.isdigit() and int(code[:9]) % 256 != 0


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
