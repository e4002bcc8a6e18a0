"""`LocalMachine`: this machine as the sandbox, for laptops and places without a container engine.

The server is a child process with a folder of its own. Where the kernel allows it, namespaces hide
the host's processes, network, sockets and temporary files (enter.py). The other files of the
machine stay readable; `isolation` says so. A process is ended with all its descendants, which are
read from /proc (proc(5)).
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import IO, Any, Final

from resolver.config.temporary_directory import (
    PREFIX,
    lock_directory,
    remove_locked_directory,
)
from resolver.errors import SandboxError
from resolver.models.verification import CheckService
from resolver.runtime import enter
from resolver.runtime.base import (
    NOT_SEPARATED,
    BrowserProcess,
    Channel,
    SandboxSpec,
    refuse_services,
)
from resolver.runtime.channel import KEPT_STDERR_BYTES, SocketChannel
from resolver.runtime.disk import DiskWatch, bytes_below, open_below, remove_tree, unpack_below
from resolver.runtime.toolbox import SANDBOX_FOLDER
from resolver.sandbox.processes import descendant_pids

_KILL_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.02


def kill_tree(process: "subprocess.Popen[bytes]") -> None:
    """Kill everything below the process, then the process itself, and wait for it.

    The process is a subreaper for orphans (see enter.py), so none can escape while it lives.
    Killing is repeated for at most five seconds, as processes may start new ones meanwhile.
    """
    deadline = time.monotonic() + _KILL_SECONDS
    while (descendants := descendant_pids(process.pid)) and time.monotonic() < deadline:
        for pid in descendants:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


PASSED_VARIABLES: Final = frozenset(
    {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL", "PYENV_ROOT"}
    | {"RUSTUP_HOME", "CARGO_HOME", "NVM_DIR", "GOROOT", "JAVA_HOME", "VIRTUAL_ENV"}
)
"""Variables of the host that are passed to the sandbox: none that could hold a secret."""

CREDENTIALS: Final = (
    ".netrc", ".git-credentials", ".config/git/credentials", ".config/gh", ".config/hub",
    ".ssh", ".gnupg", ".docker/config.json", ".npmrc", ".yarnrc.yml", ".pypirc", ".config/pip",
    ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml", ".gradle/gradle.properties",
    ".aws", ".azure", ".config/gcloud", ".kube", ".config/doctl", ".terraform.d", ".vault-token",
    ".config/openai", ".config/anthropic", ".config/io.datasette.llm",
)  # fmt: skip
"""Paths below the home folder where programs keep tokens. They are covered in the sandbox."""

ENGINE_FOLDERS: Final = ("/var/lib/docker", "/var/lib/containerd", "/var/lib/containers")
"""Folders in which container engines keep the files of all containers. The sandbox covers them."""

_PR_SET_DUMPABLE: Final = 4
_CHUNK_BYTES: Final = 1024 * 1024


_libc = ctypes.CDLL(None)


class _Undumpable:
    """Makes this process not dumpable while at least one sandbox can see it.

    Several sandboxes may be open at the same time, in several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._machines: set[int] = set()

    def add(self, machine: int) -> None:
        with self._lock:
            self._machines.add(machine)
            _libc.prctl(_PR_SET_DUMPABLE, 0)

    def remove(self, machine: int) -> None:
        with self._lock:
            self._machines.discard(machine)
            if not self._machines:
                _libc.prctl(_PR_SET_DUMPABLE, 1)


_undumpable = _Undumpable()


