"""Determines whether a command line or a cell may run code whose result says something about a
change although it is not a known check: a script by the agent, or `python -c "assert ..."`.

If it may, Resolver can't claim that no check was run. Unknown commands are assumed to run code.
"""

import ast
import warnings
from functools import lru_cache
from posixpath import basename

from resolver.security.shell.checkers import find_check
from resolver.security.shell.syntax import Pipeline, PipelineStage, parse
from resolver.security.shell.wrappers import (
    MAX_WORDS,
    command_argument,
    has_substitution,
    inline_script,
    plain_word,
    skip_assignments,
    unwrapped,
)
from resolver.security.shell.writes import MAX_CODE_CHARACTERS, writes_unnamed

MAX_READ_CHARACTERS = 200_000
"""Maximum characters of a command line that are analyzed; a longer one is assumed to run code."""

_MAX_DEPTH = 4

_RUN_NO_CODE = frozenset({
    "awk", "b2sum", "base64", "basename", "bat", "cat", "cd", "cksum", "cmp", "column", "comm",
    "cut", "date", "df", "diff", "dirname", "dirs", "du", "echo", "egrep", "env", "fd", "fgrep",
    "file", "fold", "gawk", "grep", "head", "hexdump", "id", "jq", "less", "locale", "ls",
    "lsof", "md5sum", "more", "nl", "od", "paste", "popd", "printenv", "printf", "ps", "pushd",
    "pwd", "readlink", "realpath", "rev", "rg", "sha1sum", "sha256sum", "sleep", "sort", "stat",
    "strings", "tac", "tail", "tee", "tr", "tree", "true", "tput", "type", "uname", "uniq",
    "wc", "whereis", "which", "whoami", "xxd", "yq", "zcat", "[", "[[", "alias", "export",
    "false", "exit", "for", "kill", "local", "pgrep", "pkill", "read", "return", "select",
    "set", "shift", "shopt", "test", "trap", "ulimit", "umask", "unset", "wait", "chmod",
    "chown", "cp", "dos2unix", "ex", "expand", "gsed", "gzip", "gunzip", "install", "ln",
    "mkdir", "mktemp", "mv", "patch", "rm", "rmdir", "rsync", "sed", "tar", "touch", "truncate",
    "unexpand", "unix2dos", "unlink", "unzip", "zip", "apt", "apt-get", "apk", "conda", "curl",
    "dpkg", "pip", "pip3", "wget", "yum",
})  # fmt: skip
"""Programs that read files, change files or download something, and run no code of the project."""

_GIT_RUNS_CODE = frozenset({"bisect", "rebase", "submodule"})
_GIT_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})

_CELL_FUNCTIONS = frozenset({
    "append_file", "create_file", "edit_file_by_replace", "insert_content_at_line", "find_file",
    "goto_line", "open_file", "scroll_down", "scroll_up", "search_dir", "search_file",
})  # fmt: skip
"""Functions for viewing and editing that are defined in every IPython session of the agent."""


@lru_cache(maxsize=8)  # asked again each time a running command is looked at
def runs_other_code(command: str) -> bool:
    """Return True if the command line may run code other than the checks in it."""
    return len(command) > MAX_READ_CHARACTERS or _text(command, 0)


def cell_runs_other_code(code: str) -> bool:
    """Return True if a cell does more than call the functions for viewing and editing."""
    try:
        with warnings.catch_warnings():  # about invalid escape sequences, which are harmless here
            warnings.simplefilter("ignore")
            tree = ast.parse(code if len(code) <= MAX_CODE_CHARACTERS else "!")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return not all(_is_plain_call(statement) for statement in tree.body)


def _is_plain_call(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return False
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return call.func.id in _CELL_FUNCTIONS and all(
        isinstance(value, ast.Constant) for value in values
    )


def _text(text: str, depth: int) -> bool:
    if depth > _MAX_DEPTH:
        return True
    script = parse(text)
    return _list(script.pipelines, frozenset(script.functions), depth)


def _list(pipelines: list[Pipeline], functions: frozenset[str], depth: int) -> bool:
    return any(_stage(stage, functions, depth) for line in pipelines for stage in line)


def _stage(stage: PipelineStage, functions: frozenset[str], depth: int) -> bool:
    if any(has_substitution(word) for word in stage.words[:MAX_WORDS]):
        return True
    # a here-document has no quotes, so any substitution in it is executed
    if any("$(" in r.target or "`" in r.target for r in stage.redirects if not r.literal):
        return True
    if stage.body is not None:
        return _list(stage.body, functions, depth)
    script = inline_script(stage.words[:MAX_WORDS])
    if script is not None:
        return _text(script, depth + 1)
    argv = tuple(plain_word(word) for word in skip_assignments(stage.words[:MAX_WORDS]))
    return bool(argv) and _call(unwrapped(argv)[0], functions, depth)


def _call(argv: tuple[str, ...], functions: frozenset[str], depth: int) -> bool:
    name, args = basename(argv[0]), argv[1:]
    if inner_argv := command_argument(name, args):
        return depth >= _MAX_DEPTH or _call(inner_argv, functions, depth + 1)
    if name in functions or find_check(argv):
        return False  # the body of a function is analyzed at its definition
    if name in {"source", "."}:
        return not args or basename(args[0]) != "activate"
    if name == "git":
        return _git(args)
    if name in _RUN_NO_CODE or name in {"find", ""}:
        return False
    return not writes_unnamed(name, argv)


def _git(args: tuple[str, ...]) -> bool:
    index = 0
    while index < len(args) and args[index].startswith("-"):
        index += 2 if args[index] in _GIT_VALUED else 1
    return index < len(args) and args[index] in _GIT_RUNS_CODE
