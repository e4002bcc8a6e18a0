"""Runs git on the host with fixed settings, a clean environment, a time limit and no shell.

Every git process that a run starts on the host is started here. The module knows nothing of clones
or changes: the callers check refs and paths that come from outside, and pass them after `--`.
"""

import base64
import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, BinaryIO, TypedDict, Unpack, cast

from resolver.errors import WorkspaceError
from resolver.models.known_failures import git_failure_reason

TIMEOUT_SECONDS = 900.0
"""Time limit of one git command in seconds, long enough to clone or push a large repository."""

MAX_MEMORY_BYTES = 2_000_000_000
"""Maximum number of bytes of memory that one git process on the host may allocate.

A tree of ten levels with ten entries each takes a few kilobytes on disk, and has 10,000,000,000
files for a command that lists them. Mapped pack files don't count. Linux only: RLIMIT_DATA of
https://man7.org/linux/man-pages/man2/prlimit.2.html
"""

MAX_OUTPUT_BYTES = 250_000_000
"""Maximum number of bytes that one git command may print, where the caller sets no other limit.

Like the memory of git, the memory of this process is not to grow with the files of such a tree. A
list of two million files takes that much.
"""

_GLOBAL_CONFIG = Path(__file__).parent / "gitconfig"

# Variables of the host's environment that git inherits. All others (tokens, keys, GIT_*) are unset.
_INHERITED_VARIABLES = frozenset(
    {
        "PATH", "TMPDIR", "LD_LIBRARY_PATH",
        "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy",
        "NO_PROXY", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
        "CURL_CA_BUNDLE", "GIT_PROXY_SSL_CAINFO",
    }
)  # fmt: skip

_ENVIRONMENT = {
    # Messages are compared with patterns, so they are never translated.
    "LANGUAGE": "C",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": str(_GLOBAL_CONFIG),
    "GIT_ATTR_NOSYSTEM": "1",
    # Overrides every `protocol.*` setting. The ssh and ext transports start programs.
    # https://git-scm.com/docs/git (GIT_ALLOW_PROTOCOL)
    "GIT_ALLOW_PROTOCOL": "https:http:file",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_PAGER": "cat",
    # Neither ~/.netrc nor ~/.config/git is read.
    "HOME": "/nonexistent",
    "GIT_AUTHOR_NAME": "Resolver",
    "GIT_AUTHOR_EMAIL": "resolver@localhost",
    "GIT_COMMITTER_NAME": "Resolver",
    "GIT_COMMITTER_EMAIL": "resolver@localhost",
}

# Passed in GIT_CONFIG_COUNT, GIT_CONFIG_KEY_<n> and GIT_CONFIG_VALUE_<n>. These have the precedence
# of `git -c`, so the configuration of a repository can't override them.
# https://git-scm.com/docs/git-config#ENVIRONMENT
_SETTINGS = (
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.attributesFile", "/dev/null"),
    ("core.excludesFile", "/dev/null"),
    ("core.askPass", ""),
    ("core.sshCommand", "false"),
    ("credential.helper", ""),
    ("gpg.program", "false"),
    ("push.gpgSign", "false"),
    # A header that is set for one server must not be sent to the server it redirects to.
    ("http.followRedirects", "false"),
    ("http.lowSpeedLimit", "1000"),
    ("http.lowSpeedTime", "60"),
    ("fetch.fsckObjects", "true"),
    ("transfer.fsckObjects", "true"),
    ("submodule.recurse", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
)

_NOT_INSTALLED = 127
"""Exit code of a shell for a program that doesn't exist."""

_CRASHED = re.compile(r"died of signal (?:6|7|11)\b")
_CRASH_SIGNALS = frozenset({-signal.SIGABRT, -signal.SIGBUS, -signal.SIGSEGV})
"""Exit statuses of a crashed git. Its functions call themselves for each folder of a path, so its
stack overflows at some ten thousand folders within one another."""


@dataclass(frozen=True)
class Credential:
    """A token for one server, passed to git in the environment of a single process.

    The token is never written to a file, a URL or an argument list.

    server_url: scheme and host that the token is for, as in `https://github.com`.
    require_lease: called before each use; raises LeaseLost if this process may not write any more.
    """

    server_url: str
    token: str = field(repr=False)
    require_lease: Callable[[], None] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\x21-\x7e]+", self.token):
            raise WorkspaceError(
                "the GitHub token is empty or contains blanks or line breaks", "set the token again"
            )

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """Return the git setting that sends the token to this server and to no other."""
        if self.require_lease is not None:
            self.require_lease()
        name = f"http.{self.server_url.rstrip('/')}/.extraHeader"
        return ((name, f"Authorization: Basic {self._basic}"),)

    @property
    def _basic(self) -> str:
        return base64.b64encode(f"x-access-token:{self.token}".encode()).decode()

    def redact(self, text: str) -> str:
        """Return `text` without the token, neither as it is nor in Base64 form.

        Git or a server may have printed either form.
        """
        return text.replace(self.token, "***").replace(self._basic, "***")