class LocalMachine:
    """A folder and a process tree of this machine.

    environment: the host's variables; only those in PASSED_VARIABLES are passed to the sandbox.
    """

    def __init__(self, spec: SandboxSpec, environment: Mapping[str, str]) -> None:
        self._spec = spec
        self._environment = environment
        self._folder: Path | None = None
        self._lock = -1
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: DiskWatch | None = None
        self.isolation = "this machine, not started"

    @property
    def scratch(self) -> str:
        """Folder next to the repository, for bundles and long outputs."""
        return str(self._home / "scratch")

    def __enter__(self) -> "LocalMachine":
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
        self._lock = lock_directory(self._folder)
        for name in ("workspace", "scratch", "home", "tmp"):
            (self._folder / name).mkdir()
        return self

    def __exit__(self, *exc: object) -> None:
        """Kill every process of the sandbox and remove its folder."""
        if self._watch is not None:
            self._watch.close()
        process, self._process = self._process, None
        if process is not None:
            kill_tree(process)
            _undumpable.remove(id(self))
        folder, self._folder = self._folder, None
        if folder is not None:
            try:
                remove_locked_directory(folder, remove_tree)
            finally:
                os.close(self._lock)

    def connect(self) -> Channel:
        """Start the action server and return its stdin and stdout."""
        server = self._server_command()
        own_socket, server_socket = socket.socketpair()
        report_reader, report_writer = os.pipe()
        try:
            process = self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    enter.__file__,
                    str(report_writer),
                    self._places_argument(),
                    *server,
                ],
                stdin=server_socket.fileno(),
                stdout=server_socket.fileno(),
                stderr=subprocess.PIPE,
                env=self._variables(),
                cwd=self._home / "workspace",
                pass_fds=(report_writer,),
                start_new_session=True,
            )
        except OSError as error:
            own_socket.close()
            os.close(report_reader)
            raise SandboxError(
                f"the action server could not be started: {error}",
                "check that this Python can be run again: " + sys.executable,
            ) from error
        finally:
            server_socket.close()
            os.close(report_writer)
        stderr = _require_stream(process.stderr)
        with ExitStack() as opened:
            opened.callback(own_socket.close)
            opened.callback(stderr.close)
            with os.fdopen(report_reader, "rb") as pipe:
                report = pipe.read()
            self._note_isolation(json.loads(report) if report else {})
            self._watch = DiskWatch(
                lambda: bytes_below(self._home), lambda: kill_tree(process), self._spec.disk
            )
            opened.pop_all()  # the channel closes them
            return _LocalChannel(own_socket, stderr, self._watch)

    def run_services(
        self,
        services: Sequence[CheckService],
        seconds: float,  # noqa: ARG002 - none are started
        cancelled: Callable[[], bool],  # noqa: ARG002
    ) -> AbstractContextManager[None]:
        """Return a context for no services. Raises ServiceUnavailable if there are any."""
        return refuse_services(services, "local")

    @property
    def browser_image(self) -> str | None:
        """Return None: this machine has no images."""
        return None

    def start_browser(self, proxy_port: int) -> BrowserProcess:  # noqa: ARG002
        """Raise SandboxError: this machine has no images."""
        raise SandboxError("the local runtime has no images", "use the docker runtime")

    def save(self, image: str, labels: Mapping[str, str]) -> bool:  # noqa: ARG002 - no images here
        """Return False: this machine has no images."""
        return False

    def put_archive(self, path: str, tar: bytes | Iterator[bytes]) -> None:
        """Unpack a tar stream below `path`, which must be in the sandbox's folder."""
        with tempfile.TemporaryFile() as spool:
            for chunk in [tar] if isinstance(tar, bytes) else tar:
                spool.write(chunk)
            spool.seek(0)
            with (
                open_below(self._home, path, os.O_RDONLY | os.O_DIRECTORY) as folder,
                tarfile.open(fileobj=spool, mode="r:") as archive,
            ):
                unpack_below(archive, folder)

    def get_archive(self, path: str) -> Iterator[bytes]:
        """Yield the file at `path` as a tar stream. Links on the way are not followed.

        Raises SandboxError for anything that isn't a regular file.
        """
        with open_below(self._home, path, os.O_RDONLY | os.O_NONBLOCK) as file:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise SandboxError(f"{path} is not a regular file", "look at the run's event log")
            member = tarfile.TarInfo(Path(path).name)
            member.size = bytes_left = status.st_size
            yield member.tobuf(tarfile.PAX_FORMAT)
            while bytes_left > 0 and (chunk := os.read(file, min(bytes_left, _CHUNK_BYTES))):
                bytes_left -= len(chunk)
                yield chunk
            yield bytes(-member.size % tarfile.BLOCKSIZE + 2 * tarfile.BLOCKSIZE)

    @property
    def _home(self) -> Path:
        if self._folder is None:
            raise SandboxError("the sandbox is not running", "start the run again")
        return self._folder

    def _server_command(self) -> list[str]:
        folders = ["--root", str(self._home / "workspace"), "--scratch", self.scratch]
        programs = ["--bash", self._program("bash"), "--git", self._program("git")]
        server = [str(SANDBOX_FOLDER / "__main__.py")]
        proxy_option = ["--proxy"] if self._spec.egress else []
        return [*server, *folders, *programs, "--keep-environment", *proxy_option]

    def _places_argument(self) -> str:
        """Return the PLACES argument of enter.py: what it does with the files of this machine."""
        search_path = [
            self._environment.get("VIRTUAL_ENV", ""),
            *self._environment.get("PATH", "").split(":"),
        ]
        readable = [sys.prefix, sys.base_prefix, str(SANDBOX_FOLDER), *search_path]
        home = self._environment.get("HOME", "")
        return json.dumps({
            "folder": str(self._home),
            "readable": [folder for folder in readable if folder.startswith("/")],
            "hidden": [
                *(f"{home}/{name}" for name in CREDENTIALS if home),
                *self._own_folders(home),
                *ENGINE_FOLDERS,
            ],
            "max_file_bytes": self._spec.disk,
            "filter": str(SANDBOX_FOLDER / "socket_filter.py"),
        })  # fmt: skip

    def _own_folders(self, home: str) -> list[str]:
        """Return Resolver's folders of this user, with the logs and the clones of all runs."""
        state = self._environment.get("XDG_STATE_HOME") or f"{home}/.local/state"
        cache = self._environment.get("XDG_CACHE_HOME") or f"{home}/.cache"
        data = self._environment.get("RESOLVER_DATA_DIR", "")
        return [f"{state}/resolver", f"{cache}/resolver", *filter(None, [data])]

    def _program(self, name: str) -> str:
        path = shutil.which(name, path=self._environment.get("PATH"))
        if path is None:
            raise SandboxError(f"{name} is not on PATH", f"install {name} and try again")
        return path

    def _variables(self) -> dict[str, str]:
        passed = {
            name: value for name, value in self._environment.items() if name in PASSED_VARIABLES
        }
        replaced = {"HOME": str(self._home / "home"), "TMPDIR": str(self._home / "tmp")}
        return {**passed, **replaced, **self._spec.environment}

    def _note_isolation(self, report: dict[str, Any]) -> None:
        hidden = [name for name in ("processes", "network") if report.get(name)]
        if self._spec.egress and report.get("network"):
            hidden[-1] = f"network but for a proxy to {', '.join(self._spec.egress)}"
        if report.get("files"):
            hidden.append("temporary files")
        if not report.get("processes"):
            # Without a process namespace the sandbox sees this process, whose environment holds the
            # API keys. If it is not dumpable, other processes of the user can't read its memory and
            # environment: PR_SET_DUMPABLE in prctl(2).
            _undumpable.add(id(self))
            hidden.append("this program's memory and environment")
        shared = [name for name in ("processes", "network") if not report.get(name)]
        if self._spec.egress and not report.get("network"):
            shared[-1] = "network (the allow-list binds only what uses the proxy)"
        if connectable := report.get("connectable", ["/"]):
            shared.append(f"sockets and named pipes below {', '.join(connectable)}")
        if not report.get("families"):
            shared.append("sockets to the host of a virtual machine")
        files = "files (read-only)" if report.get("files") else "files"
        problem = f" ({report['problem']})" if report.get("problem") else ""
        self.isolation = (
            f"this machine, as user {os.getuid()}; hidden from it: {', '.join(hidden)}; "
            f"{NOT_SEPARATED}{', '.join([files, 'memory and processor use', *shared])}{problem}"
        )


class _LocalChannel(SocketChannel):
    """The server's stdin and stdout as a socket, and its stderr as a pipe."""

    def __init__(self, connected: socket.socket, stderr: IO[bytes], watch: DiskWatch) -> None:
        super().__init__(connected)
        self._watch = watch
        self._stderr_tail = b""
        self._drain = threading.Thread(target=self._read_stderr, args=(stderr,), daemon=True)
        self._drain.start()

    def exit_details(self) -> str:
        """Return why the sandbox was killed, or else the end of the server's stderr.

        Waits up to half a second for stderr to end, because the caller has seen the end of stdout.
        """
        if self._watch.reason:
            return self._watch.reason
        self._drain.join(timeout=0.5)
        return self._stderr_tail.decode(errors="replace").strip()

    def _read_stderr(self, stderr: IO[bytes]) -> None:
        with stderr:
            while data := os.read(stderr.fileno(), _CHUNK_BYTES):
                self._stderr_tail = (self._stderr_tail + data)[-KEPT_STDERR_BYTES:]


def _require_stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None, "asked for with PIPE"
    return stream
