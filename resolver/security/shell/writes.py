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

from resolver.security.shell.checkers import find_check
from resolver.security.shell.checks import MAX_READ_CHARACTERS, PREPARING_COMMANDS
from resolver.security.shell.syntax import Pipeline, PipelineStage, parse
from resolver.security.shell.wrappers import (
    MAX_WORDS,
    command_argument,
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
    normalized = posixpath.normpath(path) if path.startswith("/") else ""
    if root and (normalized == root or normalized.startswith(f"{root}/")):
        return False
    return any(normalized == part or normalized.startswith(f"{part}/") for part in _OUTSIDE)


def of_paths(paths: Iterable[str], root: str = "", *, unknown: bool = False) -> WrittenPaths:
    """Return those of the paths that may be in a repository. A path that contains an expansion is
    not known, and counts as unknown."""
    inside = [path for path in paths if path and not is_outside(path, root)]
    names = tuple(dict.fromkeys(part for part in inside if not _is_made(part)))
    return WrittenPaths(names, unknown or len(names) < len(set(inside)))


def _is_made(path: str) -> bool:
    return "$" in path or "`" in path or path == "{}"


def relative_command(text: str, roots: Sequence[str]) -> str:
    """Return a command or a path as it would be written at the repository's root: without an
    initial `cd` into the repository, and with paths below it made relative.

    roots: paths of the repository in the sandboxes, which mean nothing to a reader.

    The result is for display only. If the shell was in another directory, it is another command.
    """
    for root in roots:
        relative = re.escape(root.rstrip("/"))
        if not relative:
            continue
        text = re.sub(rf"\A\s*cd\s+(['\"]?){relative}/?\1\s*(?:&&|;|\n)\s*(?=\S)", "", text)
        text = re.sub(rf"(?<![\w./-]){relative}/(?=[\w.*-])", "", text)
        text = re.sub(rf"(?<![\w./-]){relative}/?(?![\w./-])", ".", text)
    return text


MAX_CODE_CHARACTERS = 50_000
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
    text = code[:MAX_CODE_CHARACTERS]
    literals = [
        match[2] or match[4] or match[6] or match[8] for match in _NAMED_IN_CODE.finditer(text)
    ]
    unknown = _UNNAMED.search(_NAMED_IN_CODE.sub("", text)) is not None
    unknown = unknown or (not literals and _HANDLE.search(text) is not None)
    return of_paths(literals, root, unknown=unknown)


_GIT_VALUE_OPTIONS = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})
_ALWAYS_WRITES = frozenset({"am", "revert", "merge", "rebase", "cherry-pick", "pull", "bisect"})
_GIT_DRY_OPTIONS = frozenset(
    {"-n", "--dry-run", "--cached", "--check", "--stat", "--numstat", "--summary"}
)
_HARMLESS_STASH = frozenset({"list", "show", "drop", "clear", "create", "store"})
_NEW_BRANCH_OPTIONS = frozenset({"-b", "-B", "-c", "-C", "--create", "--orphan", "--force-create"})


def git_writes(args: Sequence[str]) -> WrittenPaths:
    """Return what `git` with these arguments writes to the working tree. A commit writes nothing:
    it only records what is there."""
    index = 0
    while index < len(args) and args[index].startswith("-"):
        index += 2 if args[index] in _GIT_VALUE_OPTIONS else 1
    if index >= len(args):
        return WrittenPaths()
    name, arguments = args[index], args[index + 1 :]
    separator = arguments.index("--") if "--" in arguments else None
    operands = (
        tuple(word for word in arguments if not word.startswith("-")) if separator is None else ()
    )
    paths = tuple(arguments[separator + 1 :]) if separator is not None else operands
    match name:
        case "mv" | "rm" if _GIT_DRY_OPTIONS.isdisjoint(arguments):
            return WrittenPaths(paths)
        case "restore":
            staged = not {"--staged", "-S"}.isdisjoint(arguments)
            index_only = staged and {"--worktree", "-W"}.isdisjoint(arguments)
            return WrittenPaths() if index_only else WrittenPaths(paths)
        case "checkout" if separator is not None:
            return WrittenPaths(paths)
        case "checkout" | "switch":
            return WrittenPaths(
                unknown=_NEW_BRANCH_OPTIONS.isdisjoint(arguments) and bool(arguments)
            )
        case "reset":
            return WrittenPaths(unknown=not {"--hard", "--merge", "--keep"}.isdisjoint(arguments))
        case "stash":
            return WrittenPaths(unknown=not arguments or arguments[0] not in _HARMLESS_STASH)
        case "clean" | "apply":
            return WrittenPaths(unknown=_GIT_DRY_OPTIONS.isdisjoint(arguments))
        case "submodule":
            return WrittenPaths(unknown="update" in arguments)
        case _:
            return WrittenPaths(unknown=name in _ALWAYS_WRITES)


