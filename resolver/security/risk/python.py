"""Rates Python code, in a cell or after `python -c`: parsed into a tree, never executed. Shell text
in it is walked as shell.
"""

import ast
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from shlex import join

from resolver.config.syntax_trees import parse_alone
from resolver.security.risk.findings import SECRET_FILE, RiskFinding, high, is_secret_name, medium
from resolver.security.risk.flows import decoded_base64
from resolver.security.risk.hosts import NetworkHost, judge_host
from resolver.security.risk.paths import PathPlace, Paths

MAX_CODE_CHARACTERS = 200_000
"""Maximum characters of code that are parsed; of longer code, only strings and shell lines are
looked at."""

RunShell = Callable[[str], object]
"""Walks shell text that the code runs."""

_CELL = re.compile(r"%%(?:bash|sh|script[^\n]{0,40}|system|!)[^\n]{0,200}\n")
_SHELL_LINE = re.compile(
    r"^[ \t]{0,40}(?:[A-Za-z_][\w, ]{0,80}=[ \t]{0,4})?"
    r"(?:!{1,2}|%(?:sx|system|cd)[ \t]|%(?=cd[ \t]))(.{0,20000})$",
    re.M,
)
_MAGIC = re.compile(r"^[ \t]{0,40}[%?][^\n]{0,500}$", re.M)
_STRING = re.compile(r"'([^'\n]{1,500})'|\"([^\"\n]{1,500})\"")

_SHELLS = frozenset({"os.system", "os.popen", "pty.spawn", "asyncio.create_subprocess_shell"})
_RUNNERS = frozenset(
    f"subprocess.{name}"
    for name in (
        "run",
        "call",
        "Popen",
        "check_call",
        "check_output",
        "getoutput",
        "getstatusoutput",
    )
) | {f"os.{name}" for name in ("execv", "execvp", "execl", "execlp", "spawnv", "posix_spawn")}
_REMOVERS = frozenset({"shutil.rmtree", "os.removedirs"})
_UNLINKERS = frozenset({"os.remove", "os.unlink", "os.rmdir", "os.truncate"})
_SEND_CALLS = re.compile(
    r"(?:requests|httpx|session|client|aiohttp\w*)\.(?:post|put|patch|request)$"
)
_FETCH_CALLS = re.compile(
    r"(?:requests|httpx|session|client)\.(?:get|head|options|delete|stream)$"
    r"|urllib\.request\.(?:urlopen|urlretrieve|Request)$|http\.client\.HTTPS?Connection$"
)
_READ_METHODS = frozenset({"read", "read_text", "read_bytes", "readlines", "readline"})


def python_findings(code: str, paths: Paths, run: RunShell) -> Iterator[RiskFinding]:
    """Yield the findings about Python code.

    Never raises: code that can't be parsed is searched for strings that name credentials.

    run: called with each shell text that the code runs.
    """
    cell = _CELL.match(code)
    if cell:
        run(code[cell.end() :])
        return
    for line in _SHELL_LINE.finditer(code[:MAX_CODE_CHARACTERS]):
        run(line[1])
    python_code = _MAGIC.sub("", _SHELL_LINE.sub("", code[:MAX_CODE_CHARACTERS]))
    tree = parse_python(python_code) if len(code) <= MAX_CODE_CHARACTERS else None
    if tree is None:
        yield from _strings(code[:MAX_CODE_CHARACTERS], paths)
        return
    visitor = _CodeVisitor(paths, run)
    for node in ast.walk(tree):
        visitor.take_names(node)
    for node in ast.walk(tree):
        visitor.take(node)
    yield from visitor.verdict()


