"""Rules for commands that run text: shells, interpreters, `eval`, `xargs`, `find -exec`. Known text
is walked. Running downloaded or decoded text that is not known is a finding.

Short programs in awk, Perl, Ruby, JavaScript and PHP are searched with regular expressions, not
parsed, for shell commands they run and files and URLs they name.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from resolver.security.risk.expansion import OPAQUE, Flow
from resolver.security.risk.findings import DECODED, FETCHED, RiskFinding, high, medium
from resolver.security.risk.hosts import NetworkHost, judge_host
from resolver.security.risk.paths import PathPlace, Paths
from resolver.security.risk.python import python_findings
from resolver.security.risk.walk import SHELLS, ShellCall, ShellWalk, split_words

MAX_CODE_CHARACTERS = 100_000
"""Maximum characters that are searched."""

_RUN_CALLS = re.compile(
    r"\b(?:system|exec|execSync|spawn|spawnSync|popen|shell_exec|passthru|proc_open|sprintf)\b"
    r"\s{0,3}\(?\s{0,3}(?:'([^'\n]{1,2000})'|\"([^\"\n]{1,2000})\")"
)
_FETCH = re.compile(r"\bfetch\s{0,3}\(|\bhttps?\.request\b|\baxios\b|\bNet::HTTP\b|\bcurl_init\b")
_ENVIRONMENT = re.compile(r"\bprocess\.env\s{0,3}(?![.\w\[\s])|\bENV\.(?:to_h|to_json|inspect|map)")
_BACKTICKS = re.compile(r"`([^`\n]{1,2000})`")
_SOCKET = re.compile(
    r"\bTCPSocket\b|\bfsockopen\b|\buse\s+(?:IO::)?Socket\b|\bsockaddr_in\b|net\.(?:connect|Socket)"
    r"|createConnection"
)
_SHELL = re.compile(r"/bin/(?:ba|da|z)?sh\b|\bsh\s+-i\b|cmd\.exe|\bpopen\b")
_STRING = re.compile(r"'([^'\n]{1,500})'|\"([^\"\n]{1,500})\"")
_REMOVE_CALLS = re.compile(
    r"\b(?:rmSync|rmdirSync|rm_rf|rm_r|remove_entry|remove_tree|rmtree|unlink)\b"
)


def snippet_findings(
    code: str, paths: Paths, run: Callable[[str], object]
) -> Iterator[RiskFinding]:
    """Yield findings about the code. run: called with each shell text that the code runs."""
    code = code[:MAX_CODE_CHARACTERS]
    for match in _RUN_CALLS.finditer(code):
        run(match[1] or match[2])
    for match in _BACKTICKS.finditer(code):
        run(match[1])
    if _SOCKET.search(code):
        if _SHELL.search(code):
            yield high("reverse_shell", code)
        else:
            yield medium("raw_connection", code)
    if _FETCH.search(code) and _ENVIRONMENT.search(code):
        is_known = [text[1] or text[2] for text in _STRING.finditer(code)]
        if any("://" in text and judge_host(text) is NetworkHost.ELSEWHERE for text in is_known):
            yield high("exfiltration", "sends the environment to another machine")
    removes = bool(_REMOVE_CALLS.search(code))
    for match in _STRING.finditer(code):
        text = match[1] or match[2]
        if paths.is_credential(text):
            yield high("credential", text)
        elif removes and paths.place(text) in {
            PathPlace.ROOT,
            PathPlace.HOME,
            PathPlace.SYSTEM_TOP,
        }:
            yield high("destructive", f"removes {text}")
        elif "://" in text and judge_host(text) is NetworkHost.METADATA:
            yield high("cloud_metadata", text)


_PYTHON = re.compile(r"(?:python|pypy|ipython)[\d.]{0,5}$")
_AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
_EDITORS = frozenset({"vi", "vim", "nvim", "ex", "view"})
# options with which tar runs a command
_TAR_RUNS = re.compile(
    r"--(?:checkpoint-action=exec|to-command|use-compress-program|rsh-command)=(.{1,2000})", re.S
)
_EDITOR_COMMAND = re.compile(r"\+?:?(?:silent )?!(.{1,2000})")
_CODE_OPTION = {
    "perl": "eE", "ruby": "e", "node": "ep", "nodejs": "ep", "php": "r", "deno": "e", "bun": "e",
    "lua": "e", "tclsh": "e",
}  # fmt: skip
"""Letters of the short options that take code, by interpreter other than Python."""


def execution_findings(call: ShellCall, walk: ShellWalk) -> Iterator[RiskFinding]:
    """Walk what the call runs, and yield findings about text that runs unseen."""
    name = call.name
    if reader := _reader_of(name, call.paths, walk):
        yield from _interpret(call, walk, reader)
    elif name in {"eval", "trap"}:
        text = " ".join(call.args) if name == "eval" else (*call.operands, "")[0]
        yield from _unseen_text(call, call.tags, OPAQUE in text)
        walk.run(text)
    elif name in {"source", "."}:
        yield from _run_file(call, walk, (*call.operands, "")[0])
    elif name == "alias":
        for word in call.args:
            walk.run_subshell(word.partition("=")[2])
    elif name == "su" and call.has("c", "--command"):
        walk.run_subshell(_option_value(call, "c") or "")
    elif name in {"xargs", "parallel"}:
        _xargs(call, walk)
    elif name == "find":
        _find(call, walk)
    elif name == "git":
        _git(call, walk)
    elif name == "tar":
        for word in call.args:
            match = _TAR_RUNS.match(word)
            walk.run_subshell(match[1] if match else "")
    elif name in _AWKS:
        for code in call.operands[:1]:
            yield from snippet_findings(code, call.paths, walk.run_subshell)
    elif name in _EDITORS:
        for word in call.args:
            match_command = _EDITOR_COMMAND.match(word)
            walk.run_subshell(match_command[1] if match_command else "")
    elif " " in call.argv[0]:
        walk.run_subshell(call.text)  # `watch` passes its words to a shell
    elif "/" in call.argv[0] or call.argv[0] in walk.fetched:
        yield from _run_file(call, walk, call.argv[0])


def _run_nested(
    call: ShellCall, walk: ShellWalk, argv: tuple[str, ...], stdin: Flow | None = None
) -> None:
    """Walk a command that the call runs in the same folder."""
    if argv and walk.depth < 40:
        walk.depth += 1
        try:
            walk.call(replace(call, argv=argv, stdin=stdin or call.stdin, redirects=()))
        finally:
            walk.depth -= 1


def _unseen_text(call: ShellCall, tags: frozenset[str], is_opaque: bool) -> Iterator[RiskFinding]:
    """Yield a finding if the text that is run was downloaded, or decoded and is not known."""
    if FETCHED in tags:
        yield high("download_and_run", call.text)
    elif DECODED in tags and is_opaque:
        yield high("runs_hidden_code", call.text)


CodeReader = Callable[[str], Iterable[RiskFinding]]
"""Returns findings about code that an interpreter runs."""


def _reader_of(name: str, paths: Paths, walk: ShellWalk) -> CodeReader | None:
    """Return the reader of the code that an interpreter runs; None for any other program."""
    if name in SHELLS:
        return lambda code: _walked(code, walk)
    if _PYTHON.match(name):
        return lambda code: python_findings(code, paths, walk.run_subshell)
    if name in _CODE_OPTION:
        return lambda code: snippet_findings(code, paths, walk.run_subshell)
    return None


def _walked(text: str, walk: ShellWalk) -> tuple[RiskFinding, ...]:
    """Walk shell text. The findings about it are added to those of the walk."""
    walk.run_subshell(text)
    return ()


def _interpret(call: ShellCall, walk: ShellWalk, read: CodeReader) -> Iterator[RiskFinding]:
    """Yield findings about what an interpreter runs: code of an option, a file, or its input."""
    letters = _CODE_OPTION.get(call.name, "c")
    codes = [_option_value(call, letter) for letter in letters]
    code = next((candidate for candidate in codes if candidate is not None), None)
    scripts = [operand for operand in call.operands if operand != "-"]
    is_shell = call.name in SHELLS
    if code is not None:
        yield from _unseen_text(call, call.tags, OPAQUE in code)
        yield from read(code)
    elif _PYTHON.match(call.name) and call.has("m"):
        return
    elif scripts and not (is_shell and call.has("s")):
        yield from _run_file(call, walk, scripts[0], None if is_shell else read)
    else:
        for path in call.reads_from:
            yield from _run_file(call, walk, path, None if is_shell else read)
        stdin = call.stdin
        yield from _unseen_text(call, stdin.tags | call.tags, stdin.text is None)
        if stdin.text:
            yield from read(stdin.text)


def _run_file(
    call: ShellCall, walk: ShellWalk, path: str, read: CodeReader | None = None
) -> Iterator[RiskFinding]:
    """Yield findings about running a script that the same text has downloaded or written before.

    read: reads the script. By default its first line says if it is Python.
    """
    if path == "/dev/fd/63":
        yield from _unseen_text(call, call.tags, is_opaque=True)
        return
    absolute_path = call.paths.absolute(path)
    if absolute_path in walk.fetched:
        yield high("download_and_run", call.text)
    text = walk.written.get(absolute_path)
    if text:
        is_python = text.startswith("#!") and "python" in text.partition("\n")[0]
        read = read or _reader_of("python" if is_python else "sh", call.paths, walk)
        walk.written[absolute_path] = ""  # while it is read, since it may run itself
        yield from read(text) if read else ()
        walk.written[absolute_path] = text


def _option_value(call: ShellCall, letter: str) -> str | None:
    """Return the word after a short option such as `-c`, or after a group that contains it (`-lc`).

    "" if the option has no value, None if it is not given.
    """
    for index, arg in enumerate(call.args):
        if arg == "--":
            return None
        if re.fullmatch(rf"-[A-Za-z]{{0,8}}{letter}[A-Za-z]{{0,8}}", arg) and not arg.startswith(
            "--"
        ):
            values = [
                word
                for word in call.args[index + 1 :]
                if not re.fullmatch(r"[-+][A-Za-z]{1,8}", word)
            ]
            return values[0] if values else ""
    return None


def _xargs(call: ShellCall, walk: ShellWalk) -> None:
    argv, index = list(call.args), 0
    placeholder = ""
    while index < len(argv) and argv[index].startswith("-"):
        option = argv[index]
        if option == "-I" or option == "--replace":
            placeholder = argv[index + 1] if index + 1 < len(argv) else "{}"
            index += 2
        elif option.startswith(("-I", "-i")):
            placeholder = option[2:] or "{}"
            index += 1
        elif option in {
            "-n",
            "-P",
            "-L",
            "-d",
            "-s",
            "-a",
            "-E",
            "-j",
            "--max-args",
            "--max-procs",
        }:
            index += 2
        else:
            index += 1
    words = tuple(argv[index:])
    if not words:
        return
    text = call.stdin.text
    arguments = split_words(text) if text else [OPAQUE]
    if placeholder:
        words = tuple(
            word.replace(placeholder, arguments[0] if arguments else "") for word in words
        )
    else:
        words = (*words, *arguments[:200])
    _run_nested(call, walk, words, Flow(None, call.stdin.tags))


def _find(call: ShellCall, walk: ShellWalk) -> None:
    args = call.args
    roots = find_roots(call)
    index = 0
    while index < len(args):
        index += 1
        if args[index - 1] not in {"-exec", "-execdir", "-ok", "-okdir"}:
            continue
        inner_argv: list[str] = []
        while index < len(args) and args[index] not in {";", "+"}:
            inner_argv.append(args[index])
            index += 1
        root = roots[0] if roots else "."
        if any(arg in {"-name", "-iname", "-path", "-regex", "-newer", "-mtime"} for arg in args):
            root = f"{root}/{OPAQUE}"
        if inner_argv[:1] == ["rm"] and root in {"/", "~"}:
            inner_argv.insert(1, "-r")  # removing everything file by file has the same effect
        _run_nested(call, walk, tuple(word.replace("{}", root) for word in inner_argv))


def _git(call: ShellCall, walk: ShellWalk) -> None:
    """Walk the command of `git bisect run`, and commands in settings given by `git -c`."""
    if call.args[:2] == ("bisect", "run"):
        _run_nested(call, walk, call.args[2:])
    for option, setting in pairwise(call.args):
        if option == "-c":
            walk.run_subshell(setting.partition("=")[2].lstrip("!"))


def find_roots(call: ShellCall) -> tuple[str, ...]:
    """Return the directories in which a `find` starts."""
    roots: list[str] = []
    for arg in call.args:
        if arg.startswith(("-", "(", "!")) and arg not in {"-H", "-L", "-P"}:
            break
        if not arg.startswith("-"):
            roots.append(arg)
    return tuple(roots) or (".",)
