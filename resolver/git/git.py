"""The one way git is run on the host: fixed settings, a clean environment, bounded, argv only.

Nothing here knows what a clone or a change is. Refs and paths that come from outside are
checked by the callers and stand behind `--`.
"""

import base64
import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO, cast

from git.cmd import Git

from resolver.errors import WorkspaceError
from resolver.models.known_failures import of_network, push_failure

TIMEOUT = 900.0
"""Seconds one git command may take; a clone or a push of a large repository is the longest."""

_GLOBAL_CONFIG = Path(__file__).parent / "gitconfig"

# What git children get of the host's environment. Everything else (tokens, keys, GIT_*) stays out.
_KEPT = frozenset(
    {
        "PATH", "TMPDIR", "LD_LIBRARY_PATH",
        "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy",
        "NO_PROXY", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
        "CURL_CA_BUNDLE", "GIT_PROXY_SSL_CAINFO",
    }
)  # fmt: skip

_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": str(_GLOBAL_CONFIG),
    "GIT_ATTR_NOSYSTEM": "1",
    # Stronger than any `protocol.*` setting: no ssh, no ext, which start programs.
    "GIT_ALLOW_PROTOCOL": "https:http:file",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_PAGER": "cat",
    # No ~/.netrc, no ~/.config/git.
    "HOME": "/nonexistent",
    "GIT_AUTHOR_NAME": "Resolver",
    "GIT_AUTHOR_EMAIL": "resolver@localhost",
    "GIT_COMMITTER_NAME": "Resolver",
    "GIT_COMMITTER_EMAIL": "resolver@localhost",
}

# Given on each command's own level, so that no repository's configuration is stronger.
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
    # A header set for one server must not follow a redirect to another.
    ("http.followRedirects", "false"),
    ("http.lowSpeedLimit", "1000"),
    ("http.lowSpeedTime", "60"),
    ("fetch.fsckObjects", "true"),
    ("transfer.fsckObjects", "true"),
    ("submodule.recurse", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
)

_ADVICE = (
    (r"returned error: 404|[Rr]epository .*not found", "check the name and the token"),
    (r"unable to access",
     "check the network and the proxy settings, then run it again"),
    (r"No space left", "free some disk space and run it again"),
)  # fmt: skip


@dataclass(frozen=True)
class Credential:
    """A token for one server. It reaches git in the environment of one process, never elsewhere.

    server_url: scheme and host that the token is for, as in `https://github.com`.
    """

    server_url: str
    token: str = field(repr=False)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\x21-\x7e]+", self.token):
            raise WorkspaceError(
                "the forge token is empty or holds blanks or line ends", "set the token again"
            )

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """The git setting that sends the token to this server alone."""
        name = f"http.{self.server_url.rstrip('/')}/.extraHeader"
        return ((name, f"Authorization: Basic {self._basic}"),)

    @property
    def _basic(self) -> str:
        return base64.b64encode(f"x-access-token:{self.token}".encode()).decode()

    def redact(self, text: str) -> str:
        """`text` without the token in the two forms that git or a server may have printed."""
        return text.replace(self.token, "***").replace(self._basic, "***")


@dataclass(frozen=True)
class GitResult:
    """A git command that ended. `truncated`: it was ended because stdout went over the limit."""

    status: int
    stdout: bytes
    stderr: str
    truncated: bool = False


