"""Rules for commands that run text: shells, interpreters, `eval`, `xargs`, `find -exec`. Known text
is walked. Running downloaded or decoded text that is not known is a finding.

Short programs in awk, Perl, Ruby, JavaScript and PHP are searched with regular expressions, not
parsed, for shell commands they run and files and URLs they name.
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from posixpath import basename

from resolver.security.risk.expansion import OPAQUE, Flow
from resolver.security.risk.findings import DECODED, FETCHED, RiskFinding, high, medium
from resolver.security.risk.hosts import NetworkHost, judge_host
from resolver.security.risk.paths import PathPlace, Paths
from resolver.security.risk.python import python_findings
from resolver.security.risk.walk import SHELLS, ShellCall, ShellWalk, as_call, split_words

MOST = 100_000
"""Maximum characters that are searched."""

_RUNS = re.compile(
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
_REMOVES = re.compile(r"\b(?:rmSync|rmdirSync|rm_rf|rm_r|remove_entry|remove_tree|rmtree|unlink)\b")


def snippet_findings(
    code: str, paths: Paths, run: Callable[[str], object]
) -> Iterator[RiskFinding]:
    """Yield findings about the code. run: called with each shell text that the code runs."""
    code = code[:MOST]
    for found in _RUNS.finditer(code):
        run(found[1] or found[2])
    for found in _BACKTICKS.finditer(code):
        run(found[1])
    if _SOCKET.search(code):
        if _SHELL.search(code):
            yield high("reverse_shell", code)
        else:
            yield medium("raw_connection", code)
    if _FETCH.search(code) and _ENVIRONMENT.search(code):
        known = [text[1] or text[2] for text in _STRING.finditer(code)]
        if any("://" in text and judge_host(text) is NetworkHost.ELSEWHERE for text in known):
            yield high("exfiltration", "sends the environment to another machine")
    removes = bool(_REMOVES.search(code))
    for found in _STRING.finditer(code):
        text = found[1] or found[2]
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
_INTERPRETERS = frozenset({"perl", "ruby", "node", "nodejs", "php", "deno", "bun", "lua", "tclsh"})
_AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
_EDITORS = frozenset({"vi", "vim", "nvim", "ex", "view"})
# options with which tar runs a command
_TAR_RUNS = re.compile(
    r"--(?:checkpoint-action=exec|to-command|use-compress-program|rsh-command)=(.{1,2000})", re.S
)
_BANG = re.compile(r"\+?:?(?:silent )?!(.{1,2000})")
_CODE_OPTION = {"perl": "eE", "ruby": "e", "node": "ep", "nodejs": "ep", "php": "r", "lua": "e"}
"""Letters of the short options that take code, by interpreter."""


def execution_findings(call: ShellCall, walk: ShellWalk) -> Iterator[RiskFinding]:
    """Walk what the call runs, and yield findings about text that runs unseen."""
    name = call.name
    if name in SHELLS:
        yield from _shell(call, walk)
    elif name in {"eval", "trap"}:
        text = " ".join(call.args) if name == "eval" else (*call.operands, "")[0]
        yield from _unseen(call, call.tags, OPAQUE in text)
        walk.run(text)
    elif name in {"source", "."}:
        yield from _file(call, walk, (*call.operands, "")[0])
    elif name == "alias":
        for word in call.args:
            walk.substituted(word.partition("=")[2])
    elif name == "su" and call.has("c", "--command"):
        walk.substituted(_value(call, "c") or "")
    elif name in {"xargs", "parallel"}:
        _xargs(call, walk)
    elif name == "find":
        _find(call, walk)
    elif name == "git":
        _git(call, walk)
    elif name == "tar":
        for word in call.args:
            ran = _TAR_RUNS.match(word)
            walk.substituted(ran[1] if ran else "")
    elif _PYTHON.match(name):
        yield from _python(call, walk)
    elif name in _INTERPRETERS:
        yield from _snippet(call, walk)
    elif name in _AWKS:
        for code in call.operands[:1]:
            yield from snippet_findings(code, call.paths, walk.substituted)
    elif name in _EDITORS:
        for word in call.args:
            bang = _BANG.match(word)
            walk.substituted(bang[1] if bang else "")
    elif " " in call.argv[0]:
        walk.substituted(call.text)  # `watch` passes its words to a shell
    elif "/" in call.argv[0] or call.argv[0] in walk.fetched:
        yield from _file(call, walk, call.argv[0])


def _nested(
    call: ShellCall, walk: ShellWalk, argv: tuple[str, ...], stdin: Flow | None = None
) -> None:
    inner = as_call(call, argv, stdin)
    if inner is not None and walk.depth < 40:
        walk.depth += 1
        try:
            walk.call(inner)
        finally:
            walk.depth -= 1


def _unseen(call: ShellCall, tags: frozenset[str], opaque: bool) -> Iterator[RiskFinding]:
    """Yield a finding if the text that is run was downloaded, or decoded and is not known."""
    if FETCHED in tags:
        yield high("download_and_run", call.text)
    elif DECODED in tags and opaque:
        yield high("runs_hidden_code", call.text)


def _shell(call: ShellCall, walk: ShellWalk) -> Iterator[RiskFinding]:
    text = _value(call, "c")
    if text is not None:
        yield from _unseen(call, call.tags, OPAQUE in text)
        walk.substituted(text)
        return
    scripts = [o for o in call.operands if o not in {"-"}]
    if scripts and not call.has("s"):
        if scripts[0] == "/dev/fd/63":
            yield from _unseen(call, call.tags, opaque=True)
        else:
            yield from _file(call, walk, scripts[0])
        return
    stdin = call.stdin
    for path in call.reads_from:
        yield from _file(call, walk, path)
    yield from _unseen(call, stdin.tags | call.tags, stdin.text is None)
    if stdin.text:
        walk.substituted(stdin.text)


def _file(call: ShellCall, walk: ShellWalk, path: str) -> Iterator[RiskFinding]:
    """Yield findings about running a script that the same text has downloaded or written before."""
    if path == "/dev/fd/63":
        yield from _unseen(call, call.tags, opaque=True)
        return
    found = call.paths.absolute(path)
    if found in walk.fetched:
        yield high("download_and_run", call.text)
    text = walk.written.get(found)
    if text and not _is_running(walk, found):
        if text.startswith("#!") and "python" in text.partition("\n")[0]:
            yield from python_findings(text, call.paths, _runner(walk))
        else:
            walk.written[found] = ""  # while it is walked, since it may run itself
            walk.substituted(text)
            walk.written[found] = text


def _is_running(walk: ShellWalk, path: str) -> bool:
    return walk.written.get(path) == ""


def _runner(walk: ShellWalk) -> Callable[[str, Paths], None]:
    def run(text: str, _: Paths) -> None:
        walk.substituted(text)

    return run


def _value(call: ShellCall, letter: str) -> str | None:
    """Return the word after a short option such as `-c`, or after a group that contains it (`-lc`).

    "" if the option has no value, None if it is not given.
    """
    for index, arg in enumerate(call.args):
        if arg == "--":
            return None
        if re.fullmatch(rf"-[A-Za-z]{{0,8}}{letter}[A-Za-z]{{0,8}}", arg) and not arg.startswith(
            "--"
        ):
            rest = [a for a in call.args[index + 1 :] if not re.fullmatch(r"[-+][A-Za-z]{1,8}", a)]
            return rest[0] if rest else ""
    return None


def _xargs(call: ShellCall, walk: ShellWalk) -> None:
    argv, at = list(call.args), 0
    placeholder = ""
    while at < len(argv) and argv[at].startswith("-"):
        option = argv[at]
        if option == "-I" or option == "--replace":
            placeholder = argv[at + 1] if at + 1 < len(argv) else "{}"
            at += 2
        elif option.startswith(("-I", "-i")):
            placeholder = option[2:] or "{}"
            at += 1
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
            at += 2
        else:
            at += 1
    words = tuple(argv[at:])
    if not words:
        return
    text = call.stdin.text
    given = split_words(text) if text else [OPAQUE]
    if placeholder:
        words = tuple(w.replace(placeholder, given[0] if given else "") for w in words)
    else:
        words = (*words, *given[:200])
    _nested(call, walk, words, Flow(None, call.stdin.tags))


def _find(call: ShellCall, walk: ShellWalk) -> None:
    args = call.args
    roots = find_roots(call)
    at = 0
    while at < len(args):
        at += 1
        if args[at - 1] not in {"-exec", "-execdir", "-ok", "-okdir"}:
            continue
        inner: list[str] = []
        while at < len(args) and args[at] not in {";", "+"}:
            inner.append(args[at])
            at += 1
        root = roots[0] if roots else "."
        if any(a in {"-name", "-iname", "-path", "-regex", "-newer", "-mtime"} for a in args):
            root = f"{root}/{OPAQUE}"
        if inner[:1] == ["rm"] and root in {"/", "~"}:
            inner.insert(1, "-r")  # removing everything file by file has the same effect
        _nested(call, walk, tuple(w.replace("{}", root) for w in inner))


def _git(call: ShellCall, walk: ShellWalk) -> None:
    """Walk the command of `git bisect run`, and commands in settings given by `git -c`."""
    if call.args[:2] == ("bisect", "run"):
        _nested(call, walk, call.args[2:])
    for option, setting in pairwise(call.args):
        if option == "-c":
            walk.substituted(setting.partition("=")[2].lstrip("!"))


def find_roots(call: ShellCall) -> tuple[str, ...]:
    """Return the directories in which a `find` starts."""
    roots: list[str] = []
    for arg in call.args:
        if arg.startswith(("-", "(", "!")) and arg not in {"-H", "-L", "-P"}:
            break
        if not arg.startswith("-"):
            roots.append(arg)
    return tuple(roots) or (".",)


def _python(call: ShellCall, walk: ShellWalk) -> Iterator[RiskFinding]:
    code = _value(call, "c")
    if code is not None:
        yield from _unseen(call, call.tags, OPAQUE in code)
        yield from python_findings(code, call.paths, _runner(walk))
        return
    if call.has("m"):
        return
    scripts = [o for o in call.operands if o != "-"]
    if scripts[:1] == ["/dev/fd/63"]:
        yield from _unseen(call, call.tags, opaque=True)
        return
    if scripts:
        path = call.paths.absolute(scripts[0])
        if path in walk.fetched:
            yield high("download_and_run", call.text)
        text = walk.written.get(path)
        if text:
            yield from python_findings(text, call.paths, _runner(walk))
        return
    yield from _unseen(call, call.stdin.tags | call.tags, call.stdin.text is None)
    if call.stdin.text:
        yield from python_findings(call.stdin.text, call.paths, _runner(walk))


def _snippet(call: ShellCall, walk: ShellWalk) -> Iterator[RiskFinding]:
    letters = _CODE_OPTION.get(basename(call.argv[0]), "e")
    codes = [_value(call, letter) for letter in letters]
    code = next((c for c in codes if c is not None), None)
    if code is None and not [o for o in call.operands if o != "-"]:
        yield from _unseen(call, call.stdin.tags | call.tags, call.stdin.text is None)
        code = call.stdin.text
    elif code is None:
        if call.paths.absolute(call.operands[0]) in walk.fetched:
            yield high("download_and_run", call.text)
        return
    if code:
        yield from snippet_findings(code, call.paths, walk.substituted)
    if code and OPAQUE in code and FETCHED in call.tags:
        yield medium("download_and_run", call.text)