def parse_python(code: str) -> ast.Module | None:
    """Return the syntax tree of Python code; None if it can't be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return parse_alone(lambda: ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _strings(code: str, paths: Paths) -> Iterator[RiskFinding]:
    for match in _STRING.finditer(code):
        text = match[1] or match[2]
        if paths.is_credential(text):
            yield medium("credential", text)


@dataclass
class _CodeVisitor:
    """Visits the nodes of a tree, records what single calls do, and rates the combination.

    names: full names of imported objects, by local name.
    values: expressions assigned to variables, by name.
    sends: URLs that data is sent to, and whether the request has a body.
    connects: a socket is connected to another machine.
    duplicates: file descriptors are duplicated, as a reverse shell does.
    """

    paths: Paths
    run: RunShell
    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, ast.expr] = field(default_factory=dict)
    findings: list[RiskFinding] = field(default_factory=list)
    sends: list[tuple[str, bool]] = field(default_factory=list)
    reads_file: bool = False
    reads_secret: bool = False
    dumps_environment: bool = False
    connects: bool = False
    duplicates: bool = False

    def take_names(self, node: ast.AST) -> None:
        """Record imports and assignments."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                full_name = alias.name if alias.asname else alias.name.partition(".")[0]
                self.names[alias.asname or full_name] = full_name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                self.names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                self.values[target.id] = node.value

    def take(self, node: ast.AST) -> None:
        """Record what one node of the tree does."""
        if isinstance(node, ast.Call):
            self._check_call(node, self._dotted_name(node.func))
        elif isinstance(node, ast.Attribute) and self._dotted_name(node) == "os.environ":
            self.dumps_environment = True
        elif isinstance(node, ast.Subscript) and self._dotted_name(node.value) == "os.environ":
            name = self._text(node.slice)
            self.reads_secret = self.reads_secret or bool(name and is_secret_name(name))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            self._check_metadata(node.value)

    def _check_metadata(self, text: str) -> None:
        if "://" in text and judge_host(text) is NetworkHost.METADATA:
            self.findings.append(high("cloud_metadata", text))

    def _dotted_name(self, node: ast.expr) -> str:
        parts: list[str] = []
        while isinstance(node, ast.Attribute) and len(parts) < 12:
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name):
            parts.append(self.names.get(node.id, node.id))
        elif isinstance(node, ast.Call):
            inner = self._import_name(node) or self._dotted_name(node.func)
            parts.append(inner)
        return ".".join(reversed(parts))

    def _import_name(self, node: ast.Call) -> str:
        is_import = isinstance(node.func, ast.Name) and node.func.id == "__import__"
        return (self._text(node.args[0]) or "") if is_import and node.args else ""

    def _text(self, node: ast.expr | None, depth: int = 0) -> str | None:
        """Return the string that an expression evaluates to; None if it is not known. Unknown parts
        of an f-string become `$(…)`."""
        if node is None or depth > 20:
            return None
        match node:
            case ast.Constant(value=str() as text):
                return text
            case ast.Constant(value=bytes() as data):
                return data.decode("utf-8", "replace")
            case ast.JoinedStr(values=values):
                parts = [self._text(part, depth + 1) for part in values]
                return "".join(
                    text_part if text_part is not None else "$(…)" for text_part in parts
                )
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first, second = self._text(left, depth + 1), self._text(right, depth + 1)
                return first + second if first is not None and second is not None else first
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                first, second = self._text(left, depth + 1), self._text(right, depth + 1)
                return f"{first}/{second}" if first is not None and second is not None else None
            case ast.Name(id=name):
                return self._text(self.values.get(name), depth + 1)
            case ast.Call(args=args):
                return self._called_text(node, [self._text(arg, depth + 1) for arg in args[:8]])
            case _:
                return None

    def _called_text(self, node: ast.Call, args: list[str | None]) -> str | None:
        name = self._dotted_name(node.func)
        if name.endswith(("expanduser", "Path", "PurePath", "str", "expandvars", "abspath")):
            return args[0] if args else None
        if name.endswith("path.join") and all(a is not None for a in args):
            return "/".join(str(a) for a in args)
        if name.endswith("Path.home"):
            return "~"
        if name.endswith("b64decode") and args and args[0] is not None:
            return decoded_base64(args[0])
        return None

    def _check_call(self, node: ast.Call, name: str) -> None:
        args = node.args
        first_text = self._text(args[0]) if args else None
        method = name.rpartition(".")[2]
        if name in {"exec", "eval", "compile"} or name.endswith("builtins.exec"):
            self._check_execution(args, first_text)
        elif name in _SHELLS or name in _RUNNERS:
            self._check_shell(args, first_text)
        elif name in _REMOVERS:
            self._check_removal(first_text, is_recursive=True)
        elif name in _UNLINKERS:
            self._check_removal(first_text, is_recursive=False)
        elif name in {"open", "io.open", "codecs.open"} or method == "open":
            self._check_open(node, first_text)
        elif method in _READ_METHODS | {"write_text", "write_bytes", "unlink"}:
            self._check_path_method(node, method)
        elif name in {"os.dup2"}:
            self.duplicates = True
        elif (method == "connect" and args) or (name == "socket.create_connection" and args):
            self._check_connection(args[0])
        elif name in {"os.getenv", "os.environ.get"}:
            self.reads_secret = self.reads_secret or bool(first_text and is_secret_name(first_text))
        else:
            self._check_request(node, name, first_text)

    def _check_execution(self, args: list[ast.expr], first_text: str | None) -> None:
        called_names = {
            self._dotted_name(call.func)
            for arg in args
            for call in ast.walk(arg)
            if isinstance(call, ast.Call)
        }
        if any(_FETCH_CALLS.search(name) or "urlopen" in name for name in called_names):
            self.findings.append(high("download_and_run", "code from another machine is run"))
        elif any(name.endswith(("b64decode", "fromhex", "decompress")) for name in called_names):
            self.findings.append(high("runs_hidden_code", "encoded code is run"))
        if first_text is not None:
            self.findings.extend(python_findings(first_text[:20_000], self.paths, self.run))

    def _check_shell(self, args: list[ast.expr], first_text: str | None) -> None:
        if first_text is not None:
            self.run(first_text)
        elif args and isinstance(args[0], ast.List | ast.Tuple):
            words = [self._text(element) for element in args[0].elts[:200]]
            self.run(join(word if word is not None else "$(…)" for word in words))

    def _check_removal(self, path: str | None, *, is_recursive: bool) -> None:
        if path is None:
            return
        place = self.paths.place(path)
        if is_recursive and place in PROTECTED_PLACES:
            self.findings.append(high("destructive", f"removes {path}, {place.value}"))
        elif place in {PathPlace.SYSTEM, PathPlace.IN_HOME, PathPlace.OTHER}:
            self.findings.append(medium("outside", f"removes {path}"))

    def _check_open(self, node: ast.Call, path: str | None) -> None:
        modes = [self._text(arg) for arg in node.args[1:2]]
        modes += [self._text(keyword.value) for keyword in node.keywords if keyword.arg == "mode"]
        writes = any(mode and set(mode) & set("wax+") for mode in modes)
        if path is not None:
            self._check_file(path, writes=writes)

    def _check_path_method(self, node: ast.Call, method: str) -> None:
        if isinstance(node.func, ast.Attribute):
            path = self._text(node.func.value)
            if path is not None and "\n" not in path:
                self._check_file(path, writes=method in {"write_text", "write_bytes", "unlink"})

    def _check_file(self, path: str, *, writes: bool) -> None:
        paths = self.paths
        if not writes:
            self.reads_file = True
            if paths.is_credential(path):
                self.findings.append(high("credential", path))
            elif SECRET_FILE.search(path.rpartition("/")[2]):
                self.reads_secret = True
        elif paths.is_run_later(path):
            self.findings.append(high("persistence", path))
        elif paths.is_kernel(path):
            self.findings.append(high("container_escape", path))
        elif paths.place(path) in {
            PathPlace.SYSTEM,
            PathPlace.IN_HOME,
            PathPlace.OTHER,
            PathPlace.GIT,
        }:
            self.findings.append(medium("outside", f"writes {path}"))

    def _check_connection(self, address: ast.expr) -> None:
        if not isinstance(address, ast.Tuple) or not address.elts:
            return  # the file of a database, or an address that is not a literal
        text = self._text(address.elts[0])
        if text is None or judge_host(text) in {NetworkHost.ELSEWHERE, NetworkHost.METADATA}:
            self.connects = True

    def _check_request(self, node: ast.Call, name: str, first_text: str | None) -> None:
        url = first_text
        if name.endswith(".request") and len(node.args) > 1:
            url = self._text(node.args[1])
        has_body = any(
            keyword.arg in {"data", "json", "files", "content", "body"} for keyword in node.keywords
        )
        if _SEND_CALLS.search(name) or (
            _FETCH_CALLS.search(name) and (has_body or len(node.args) > 1)
        ):
            if url is not None and judge_host(url) is NetworkHost.ELSEWHERE:
                self.sends.append((url, True))
        elif (
            _FETCH_CALLS.search(name)
            and url is not None
            and judge_host(url) is NetworkHost.ELSEWHERE
            and "$(…)" in url
        ):
            self.sends.append((url, False))

    def verdict(self) -> Iterator[RiskFinding]:
        """Yield the findings about single calls, then those about their combination."""
        yield from self.findings
        has_sensitive_data = self.reads_file or self.reads_secret or self.dumps_environment
        for url, has_body in self.sends:
            if has_sensitive_data:
                yield high("exfiltration", f"sends data to {url}")
            elif has_body:
                yield medium("sends", f"sends to {url}")
        if self.connects and self.duplicates:
            yield high("reverse_shell", "a connection in the place of standard input and output")
        elif self.connects:
            yield (high if has_sensitive_data else medium)(
                "raw_connection", "connects to another machine"
            )
        if self.reads_secret and not self.sends:
            yield medium("credential", "reads a secret of the environment")


PROTECTED_PLACES = frozenset(
    {
        PathPlace.ROOT,
        PathPlace.ABOVE,
        PathPlace.REPOSITORY,
        PathPlace.GIT,
        PathPlace.HOME,
        PathPlace.SYSTEM_TOP,
    }
    | {PathPlace.SYSTEM, PathPlace.DEVICE}
)
"""Places that ordinary work does not remove as a whole."""
