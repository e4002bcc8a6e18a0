"""Determines which files of the repository a command line may write: named ones, others, or none.

These are heuristics on the commands that `parse` finds. Any text gives a result, in time linear in
its length.
"""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from posixpath import basename

from resolver.security.shell.checkers import checking
from resolver.security.shell.checks import MOST_READ, QUIET
from resolver.security.shell.code import written_in
from resolver.security.shell.git import git_writes
from resolver.security.shell.places import WrittenPaths, is_outside, of_paths
from resolver.security.shell.syntax import Pipeline, PipelineStage, parse
from resolver.security.shell.words import MOST_WORDS, inline_script, plain_word, skip_assignments
from resolver.security.shell.wrappers import given_command, unwrapped

_DEEPEST = 4
_INTO = frozenset({">", ">>", ">|", "&>", "&>>", "<>", ">&"})
"""Redirection operators that write to their target."""

_IN_PLACE = re.compile(r"-[nErsuzplaw0]*i(?:[^a-z].*|bak|orig|e)?|--in-place(?:=.*)?")
_TAKES_SCRIPT = re.compile(r"-[a-zA-Z0]*[ef]|--expression|--file")
_EDITORS = frozenset({"sed", "gsed", "perl", "ruby"})
_NAMED = frozenset(
    {"tee", "mv", "rm", "touch", "truncate", "dos2unix", "unix2dos", "unlink", "ed", "ex"}
)
_COPIERS = frozenset({"cp", "ln", "install", "rsync"})
_FORMATS = frozenset({"black", "isort", "rustfmt", "goimports", "patch", "codemod", "pyupgrade"})
"""Formatters and similar programs that write unless an option in `_LOOKS` is given."""

_FORMATS_WITH = {
    "gofmt": "-w",
    "goimports": "-w",
    "gofumpt": "-w",
    "prettier": "-w --write",
    "autopep8": "-i --in-place",
    "autoflake": "-i --in-place",
    "yapf": "-i --in-place",
    "clang-format": "-i",
    "shfmt": "-w",
    "rubocop": "-a -A --autocorrect --autocorrect-all",
}
"""Options with which a formatter writes, by program."""

_SUBCOMMANDS = {
    "ruff": "format",
    "cargo": "fmt fix add update remove",
    "go": "fmt mod get generate",
    "npm": "i install uninstall update",
    "yarn": "add remove upgrade",
    "pnpm": "add remove update",
    "poetry": "add remove update lock",
    "uv": "add remove lock",
    "mix": "format",
    "dart": "format fix",
    "terraform": "fmt",
    "dotnet": "format add",
}
"""Subcommands that write files, by program."""

_TASKS = frozenset(
    {"make", "gmake", "npm", "yarn", "pnpm", "bun", "just", "task", "rake", "tox", "nox", "hatch"}
)
_TASK = re.compile(r"(?:\S{1,60}[:._-])?(?:fmt|format|fix|reformat|autofix|codegen|generate)")
_LOOKS = frozenset({"--check", "--check-only", "--diff", "--dry-run", "-n", "--help", "--version"})
_FIXES = frozenset(
    [
        "--fix",
        "--fix-only",
        "--unsafe-fixes",
        "--write",
        "--apply",
        "--autocorrect",
        "--autocorrect-all",
        "--updateSnapshot",
        "--update-snapshots",
        "--snapshot-update",
        "--update",
        "--accept",
    ]
)
"""Options with which a check changes files."""

_SNAPSHOTS = frozenset({"jest", "vitest", "playwright", "ava"})
_RUNS_CODE = re.compile(r"(?:python|pypy|node|deno|bun|ruby|perl|php|ipython)[\d.]*")
_CODE = frozenset({"-c", "-e", "-r", "--eval", "eval"})
"""Options after which an interpreter takes code from the command line."""


@dataclass
class _Found:
    """Collects what was found so far.

    cwd: the directory that a `cd` has led to, if it is outside of the repository, otherwise "".
    commands: number of commands, except those that have no effect on files.
    steps: number of commands that write files.
    """

    root: str
    cwd: str = ""
    paths: list[str] = field(default_factory=list)
    unknown: bool = False
    commands: int = 0
    steps: int = 0

    def take(self, written: WrittenPaths) -> None:
        self.name(written.paths)
        self.unknown = self.unknown or written.unknown

    def name(self, paths: Sequence[str]) -> None:
        self.paths += (posixpath.join(self.cwd, each) for each in paths)


def written_paths(command: str, root: str = "") -> WrittenPaths:
    """Return what the command line may write in the repository at `root`.

    A check writes nothing, unless an option tells it to fix what it finds. A file that its output
    is saved to does not count.
    """
    found = _Found(root)
    _text(command[:MOST_READ], found, 0)
    what = of_paths(found.paths, root, unknown=found.unknown)
    once = found.commands == found.steps == 1 and len(what.paths) == 1
    return WrittenPaths(what.paths, what.unknown, once and not what.unknown)


def _text(text: str, found: _Found, depth: int) -> None:
    script = parse(text)
    for body in script.functions.values():
        _list(body, found, depth)
    _list(script.pipelines, found, depth)


