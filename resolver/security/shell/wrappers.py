"""Finds the command inside wrappers: programs that run another command, such as `sudo` or `uv`.

Further functions on raw words of a command remove quotes and assignments and find inline scripts.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from posixpath import basename

from resolver.security.shell.syntax import assignment

_ASSIGNS = re.compile(r"[A-Za-z_]\w{0,200}=")
_MOST = 20


@dataclass(frozen=True)
class Wrapper:
    """Describes the arguments that a wrapper takes before the command that it runs.

    valued: short options whose value is the next word.
    long: long options whose value is the next word.
    operands: number of operands before the command.
    sub: subcommands, one of which must come first (`uv run`).
    """

    valued: str = ""
    operands: int = 0
    sub: tuple[str, ...] = ()
    long: tuple[str, ...] = ()


_WRAPPERS = {
    "sudo": Wrapper("ugpChCrtT", long=("--user", "--group", "--prompt", "--host", "--chdir")),
    "doas": Wrapper("uC"),
    "env": Wrapper("uCS", long=("--unset", "--chdir")),
    "nohup": Wrapper(),
    "setsid": Wrapper(),
    "timeout": Wrapper("ks", 1, long=("--signal", "--kill-after")),
    "nice": Wrapper("n", long=("--adjustment",)),
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
    "watch": Wrapper("n", long=("--interval",)),
    "flock": Wrapper("wEc", 1),
    "chronic": Wrapper(),
    "faketime": Wrapper("f", 1),
    "xvfb-run": Wrapper("ens"),
    "dbus-run-session": Wrapper(),
    "strace": Wrapper("eopsPaEIOSu"),
    "ltrace": Wrapper("eopnsu"),
    "catchsegv": Wrapper(),
    "uv": Wrapper("p", sub=("run",), long=("--with", "--python", "--group", "--extra")),
    "poetry": Wrapper("C", sub=("run",)),
    "pipenv": Wrapper(sub=("run",)),
    "pdm": Wrapper(sub=("run",)),
    "hatch": Wrapper(sub=("run",)),
    "rye": Wrapper(sub=("run",)),
    "conda": Wrapper("np", sub=("run",), long=("--name", "--prefix")),
    "bundle": Wrapper(sub=("exec",)),
    "rbenv": Wrapper(sub=("exec",)),
    "pyenv": Wrapper(sub=("exec",)),
    "direnv": Wrapper("", 1, sub=("exec",)),
    "mise": Wrapper(sub=("exec", "x")),
    "dotenv": Wrapper("f", sub=("run",)),
    "hyperfine": Wrapper("wrmMpcsn"),
}


def unwrapped(argv: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """Return the words of the innermost command, and whether it runs as another user."""
    as_root = False
    for _ in range(_MOST):
        name = basename(argv[0])
        wrapper = _WRAPPERS.get(name)
        inner = _inner(argv, wrapper) if wrapper else ()
        if not inner:
            break
        as_root = as_root or name in {"sudo", "doas"}
        argv = inner
    return argv, as_root


def given_command(name: str, args: Sequence[str]) -> tuple[str, ...]:
    """Return the command that `xargs` or `find -exec` runs; empty for any other program."""
    if name in {"xargs", "parallel"}:
        at = 0
        while at < len(args) and args[at].startswith("-"):
            at += 2 if args[at] in {"-n", "-I", "-P", "-L", "-s", "-d", "-a", "-E", "-j"} else 1
        return tuple(args[at:])
    if name == "find":
        for at, word in enumerate(args):
            if word in {"-exec", "-execdir", "-ok", "-okdir"}:
                return tuple(each for each in args[at + 1 :] if each not in {";", "\\;", "+"})
    return ()


def _inner(argv: Sequence[str], wrapper: Wrapper) -> tuple[str, ...]:
    """Return the words after the wrapper and its arguments; empty if it runs no command."""
    name, words = basename(argv[0]), list(argv[1:])
    if name == "command" and words[:1] in (["-v"], ["-V"]):
        return ()
    at, operands = 0, wrapper.operands
    if wrapper.sub:
        while at < len(words) and words[at].startswith("-"):
            at += 1
        if at >= len(words) or words[at] not in wrapper.sub:
            return ()
        at += 1
    while at < len(words):
        word = words[at]
        if word == "--":
            at += 1
            break
        if (name == "env" and _ASSIGNS.match(word)) or (name == "sudo" and _ASSIGNS.match(word)):
            at += 1
        elif word.startswith("-") and len(word) > 1:
            takes = word in wrapper.long or (
                not word.startswith("--") and word[-1] in wrapper.valued
            )
            at += 2 if takes else 1
        elif operands:
            operands -= 1
            at += 1
        else:
            break
    return tuple(words[at:])


MOST_WORDS = 2_000
"""Maximum words of one command that are looked at."""

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
_QUOTED = re.compile(r"'([^']*)'?|\"((?:\\.|[^\"\\])*)\"?|\\(\n|.)|([^'\"\\]+)", re.S)


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
    argv = unwrapped(tuple(words))[0] if words else ()
    if not argv or basename(argv[0]) not in _SHELLS:
        return None
    for at, word in enumerate(argv[1:], start=1):
        if not word.startswith("-"):
            return None
        if not word.startswith("--") and "c" in word[1:] and "o" not in word[1:]:
            script = argv[at + 1] if at + 1 < len(argv) else ""
            return None if _expands(script) else plain_word(script)
    return None


def substitutes(word: str) -> bool:
    """Return True if a raw word contains a command or process substitution: `$(...)`, `<(...)`."""
    return any(sign in part for part in _unquoted(word) for sign in ("$(", "`", "<(", ">("))


def _expands(word: str) -> bool:
    return any("$" in part or "`" in part for part in _unquoted(word))


def _unquoted(word: str) -> Iterator[str]:
    """Yield the parts of a raw word that a shell expands: those not in single quotes."""
    return (found[2] or found[4] or "" for found in _QUOTED.finditer(word))


def plain_word(word: str) -> str:
    """Return a raw word without its quotes. Expansions stay as written, since their results are not
    known."""
    if not any(char in word for char in "'\"\\"):
        return word

    def text(found: re.Match[str]) -> str:
        single, double, escaped, bare = found.groups()
        if single is not None:
            return single
        if double is not None:
            return re.sub(r"\\([\"\\$`\n])", lambda m: m[1].strip("\n"), double)
        if escaped is not None:
            return escaped.strip("\n")
        return bare or ""

    return "".join(text(found) for found in _QUOTED.finditer(word))
