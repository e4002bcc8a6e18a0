"""Finds the command inside wrappers: programs that run another command, such as `sudo` or `uv`.

Further functions on raw words of a command remove quotes and assignments and find inline scripts.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from posixpath import basename

from resolver.security.shell.syntax import assignment

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w{0,200}=")
_MAX_WRAPPERS = 20


@dataclass(frozen=True)
class Wrapper:
    """Describes the arguments that a wrapper takes before the command that it runs.

    value_options: short options whose value is the next word.
    long_value_options: long options whose value is the next word.
    operands: number of operands before the command.
    subcommands: subcommands, one of which must come first (`uv run`); "" if it may be left out.
    """

    value_options: str = ""
    operands: int = 0
    subcommands: tuple[str, ...] = ()
    long_value_options: tuple[str, ...] = ()


_COVERAGE = Wrapper("rnx", long_value_options=("--reporter", "--include", "--exclude", "--src"))
_WRAPPERS = {
    "sudo": Wrapper(
        "ugpChCrtT", long_value_options=("--user", "--group", "--prompt", "--host", "--chdir")
    ),
    "doas": Wrapper("uC"),
    "env": Wrapper("uCS", long_value_options=("--unset", "--chdir")),
    "nohup": Wrapper(),
    "setsid": Wrapper(),
    "timeout": Wrapper("ks", 1, long_value_options=("--signal", "--kill-after")),
    "nice": Wrapper("n", long_value_options=("--adjustment",)),
    "ionice": Wrapper("cnp"),
    "chrt": Wrapper("", 1),
    "taskset": Wrapper("", 1),
    "stdbuf": Wrapper("ioe"),
    "unbuffer": Wrapper(),
    "command": Wrapper(),
    "builtin": Wrapper(),
    "exec": Wrapper("a"),
    "time": Wrapper("fo"),
    "busybox": Wrapper(),
    "toybox": Wrapper(),
    "watch": Wrapper("n", long_value_options=("--interval",)),
    "flock": Wrapper("wEc", 1),
    "chronic": Wrapper(),
    "faketime": Wrapper("f", 1),
    "xvfb-run": Wrapper("ens"),
    "dbus-run-session": Wrapper(),
    "strace": Wrapper("eopsPaEIOSu"),
    "ltrace": Wrapper("eopnsu"),
    "catchsegv": Wrapper(),
    "uv": Wrapper(
        "p", subcommands=("run",), long_value_options=("--with", "--python", "--group", "--extra")
    ),
    "poetry": Wrapper("C", subcommands=("run",)),
    "pipenv": Wrapper(subcommands=("run",)),
    "pdm": Wrapper(subcommands=("run",)),
    "hatch": Wrapper(subcommands=("run",)),
    "rye": Wrapper(subcommands=("run",)),
    "conda": Wrapper("np", subcommands=("run",), long_value_options=("--name", "--prefix")),
    "bundle": Wrapper(subcommands=("exec",)),
    "rbenv": Wrapper(subcommands=("exec",)),
    "pyenv": Wrapper(subcommands=("exec",)),
    "direnv": Wrapper("", 1, subcommands=("exec",)),
    "mise": Wrapper(subcommands=("exec", "x")),
    "dotenv": Wrapper("ef", subcommands=("run", "")),
    "env-cmd": Wrapper("f"),
    "cross-env": Wrapper(),
    "cross-env-shell": Wrapper(),
    "c8": _COVERAGE,
    "nyc": _COVERAGE,
    "hyperfine": Wrapper("wrmMpcsn"),
}


def unwrap_command(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of the innermost command."""
    for _ in range(_MAX_WRAPPERS):
        wrapper = _WRAPPERS.get(basename(argv[0]))
        inner_argv = _inner_argv(argv, wrapper) if wrapper else ()
        if not inner_argv:
            break
        argv = inner_argv
    return argv


def _inner_argv(argv: Sequence[str], wrapper: Wrapper) -> tuple[str, ...]:
    """Return the words after the wrapper and its arguments; empty if it runs no command."""
    name, words = basename(argv[0]), list(argv[1:])
    if name == "command" and words[:1] in (["-v"], ["-V"]):
        return ()
    index, operands = 0, wrapper.operands
    if wrapper.subcommands:
        while index < len(words) and words[index].startswith("-"):
            index += 1
        if index < len(words) and words[index] in wrapper.subcommands:
            index += 1
        elif "" in wrapper.subcommands:
            index = 0
        else:
            return ()
    while index < len(words):
        word = words[index]
        if word == "--":
            index += 1
            break
        if _ASSIGNMENT.match(word):
            index += 1
        elif word.startswith("-") and len(word) > 1:
            takes_value = word in wrapper.long_value_options or (
                not word.startswith("--") and word[-1] in wrapper.value_options
            )
            index += 2 if takes_value else 1
        elif operands:
            operands -= 1
            index += 1
        else:
            break
    return tuple(words[index:])


MAX_WORDS = 2_000
"""Maximum words of one command that are looked at."""

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
_QUOTED_PART = re.compile(r"'([^']*)'?|\"((?:\\.|[^\"\\])*)\"?|\\(\n|.)|([^'\"\\]+)", re.S)


def skip_assignments(words: Sequence[str]) -> Iterator[str]:
    """Yield the words from the program's name on, without the assignments before it."""
    started = False
    for word in words:
        started = started or assignment(word) is None
        if started:
            yield word


def inline_script(words: Sequence[str]) -> str | None:
    """Return the script of `bash -c`; None if there is none, or if it contains an expansion whose
    result is not known."""
    argv = unwrap_command(tuple(words)) if words else ()
    if not argv or basename(argv[0]) not in _SHELLS:
        return None
    for index, word in enumerate(argv[1:], start=1):
        if not word.startswith("-"):
            return None
        if not word.startswith("--") and "c" in word[1:] and "o" not in word[1:]:
            script = argv[index + 1] if index + 1 < len(argv) else ""
            return None if _has_expansion(script) else plain_word(script)
    return None


def _has_expansion(word: str) -> bool:
    return any("$" in part or "`" in part for part in _unquoted(word))


def _unquoted(word: str) -> Iterator[str]:
    """Yield the parts of a raw word that a shell expands: those not in single quotes."""
    return (match[2] or match[4] or "" for match in _QUOTED_PART.finditer(word))


def plain_word(word: str) -> str:
    """Return a raw word without its quotes. Expansions stay as written, since their results are not
    known."""
    if not any(char in word for char in "'\"\\"):
        return word

    def text(match: re.Match[str]) -> str:
        single_quoted, double_quoted, escaped, unquoted = match.groups()
        if single_quoted is not None:
            return single_quoted
        if double_quoted is not None:
            return re.sub(r"\\([\"\\$`\n])", lambda m: m[1].strip("\n"), double_quoted)
        if escaped is not None:
            return escaped.strip("\n")
        return unquoted or ""

    return "".join(text(found) for found in _QUOTED_PART.finditer(word))