def _list(pipelines: list[Pipeline], found: _Found, depth: int) -> None:
    for pipeline in pipelines:
        calls = [_call(stage) for stage in pipeline]
        checked = any(checking(call) for call in calls)
        for stage, call in zip(pipeline, calls, strict=True):
            if stage.body is not None:
                before = found.cwd
                if stage.kind != "function":
                    _list(stage.body, found, depth)
                found.cwd = before if stage.kind == "(" else found.cwd
            elif not (checked and call and basename(call[0]) == "tee"):
                _simple(stage, call, found, depth)
            if not checked:
                _redirected(stage, found)


def _call(stage: PipelineStage) -> tuple[str, ...]:
    """Return the words of the innermost command of a stage, without wrappers and assignments."""
    argv = tuple(plain_word(word) for word in skip_assignments(stage.words[:MOST_WORDS]))
    return unwrapped(argv)[0] if argv else ()


def _redirected(stage: PipelineStage, found: _Found) -> None:
    for redirect in stage.redirects:
        target = plain_word(redirect.target) if redirect.operator in _INTO else ""
        if target and not (redirect.operator == ">&" and re.fullmatch(r"\d+|-", target)):
            # counted twice, so that `whole` stays False: the shell truncates the file even if the
            # command fails
            found.commands += 2
            found.name([target])


def _simple(stage: PipelineStage, call: tuple[str, ...], found: _Found, depth: int) -> None:
    script = inline_script(stage.words[:MOST_WORDS])
    if script is not None and depth < _DEEPEST:
        _text(script, found, depth + 1)
        return
    if not call:
        return
    name = basename(call[0])
    if name in {"cd", "pushd"}:
        target = posixpath.join(found.cwd, call[1]) if len(call) > 1 else ""
        found.cwd = target if is_outside(target, found.root) else ""
    found.commands += name not in QUIET
    code = "" if _names(name, call[1:]) else _code(name, call, stage)
    if code:
        found.commands += 1  # so that `whole` stays False: the code may fail half-way
        found.take(written_in(code, found.root))
    else:
        _called(name, call, found, depth)


def _code(name: str, call: tuple[str, ...], stage: PipelineStage) -> str:
    """Return the code that an interpreter gets in the command line itself or in a here-document."""
    if not _RUNS_CODE.fullmatch(name[:40]):
        return ""
    for at, word in enumerate(call[1:], start=1):
        if word in _CODE:
            return " ".join(call[at + 1 : at + 2])
        if not word.startswith("-"):
            return ""
    return "".join(each.target for each in stage.redirects if each.operator in {"<<", "<<<"})


def _called(name: str, call: tuple[str, ...], found: _Found, depth: int) -> None:
    args = call[1:]
    inner = given_command(name, args)
    if inner and depth < _DEEPEST:
        before = len(found.paths)
        _called(basename(inner[0]), inner, found, depth + 1)
        found.unknown = found.unknown or _takes_paths(inner) or len(found.paths) > before
        found.commands += 1
    elif name == "eval" and depth < _DEEPEST:
        _text(" ".join(args), found, depth + 1)
    elif name == "git":
        found.steps += 1
        found.take(git_writes(args))
    elif name == "find" and "-delete" in args:
        found.unknown = True
    elif _names(name, args):
        found.steps += 1
        found.name(_operands(name, args))
    elif writes_unnamed(name, call):
        found.unknown = True


def _takes_paths(inner: Sequence[str]) -> bool:
    """Return True if the command writes to the paths that are passed to it."""
    name, args = basename(inner[0]), inner[1:]
    return _names(name, args)


def _names(name: str, args: Sequence[str]) -> bool:
    """Return True if the program writes to the paths that its arguments name."""
    if name in _EDITORS:
        return any(_IN_PLACE.fullmatch(word[:80]) for word in args)
    return name in _NAMED or name in _COPIERS


def _operands(name: str, args: Sequence[str]) -> list[str]:
    """Return the paths among the arguments that are written: no script of `sed` or `perl`, and only
    the destination of a copy."""
    paths: list[str] = []
    given = any(_TAKES_SCRIPT.fullmatch(word[:80]) for word in args)
    script_next = name in {"sed", "gsed"} and not given
    for word in args:
        if word.startswith("-") and len(word) > 1:
            takes = name in _EDITORS and _TAKES_SCRIPT.fullmatch(word[:80]) is not None
            script_next = script_next or takes
        elif script_next:
            script_next = False
        else:
            paths.append(word)
    return paths[-1:] if name in _COPIERS else paths


def writes_unnamed(name: str, call: Sequence[str]) -> bool:
    """Return True if the program changes files that it finds by itself, as formatters do."""
    args = tuple(call[1:])
    words = [each for each in args if not each.startswith("-")]
    if name in _TASKS and any(_TASK.fullmatch(word[:80]) for word in words):
        return True
    if check := checking(call):
        snapshots = "-u" in args and any(basename(word) in _SNAPSHOTS for word in check[:2])
        return snapshots or any(word.partition("=")[0] in _FIXES for word in args)
    if name in {"python", "python3"} and args[:1] == ("-m",):
        return len(args) > 1 and writes_unnamed(args[1], args[1:])
    if name in {"npx", "bunx", "uvx"} and words:
        at = args.index(words[0])
        return writes_unnamed(basename(words[0]), args[at:])
    if not _LOOKS.isdisjoint(args):
        return False
    with_flag = _FORMATS_WITH.get(name, "").split()
    if name in _FORMATS or any(word in with_flag for word in args):
        return True
    return "--fix" in args or (bool(words) and words[0] in _SUBCOMMANDS.get(name, "").split())