_MAX_DEPTH = 4
_WRITE_OPERATORS = frozenset({">", ">>", ">|", "&>", "&>>", "<>", ">&"})
"""Redirection operators that write to their target."""

_IN_PLACE = re.compile(r"-[nErsuzplaw0]*i(?:[^a-z].*|bak|orig|e)?|--in-place(?:=.*)?")
_TAKES_SCRIPT = re.compile(r"-[a-zA-Z0]*[ef]|--expression|--file")
_EDITORS = frozenset({"sed", "gsed", "perl", "ruby"})
_WRITERS_TO_OPERANDS = frozenset(
    {"tee", "mv", "rm", "touch", "truncate", "dos2unix", "unix2dos", "unlink", "ed", "ex"}
)
_COPIERS = frozenset({"cp", "ln", "install", "rsync"})
_FORMATTERS = frozenset({"black", "isort", "rustfmt", "goimports", "patch", "codemod", "pyupgrade"})
"""Formatters and similar programs that write unless an option in `_DRY_OPTIONS` is given."""

_FORMATTER_OPTIONS = {
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

_TASK_RUNNERS = frozenset(
    {"make", "gmake", "npm", "yarn", "pnpm", "bun", "just", "task", "rake", "tox", "nox", "hatch"}
)
_WRITING_TASK = re.compile(
    r"(?:\S{1,60}[:._-])?(?:fmt|format|fix|reformat|autofix|codegen|generate)"
)
_DRY_OPTIONS = frozenset(
    {"--check", "--check-only", "--diff", "--dry-run", "-n", "--help", "--version"}
)
_FIX_OPTIONS = frozenset(
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

_SNAPSHOT_TOOLS = frozenset({"jest", "vitest", "playwright", "ava"})
_INTERPRETER = re.compile(r"(?:python|pypy|node|deno|bun|ruby|perl|php|ipython)[\d.]*")
_CODE_OPTIONS = frozenset({"-c", "-e", "-r", "--eval", "eval"})
"""Options after which an interpreter takes code from the command line."""


@dataclass
class _WriteCollector:
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
        self.paths += (posixpath.join(self.cwd, path) for path in paths)


def written_paths(command: str, root: str = "") -> WrittenPaths:
    """Return what the command line may write in the repository at `root`.

    A check writes nothing, unless an option tells it to fix what it finds. A file that its output
    is saved to does not count.
    """
    collector = _WriteCollector(root)
    _text(command[:MAX_READ_CHARACTERS], collector, 0)
    written = of_paths(collector.paths, root, unknown=collector.unknown)
    is_single = collector.commands == collector.steps == 1 and len(written.paths) == 1
    return WrittenPaths(written.paths, written.unknown, is_single and not written.unknown)


def _text(text: str, collector: _WriteCollector, depth: int) -> None:
    script = parse(text)
    for body in script.functions.values():
        _read_list(body, collector, depth)
    _read_list(script.pipelines, collector, depth)


def _read_list(pipelines: list[Pipeline], collector: _WriteCollector, depth: int) -> None:
    for pipeline in pipelines:
        calls = [_call(stage) for stage in pipeline]
        has_check = any(find_check(call) for call in calls)
        for stage, call in zip(pipeline, calls, strict=True):
            if stage.body is not None:
                folder = collector.cwd
                if stage.kind != "function":
                    _read_list(stage.body, collector, depth)
                collector.cwd = folder if stage.kind == "(" else collector.cwd
            elif not (has_check and call and basename(call[0]) == "tee"):
                _read_simple(stage, call, collector, depth)
            if not has_check:
                _read_redirects(stage, collector)


def _call(stage: PipelineStage) -> tuple[str, ...]:
    """Return the words of the innermost command of a stage, without wrappers and assignments."""
    argv = tuple(plain_word(word) for word in skip_assignments(stage.words[:MAX_WORDS]))
    return unwrapped(argv)[0] if argv else ()


def _read_redirects(stage: PipelineStage, collector: _WriteCollector) -> None:
    for redirect in stage.redirects:
        target = plain_word(redirect.target) if redirect.operator in _WRITE_OPERATORS else ""
        if target and not (redirect.operator == ">&" and re.fullmatch(r"\d+|-", target)):
            # counted twice, so that `whole` stays False: the shell truncates the file even if the
            # command fails
            collector.commands += 2
            collector.name([target])


def _read_simple(
    stage: PipelineStage, call: tuple[str, ...], collector: _WriteCollector, depth: int
) -> None:
    script = inline_script(stage.words[:MAX_WORDS])
    if script is not None and depth < _MAX_DEPTH:
        _text(script, collector, depth + 1)
        return
    if not call:
        return
    name = basename(call[0])
    if name in {"cd", "pushd"}:
        target = posixpath.join(collector.cwd, call[1]) if len(call) > 1 else ""
        collector.cwd = target if is_outside(target, collector.root) else ""
    collector.commands += name not in PREPARING_COMMANDS
    code = "" if _writes_operands(name, call[1:]) else _code(name, call, stage)
    if code:
        collector.commands += 1  # so that `whole` stays False: the code may fail half-way
        collector.take(written_in(code, collector.root))
    else:
        _read_call(name, call, collector, depth)


def _code(name: str, call: tuple[str, ...], stage: PipelineStage) -> str:
    """Return the code that an interpreter gets in the command line itself or in a here-document."""
    if not _INTERPRETER.fullmatch(name[:40]):
        return ""
    for index, word in enumerate(call[1:], start=1):
        if word in _CODE_OPTIONS:
            return " ".join(call[index + 1 : index + 2])
        if not word.startswith("-"):
            return ""
    return "".join(
        redirect.target for redirect in stage.redirects if redirect.operator in {"<<", "<<<"}
    )


def _read_call(name: str, call: tuple[str, ...], collector: _WriteCollector, depth: int) -> None:
    args = call[1:]
    inner_argv = command_argument(name, args)
    if inner_argv and depth < _MAX_DEPTH:
        count_before = len(collector.paths)
        _read_call(basename(inner_argv[0]), inner_argv, collector, depth + 1)
        collector.unknown = (
            collector.unknown
            or _writes_passed_paths(inner_argv)
            or len(collector.paths) > count_before
        )
        collector.commands += 1
    elif name == "eval" and depth < _MAX_DEPTH:
        _text(" ".join(args), collector, depth + 1)
    elif name == "git":
        collector.steps += 1
        collector.take(git_writes(args))
    elif name == "find" and "-delete" in args:
        collector.unknown = True
    elif _writes_operands(name, args):
        collector.steps += 1
        collector.name(_operands(name, args))
    elif writes_unnamed(name, call):
        collector.unknown = True


def _writes_passed_paths(inner: Sequence[str]) -> bool:
    """Return True if the command writes to the paths that are passed to it."""
    name, args = basename(inner[0]), inner[1:]
    return _writes_operands(name, args)


def _writes_operands(name: str, args: Sequence[str]) -> bool:
    """Return True if the program writes to the paths that its arguments name."""
    if name in _EDITORS:
        return any(_IN_PLACE.fullmatch(word[:80]) for word in args)
    return name in _WRITERS_TO_OPERANDS or name in _COPIERS


def _operands(name: str, args: Sequence[str]) -> list[str]:
    """Return the paths among the arguments that are written: no script of `sed` or `perl`, and only
    the destination of a copy."""
    paths: list[str] = []
    has_script = any(_TAKES_SCRIPT.fullmatch(word[:80]) for word in args)
    script_next = name in {"sed", "gsed"} and not has_script
    for word in args:
        if word.startswith("-") and len(word) > 1:
            takes_script = name in _EDITORS and _TAKES_SCRIPT.fullmatch(word[:80]) is not None
            script_next = script_next or takes_script
        elif script_next:
            script_next = False
        else:
            paths.append(word)
    return paths[-1:] if name in _COPIERS else paths


def writes_unnamed(name: str, call: Sequence[str]) -> bool:
    """Return True if the program changes files that it finds by itself, as formatters do."""
    args = tuple(call[1:])
    words = [arg for arg in args if not arg.startswith("-")]
    if name in _TASK_RUNNERS and any(_WRITING_TASK.fullmatch(word[:80]) for word in words):
        return True
    if check := find_check(call):
        updates_snapshots = "-u" in args and any(
            basename(word) in _SNAPSHOT_TOOLS for word in check[:2]
        )
        return updates_snapshots or any(word.partition("=")[0] in _FIX_OPTIONS for word in args)
    if name in {"python", "python3"} and args[:1] == ("-m",):
        return len(args) > 1 and writes_unnamed(args[1], args[1:])
    if name in {"npx", "bunx", "uvx"} and words:
        index = args.index(words[0])
        return writes_unnamed(basename(words[0]), args[index:])
    if not _DRY_OPTIONS.isdisjoint(args):
        return False
    write_options = _FORMATTER_OPTIONS.get(name, "").split()
    if name in _FORMATTERS or any(word in write_options for word in args):
        return True
    return "--fix" in args or (bool(words) and words[0] in _SUBCOMMANDS.get(name, "").split())