@dataclass(frozen=True)
class GitResult:
    """The result of a git command. `truncated`: it was killed because stdout exceeded the limit."""

    status: int
    stdout: bytes
    stderr: str
    truncated: bool = False


class GitOptions(TypedDict, total=False):
    """What a git command gets besides its arguments. settings: as with `git -c`."""

    stdin: bytes | BinaryIO | None
    settings: Sequence[tuple[str, str]]
    environment: Mapping[str, str]
    credential: Credential | None


class HostGit:
    """Runs git in a directory: a bare repository (`git_dir`) or a user's checkout (`checkout`).

    max_memory_bytes: the limit of one git process.
    max_output_bytes: the limit of what it prints, if a call has no limit of its own.
    """

    def __init__(
        self,
        *,
        git_dir: Path | None = None,
        checkout: Path | None = None,
        max_memory_bytes: int = MAX_MEMORY_BYTES,
        max_output_bytes: int = MAX_OUTPUT_BYTES,
    ) -> None:
        self.git_dir = git_dir
        self._max_memory_bytes = max_memory_bytes
        self._max_output_bytes = max_output_bytes
        self._environment = dict(_ENVIRONMENT)
        self._prefix = ["git"]
        if git_dir is not None:
            self._environment["GIT_DIR"] = str(git_dir)
        if checkout is not None:
            self._prefix += ["-C", str(checkout)]
            # Without this, git would search the parent directories, and a subdirectory of some
            # repository would pass for a checkout.
            self._environment["GIT_CEILING_DIRECTORIES"] = str(checkout.parent)

    def run(self, *args: str, **options: Unpack[GitOptions]) -> bytes:
        """Run `git args` and return its stdout.

        Raises WorkspaceError with the last lines of git's stderr if the exit code is not 0.
        """
        result = self.attempt(*args, **options)
        if result.status != 0:
            raise git_failure(args, result)
        return result.stdout

    def text(self, *args: str, stdin: bytes | None = None) -> str:
        """Run `git args` and return its stdout as text, without surrounding whitespace."""
        return self.run(*args, stdin=stdin).decode("utf-8", "surrogateescape").strip()

    def attempt(
        self,
        *args: str,
        limit: int | None = None,
        timeout: float = TIMEOUT_SECONDS,
        **options: Unpack[GitOptions],
    ) -> GitResult:
        """Run `git args` and return its result, whatever its exit code.

        limit: maximum number of bytes of stdout; git is killed once it writes more. Without it,
        WorkspaceError is raised if git writes more than `max_output_bytes`. timeout: seconds after
        which git is killed and WorkspaceError is raised.
        """
        credential = options.get("credential")
        settings = (*options.get("settings", ()), *(credential.settings if credential else ()))
        variables = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
        variables.update(self._variables([*_SETTINGS, *settings]))
        variables.update(options.get("environment", {}))
        with _open_stdin(options.get("stdin")) as stdin_file:
            try:
                process = subprocess.Popen(
                    [*self._prefix, *args],
                    stdin=stdin_file,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=variables,
                    start_new_session=True,
                )
            except FileNotFoundError:
                return GitResult(_NOT_INSTALLED, b"", "")
        _limit_memory(process.pid, self._max_memory_bytes)
        max_output_bytes = self._max_output_bytes if limit is None else limit
        result = _collect(process, args, max_output_bytes, timeout)
        if result.truncated and limit is None:
            raise WorkspaceError(
                f"git {args[0]} printed more than {max_output_bytes:,} bytes",
                "one git command may print so much; look for folders that contain one another many "
                "times over",
            )
        return replace(result, stderr=credential.redact(result.stderr)) if credential else result

    def _variables(self, settings: Sequence[tuple[str, str]]) -> dict[str, str]:
        variables = {**self._environment, "GIT_CONFIG_COUNT": str(len(settings))}
        for number, (name, value) in enumerate(settings):
            variables[f"GIT_CONFIG_KEY_{number}"] = name
            variables[f"GIT_CONFIG_VALUE_{number}"] = value
        return variables


def create_bare_repository(folder: Path) -> HostGit:
    """Create a bare repository in `folder`, and return git in it.

    Its files are written here instead of by `git init`, which would be a process of its own.
    Layout: https://git-scm.com/docs/gitrepository-layout
    """
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "config").write_text(repository_config(bare=True), "ascii")
    (folder / "HEAD").write_text("ref: refs/heads/main\n", "ascii")
    # The attributes of a commit change nothing in an archive of it.
    (folder / "info").mkdir(exist_ok=True)
    (folder / "info/attributes").write_text("* -export-ignore -export-subst\n", "ascii")
    return HostGit(git_dir=folder)