class HostGit:
    """Git in one folder: a bare repository (`git_dir`) or a person's checkout (`checkout`)."""

    def __init__(self, *, git_dir: Path | None = None, checkout: Path | None = None) -> None:
        self._environment = dict(_ENVIRONMENT)
        self._prefix = ["git"]
        if git_dir is not None:
            self._environment["GIT_DIR"] = str(git_dir)
        if checkout is not None:
            self._prefix += ["-C", str(checkout)]
            # A folder that only lies somewhere inside a repository is not a checkout.
            self._environment["GIT_CEILING_DIRECTORIES"] = str(checkout.parent)

    def run(
        self,
        *args: str,
        stdin: bytes | BinaryIO | None = None,
        settings: Sequence[tuple[str, str]] = (),
        environment: dict[str, str] | None = None,
        credential: Credential | None = None,
    ) -> bytes:
        """Stdout of `git args`. Raises WorkspaceError with git's last words."""
        done = self.attempt(
            *args, stdin=stdin, settings=settings, environment=environment, credential=credential
        )
        if done.status != 0:
            raise failure(args, done)
        return done.stdout

    def text(self, *args: str, stdin: bytes | None = None) -> str:
        """Stdout of `git args` as text without surrounding blanks."""
        return self.run(*args, stdin=stdin).decode("utf-8", "surrogateescape").strip()

    def attempt(
        self,
        *args: str,
        stdin: bytes | BinaryIO | None = None,
        settings: Sequence[tuple[str, str]] = (),
        environment: dict[str, str] | None = None,
        credential: Credential | None = None,
        limit: int | None = None,
        timeout: float = TIMEOUT,
    ) -> GitResult:
        """Run `git args` to its end, whatever its exit code.

        limit: most bytes of stdout; at one more the command is ended, as it is after `timeout`
        seconds (then with WorkspaceError).
        """
        secret = credential.settings if credential else ()
        wanted = self._variables([*_SETTINGS, *settings, *secret])
        wanted.update(environment or {})
        # GitPython hands down the whole environment of this process; `env -u` takes names only,
        # so no value appears in an argument list.
        dropped = [n for n in os.environ if n not in _KEPT and n not in wanted]
        command = ["env", *(f"--unset={n}" for n in dropped), *self._prefix, *args]
        with _open_stdin(stdin) as source:
            guard = Git().execute(
                command, istream=source, as_process=True, env=wanted, start_new_session=True
            )
        process = cast("subprocess.Popen[bytes]", guard.proc)
        done = _collect(process, args, limit, timeout)
        if credential is None:
            return done
        return GitResult(done.status, done.stdout, credential.redact(done.stderr), done.truncated)

    def _variables(self, settings: Sequence[tuple[str, str]]) -> dict[str, str]:
        variables = {**self._environment, "GIT_CONFIG_COUNT": str(len(settings))}
        for number, (name, value) in enumerate(settings):
            variables[f"GIT_CONFIG_KEY_{number}"] = name
            variables[f"GIT_CONFIG_VALUE_{number}"] = value
        return variables


def new_bare(folder: Path, *, wide: bool = False) -> HostGit:
    """Git in the new bare repository `folder`, without anything of this machine's templates. wide:
    its object ids are SHA-256."""
    git = HostGit(git_dir=folder)
    kind = "sha256" if wide else "sha1"
    git.run("init", "--quiet", "--bare", "--template=", f"--object-format={kind}")
    return git


def fetching(url: str, refspecs: Sequence[str], *options: str) -> tuple[str, ...]:
    """The arguments of a fetch that takes what is asked for and touches nothing else."""
    return (
        "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
        "--no-recurse-submodules", *options, "--", url, *refspecs,
    )  # fmt: skip


def failure(args: Sequence[str], done: GitResult, doing: str = "") -> WorkspaceError:
    """The error of a git command that did not end well: its last words, without credentials."""
    if done.status == 127:
        return WorkspaceError("git is not installed", "install git 2.39 or newer")
    lines = [
        line.strip() for line in done.stderr.splitlines() if line.strip() and "hint:" not in line
    ]
    words = re.sub(r"://[^/\s@]*@", "://***@", " / ".join(lines[-5:]))[-1000:]
    what = f"{doing or f'git {args[0]}'} failed: {words or f'exit code {done.status}'}"
    known = push_failure(done.stderr) or of_network(done.stderr)
    if known is not None:
        return WorkspaceError(what, known.next_step, known.cause)
    advice = [step for pattern, step in _ADVICE if re.search(pattern, done.stderr)]
    return WorkspaceError(what, advice[0] if advice else "")


def _open_stdin(stdin: bytes | BinaryIO | None) -> BinaryIO:
    if stdin is None:
        return open(os.devnull, "rb")
    if not isinstance(stdin, bytes):
        return os.fdopen(os.dup(stdin.fileno()), "rb", buffering=0)
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(stdin)
    file.seek(0)
    return cast(BinaryIO, file)


def _collect(
    process: "subprocess.Popen[bytes]", args: Sequence[str], limit: int | None, timeout: float
) -> GitResult:
    assert process.stdout is not None and process.stderr is not None
    stdout, stderr = process.stdout, process.stderr
    late = threading.Event()
    words = bytearray()

    def end_late() -> None:
        late.set()
        _kill(process)

    timer = threading.Timer(timeout, end_late)
    reader = threading.Thread(target=_keep_tail, args=(stderr, words), daemon=True)
    timer.start()
    reader.start()
    try:
        out = stdout.read() if limit is None else stdout.read(limit + 1)
        truncated = limit is not None and len(out) > limit
        if truncated:
            _kill(process)
        status = process.wait()
        reader.join()
    finally:
        timer.cancel()
        _kill(process)
        stdout.close()
        stderr.close()
    if late.is_set():
        raise WorkspaceError(
            f"git {args[0]} did not end within {timeout:.0f} seconds", "run it again"
        )
    return GitResult(status, out, words.decode("utf-8", "replace"), truncated)


def _keep_tail(stream: IO[bytes], kept: bytearray, most: int = 64_000) -> None:
    while chunk := stream.read(8192):
        kept += chunk
        del kept[:-most]


def _kill(process: "subprocess.Popen[bytes]") -> None:
    # Its own session, so its helpers (git-remote-https, index-pack) go with it.
    if process.returncode is not None:
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
