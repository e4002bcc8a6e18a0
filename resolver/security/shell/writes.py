"""Determines which files of the repository a command line may write: named ones, others, or none.

These are heuristics on the commands that `parse` finds, on the text of code (a cell, or
`python -c`), and on git commands. Any text gives a result, in time linear in its length. Paths
outside of any repository are told apart, and the rest is shown to people in a short form.
"""

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from posixpath import basename

from resolver.security.shell.checkers import checking
from resolver.security.shell.checks import MOST_READ, QUIET
from resolver.security.shell.syntax import Pipeline, PipelineStage, parse
from resolver.security.shell.wrappers import (
    MOST_WORDS,
    given_command,
    inline_script,
    plain_word,
    skip_assignments,
    unwrapped,
)

_OUTSIDE = ("/tmp", "/var/tmp", "/dev", "/proc", "/sys", "/run")  # noqa: S108 - nothing is made there


@dataclass(frozen=True)
class WrittenPaths:
    """Represents the files that a command may have written.

    paths: the paths as the command names them.
    unknown: other files may have been written, whose paths are not known.
    whole: the command is a single step that has written nothing if it failed.
    """

    paths: tuple[str, ...] = ()
    unknown: bool = False
    whole: bool = False

    def __bool__(self) -> bool:
        return self.unknown or bool(self.paths)


def is_outside(path: str, root: str = "") -> bool:
    """Return True if the path is outside of any repository: temporary files, devices.

    root: path of the repository, if known, which may itself be below such a folder.
    """
    plain = posixpath.normpath(path) if path.startswith("/") else ""
    if root and (plain == root or plain.startswith(f"{root}/")):
        return False
    return any(plain == each or plain.startswith(f"{each}/") for each in _OUTSIDE)


def of_paths(paths: Iterable[str], root: str = "", *, unknown: bool = False) -> WrittenPaths:
    """Return those of the paths that may be in a repository. A path that contains an expansion is
    not known, and counts as unknown."""
    kept = [path for path in paths if path and not is_outside(path, root)]
    known = tuple(dict.fromkeys(each for each in kept if not _is_made(each)))
    return WrittenPaths(known, unknown or len(known) < len(set(kept)))


def _is_made(path: str) -> bool:
    return "$" in path or "`" in path or path == "{}"


def relative_command(text: str, roots: Sequence[str]) -> str:
    """Return a command or a path as it would be written at the repository's root: without an
    initial `cd` into the repository, and with paths below it made relative.

    roots: paths of the repository in the sandboxes, which mean nothing to a reader.

    The result is for display only. If the shell was in another directory, it is another command.
    """
    for root in roots:
        plain = re.escape(root.rstrip("/"))
        if not plain:
            continue
        text = re.sub(rf"\A\s*cd\s+(['\"]?){plain}/?\1\s*(?:&&|;|\n)\s*(?=\S)", "", text)
        text = re.sub(rf"(?<![\w./-]){plain}/(?=[\w.*-])", "", text)
        text = re.sub(rf"(?<![\w./-]){plain}/?(?![\w./-])", ".", text)
    return text


MOST_CODE = 50_000
"""Maximum characters of code that are analyzed."""

_NAMED_IN_CODE = re.compile(
    r"\b(?:create_file|edit_file_by_replace|insert_content_at_line|append_file)"
    r"\(\s*(['\"])(.{1,500}?)\1"
    r"|open\(\s*(['\"])([^'\"]{1,500})\3\s*,\s*['\"](?:[wax]|r?b?\+|rb\+|r\+)"
    r"|Path\(\s*(['\"])([^'\"]{1,500})\5\s*\)\.write_(?:text|bytes)"
    r"|(?:writeFile|writeFileSync|File\.write|file_put_contents)\(\s*(['\"])([^'\"]{1,500})\7"
)
"""Matches writing to a file whose name is given as a literal."""

_UNNAMED = re.compile(
    r"\.write_(?:text|bytes)\(|\bopen\([^)]{1,300}['\"][rb]*[wax+]"
    r"|\bshutil\.|\bos\.(?:rename|replace|remove|unlink)\(|\.(?:unlink|rename)\("
    r"|\bwriteFile|\bFile\.write\b|\bfile_put_contents\b|\binplace=True"
)
"""Matches writing to a file whose name is not known."""

_HANDLE = re.compile(r"(?<!stdout)(?<!stderr)\.write(?:lines)?\(")
"""Matches a write to an open file. The name is given where the file was opened."""


def written_in(code: str, root: str = "") -> WrittenPaths:
    """Return what the code may write in the repository at `root`. Shell lines of a cell (`!sed -i`)
    are not analyzed."""
    text = code[:MOST_CODE]
    named = [
        found[2] or found[4] or found[6] or found[8] for found in _NAMED_IN_CODE.finditer(text)
    ]
    unknown = _UNNAMED.search(_NAMED_IN_CODE.sub("", text)) is not None
    unknown = unknown or (not named and _HANDLE.search(text) is not None)
    return of_paths(named, root, unknown=unknown)


_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})
_ALWAYS = frozenset({"am", "revert", "merge", "rebase", "cherry-pick", "pull", "bisect"})
_GIT_LOOKS = frozenset(
    {"-n", "--dry-run", "--cached", "--check", "--stat", "--numstat", "--summary"}
)
_KEPT = frozenset({"list", "show", "drop", "clear", "create", "store"})
_NEW = frozenset({"-b", "-B", "-c", "-C", "--create", "--orphan", "--force-create"})


def git_writes(args: Sequence[str]) -> WrittenPaths:
    """Return what `git` with these arguments writes to the working tree. A commit writes nothing:
    it only records what is there."""
    at = 0
    while at < len(args) and args[at].startswith("-"):
        at += 2 if args[at] in _VALUED else 1
    if at >= len(args):
        return WrittenPaths()
    name, rest = args[at], args[at + 1 :]
    behind = rest.index("--") if "--" in rest else None
    named = tuple(w for w in rest if not w.startswith("-")) if behind is None else ()
    paths = tuple(rest[behind + 1 :]) if behind is not None else named
    match name:
        case "mv" | "rm" if _GIT_LOOKS.isdisjoint(rest):
            return WrittenPaths(paths)
        case "restore":
            staged = not {"--staged", "-S"}.isdisjoint(rest)
            only = staged and {"--worktree", "-W"}.isdisjoint(rest)
            return WrittenPaths() if only else WrittenPaths(paths)
        case "checkout" if behind is not None:
            return WrittenPaths(paths)
        case "checkout" | "switch":
            return WrittenPaths(unknown=_NEW.isdisjoint(rest) and bool(rest))
        case "reset":
            return WrittenPaths(unknown=not {"--hard", "--merge", "--keep"}.isdisjoint(rest))
        case "stash":
            return WrittenPaths(unknown=not rest or rest[0] not in _KEPT)
        case "clean" | "apply":
            return WrittenPaths(unknown=_GIT_LOOKS.isdisjoint(rest))
        case "submodule":
            return WrittenPaths(unknown="update" in rest)
        case _:
            return WrittenPaths(unknown=name in _ALWAYS)


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