def repository_config(*, bare: bool) -> str:
    """Return the text of the `config` file of a new repository.

    bare: whether it has no working tree.
    """
    lines = [
        "[core]",
        "\trepositoryformatversion = 0",
        "\tfilemode = true",
        f"\tbare = {str(bare).lower()}",
        *(() if bare else ("\tlogallrefupdates = true",)),
    ]
    return "".join(f"{line}\n" for line in lines)


def fetch_arguments(url: str, refspecs: Sequence[str], *options: str) -> tuple[str, ...]:
    """Return the arguments of a fetch that writes the given refspecs and nothing else.

    Tags, FETCH_HEAD and submodules are left alone, and no maintenance is started.
    """
    return (
        "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
        "--no-recurse-submodules", *options, "--", url, *refspecs,
    )  # fmt: skip


def git_failure(
    args: Sequence[str], result: GitResult, operation: str | None = None
) -> WorkspaceError:
    """Return the error for a failed git command: the last lines of its stderr, without credentials.

    operation: what the command was for, named in the message instead of the command.
    """
    if result.status == _NOT_INSTALLED:
        return WorkspaceError("git is not installed", "install git 2.39 or newer")
    lines = [
        line.strip() for line in result.stderr.splitlines() if line.strip() and "hint:" not in line
    ]
    message = re.sub(r"://[^/\s@]*@", "://***@", " / ".join(lines[-5:]))[-1000:]
    what = f"{operation or f'git {args[0]}'} failed: {message or f'exit code {result.status}'}"
    if result.status in _CRASH_SIGNALS or _CRASHED.search(result.stderr):
        return WorkspaceError(
            f"git crashed: {what}",
            "look for folders that are nested thousands of levels deep: git can't read them",
        )
    known_failure = git_failure_reason(result.stderr)
    if known_failure is None:
        return WorkspaceError(what)
    return WorkspaceError(what, known_failure.next_step, known_failure.cause)


def _open_stdin(stdin: bytes | BinaryIO | None) -> BinaryIO:
    """Return a file to use as stdin: empty for None, a temporary file for bytes.

    A file is duplicated, so that closing the returned one leaves the caller's open.
    """
    if stdin is None:
        return open(os.devnull, "rb")
    if not isinstance(stdin, bytes):
        return os.fdopen(os.dup(stdin.fileno()), "rb", buffering=0)
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(stdin)
    file.seek(0)
    return cast(BinaryIO, file)


def _limit_memory(pid: int, max_bytes: int) -> None:
    # Set from outside, because code between fork and exec is not safe with threads. What the
    # process allocated before counts as well, and helpers that it starts inherit the limit.
    if sys.platform == "linux":
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended already
            resource.prlimit(pid, resource.RLIMIT_DATA, (max_bytes, max_bytes))


def _collect(
    process: "subprocess.Popen[bytes]", args: Sequence[str], limit: int, timeout: float
) -> GitResult:
    """Read the output of the process until it ends or has to be killed.

    Raises WorkspaceError if it was killed because of the timeout.
    """
    assert process.stdout is not None and process.stderr is not None
    stdout, stderr = process.stdout, process.stderr
    timed_out = threading.Event()
    error_output = bytearray()

    def on_timeout() -> None:
        timed_out.set()
        _kill(process)

    caller = threading.get_ident()
    _RUNNING[caller] = process
    timer = threading.Timer(timeout, on_timeout)
    # Stderr is read in a thread: git would block if one pipe filled up while the other is read.
    reader = threading.Thread(target=_keep_tail, args=(stderr, error_output), daemon=True)
    timer.start()
    reader.start()
    try:
        output = stdout.read(limit + 1)
        truncated = len(output) > limit
        if truncated:
            _kill(process)
        status = process.wait()
        reader.join()
    finally:
        del _RUNNING[caller]
        timer.cancel()
        _kill(process)
        stdout.close()
        stderr.close()
    if timed_out.is_set():
        raise WorkspaceError(
            f"git {args[0]} did not end within {timeout:.0f} seconds", "run it again"
        )
    return GitResult(status, output, error_output.decode("utf-8", "replace"), truncated)


_RUNNING: dict[int, "subprocess.Popen[bytes]"] = {}
"""The git process that each thread waits for. A run that is stopped has no other way to it: the
functions between them know nothing of processes."""


def kill_git_of(thread: int | None) -> None:
    """Kill the git process that the thread with this id waits for, if there is one."""
    process = _RUNNING.get(thread or 0)
    if process is not None:
        _kill(process)


def _keep_tail(stream: IO[bytes], tail: bytearray, max_bytes: int = 64_000) -> None:
    """Read a stream to its end into `tail`, which holds at most its last `max_bytes` bytes."""
    while chunk := stream.read(8192):
        tail += chunk
        del tail[:-max_bytes]


def _kill(process: "subprocess.Popen[bytes]") -> None:
    # Git was started in a session of its own, so its helpers (git-remote-https, index-pack) are
    # in its process group and are killed with it.
    if process.returncode is not None:
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
