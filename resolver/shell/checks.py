"""What a command line says of the checks in it: which it runs, and whether its exit code is theirs.

A check counts where a command stands; a word in an argument, a pattern or a document is none. Any
text gives an answer, in time linear in its length.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from posixpath import basename

from resolver.shell.checkers import checking
from resolver.shell.syntax import Pipeline, Stage, assignment, parse
from resolver.shell.wrappers import unwrapped

MOST_READ = 200_000
"""Characters of a command line that are read; in a longer one no check is seen."""

_MOST_WORDS = 2_000
_DEEPEST = 4
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
_LEAVES = frozenset({"exit", "return", "logout"})
_REPLACES = frozenset({"trap", "alias"})
_APART = frozenset({"setsid", "watch", "flock"})
"""Wrappers whose exit code may be another than that of what they run."""

_QUIET = frozenset(
    {"cd", "pushd", "popd", "export", "set", "unset", "ulimit", "echo", "source", ".", ""}
)
"""Commands that prepare a check, and end well or say why they don't."""

_QUOTED = re.compile(r"'([^']*)'?|\"((?:\\.|[^\"\\])*)\"?|\\(\n|.)|([^'\"\\]+)", re.S)


@dataclass(frozen=True)
class Read:
    """checks: that stand in the line, each in one form for all its variants. vouched: an exit code
    of 0 says that each of them was run and passed. alone: another says that one of them failed."""

    checks: tuple[str, ...] = ()
    vouched: bool = False
    alone: bool = False


@dataclass
class _Shell:
    """Where the reading is. lost: what follows may not be run, or means something else."""

    functions: frozenset[str] = frozenset()
    pipefail: bool = False
    ends_early: bool = False
    lost: bool = False
    depth: int = 0
    checks: list[str] = field(default_factory=list)
    others: int = 0
    turned: bool = False


_ALL = frozenset({-1})
"""Stands for what always fails: whatever is asked of its success holds."""


def read_checks(command: str) -> Read:
    """The checks of a command line. A text that can't be read has none."""
    if len(command) > MOST_READ:
        return Read()
    shell = _Shell()
    passed = _read_text(command, shell)
    checks = tuple(dict.fromkeys(shell.checks))
    vouched = bool(checks) and passed >= frozenset(range(len(shell.checks)))
    alone = vouched and not shell.others and not shell.turned
    return Read(checks, vouched, alone)


def _read_text(text: str, shell: _Shell) -> frozenset[int]:
    script = parse(text)
    shell.functions |= frozenset(script.functions)
    return _list(script.pipelines, shell, whole=True)


def _list(pipelines: list[Pipeline], shell: _Shell, *, whole: bool = False) -> frozenset[int]:
    """The checks, by their place, that have passed where the list ends well. whole: it is all of a
    script; a part of one does not always end at a failure where the script would."""
    sure: frozenset[int] = frozenset()
    held = last = sure
    joined, joins = "", False
    for pipeline in pipelines:
        found, behind = _pipeline(pipeline, shell), pipeline[-1].behind
        if joined == "||":
            shell.turned = True
            held = held if found == _ALL else found if held == _ALL else held & found
        elif joined == "&&":
            held = _ALL if _ALL in (held, found) else held | found
        else:
            held = found
        if behind in {"&&", "||"}:
            joined, joins = behind, True
            continue
        if behind == "&":
            held = frozenset()
        if whole and shell.ends_early and not joins:
            sure |= held  # `set -e` ends the script where this one fails
        joined, joins = "", False
        last, held = held, frozenset()
    if joins:
        return frozenset()
    return last if last == _ALL else sure | last


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
    return frozenset[int]().union(*found) - _ALL if shell.pipefail else found[-1] - _ALL


def _stage(stage: Stage, shell: _Shell, *, apart: bool) -> frozenset[int]:
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
    _list(stage.body, shell)  # which of it is run is not known
    return frozenset()


def _simple(stage: Stage, shell: _Shell) -> frozenset[int]:
    words = list(_behind_assignments(stage.words[:_MOST_WORDS]))
    argv = tuple(_plain(word) for word in words)
    name = basename(argv[0]) if argv else ""
    script = _inline(words)
    if script is not None and shell.depth < _DEEPEST:
        return _inline_shell(script, shell)
    _note_state(name, argv, shell)
    if argv and name in {"false", "exit", "return"} and _fails(name, argv):
        shell.others += 1
        return _ALL
    found, inner = _check_of(argv)
    if not found or name in shell.functions or inner in shell.functions:
        if name not in _QUIET or name in shell.functions:
            shell.others += 1
        return frozenset()
    shell.checks.append(" ".join(found))
    return frozenset() if shell.lost or _goes_apart(argv) else frozenset({len(shell.checks) - 1})


def _check_of(argv: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """The check that a command runs, and the name of the program that is run in the end."""
    if not argv:
        return (), ""
    inner, _ = unwrapped(argv)
    found = checking(inner) or checking(argv)
    return found, basename(inner[0])


def _behind_assignments(words: list[str]) -> Iterator[str]:
    started = False
    for word in words:
        started = started or assignment(word) is None
        if started:
            yield word


def _note_state(name: str, argv: tuple[str, ...], shell: _Shell) -> None:
    """What the command changes for those behind it."""
    if (name in _LEAVES and not _fails(name, argv)) or name in _REPLACES:
        shell.lost = True
    elif name == "[[" and "]]" not in argv:
        shell.lost = True  # what stands between its brackets reads like commands
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
    if name == "false":
        return True
    code = argv[1] if len(argv) > 1 else ""
    return code.isascii() and code.isdigit() and int(code[:9]) % 256 != 0


def _inline_shell(script: str, shell: _Shell) -> frozenset[int]:
    """What `bash -c` runs: a shell of its own, whose exit code is that of the command."""
    before = (shell.pipefail, shell.ends_early, shell.lost, shell.functions)
    shell.pipefail = shell.ends_early = False
    shell.depth += 1
    found = _read_text(script, shell)
    shell.depth -= 1
    shell.pipefail, shell.ends_early, shell.lost, shell.functions = before
    return frozenset() if shell.lost else found


def _inline(words: list[str]) -> str | None:
    """The script of `bash -c`; None without one, or where it is put together as it is run."""
    argv = unwrapped(tuple(words))[0] if words else ()
    if not argv or basename(argv[0]) not in _SHELLS or _goes_apart(words):
        return None
    for at, word in enumerate(argv[1:], start=1):
        if not word.startswith("-"):
            return None
        if not word.startswith("--") and "c" in word[1:] and "o" not in word[1:]:
            script = argv[at + 1] if at + 1 < len(argv) else ""
            return None if _expands(script) else _plain(script)
    return None


def _expands(word: str) -> bool:
    outside = (found[2] or found[4] or "" for found in _QUOTED.finditer(word))
    return any("$" in part or "`" in part for part in outside)


def _goes_apart(words: Sequence[str]) -> bool:
    return any(basename(word) in _APART for word in words[:4])


def _plain(word: str) -> str:
    """A raw word without its quotes. What it would be expanded to is not known, and stays as is."""
    if not any(char in word for char in "'\"\\"):
        return word

    def text(found: re.Match[str]) -> str:
        single, double, escaped, plain = found.groups()
        if single is not None:
            return single
        if double is not None:
            return re.sub(r"\\([\"\\$`\n])", lambda m: m[1].strip("\n"), double)
        if escaped is not None:
            return escaped.strip("\n")
        return plain or ""

    return "".join(text(found) for found in _QUOTED.finditer(word))
