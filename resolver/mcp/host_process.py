"""An MCP server that is a command of the operator: a process on the host.

It gets only the variables in PASSED_VARIABLES and those that the operator set for it.
"""

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Final

from resolver.config.temporary_directory import temporary_directory

END_SECONDS: Final = 2.0
"""Time that the process has to end after its input has ended, and again after SIGTERM."""

EXIT_SECONDS: Final = 0.5
"""Time that the process has to end after it has closed its output."""

KEPT_STDERR_BYTES: Final = 2_000
"""Number of bytes of its standard error that are kept."""

PASSED_VARIABLES: Final = ("PATH", "HOME", "LANG")

_WATCHER_SCRIPT: Final = 'read -r _; sleep 1; kill -s KILL -- "-$1" 2> /dev/null'
"""Shell script that kills a process group when its own input ends.

Its input is a pipe held by this process, so it ends also if this process is killed and can't clean
up.
"""

_CHUNK_BYTES: Final = 1 << 16


class HostProcess:
    """One process, with its own process group and its own empty folder.

    Its input and output are a socket, as Node gives them to its children: unlike a pipe, it can be
    shut down while other threads read and write.
    environment: the host's variables, of which only PASSED_VARIABLES are passed on.
    variables: further variables of the process.
    end_seconds: see END_SECONDS.
    Raises OSError if it can't be started.
    """

    def __init__(
        self,
        command: str,
        arguments: Sequence[str],
        variables: Mapping[str, str],
        environment: Mapping[str, str],
        end_seconds: float = END_SECONDS,
    ) -> None:
        self._end_seconds = end_seconds
        self._stderr_tail = b""
        self._read_lock, self._write_lock = threading.Lock(), threading.Lock()
        passed = {name: environment[name] for name in PASSED_VARIABLES if name in environment}
        (self._pipe, pipe), (self._stderr, stderr) = socket.socketpair(), socket.socketpair()
        with ExitStack() as opened, pipe, stderr:
            opened.enter_context(self._pipe)
            opened.enter_context(self._stderr)
            folder = opened.enter_context(temporary_directory()) / "mcp"
            folder.mkdir()
            try:
                self._process = subprocess.Popen(
                    [command, *arguments],
                    stdin=pipe.fileno(),
                    stdout=pipe.fileno(),
                    stderr=stderr.fileno(),
                    env={**passed, **variables},
                    cwd=folder,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise OSError(f"it can't be started: {error}") from error
            self._watcher = subprocess.Popen(
                ["/bin/sh", "-c", _WATCHER_SCRIPT, "sh", str(self._process.pid)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
            self._opened: ExitStack | None = opened.pop_all()
        self._stderr_reader = threading.Thread(target=self._read_stderr, name="mcp-stderr")
        self._stderr_reader.daemon = True
        self._stderr_reader.start()

    def read(self) -> bytes:
        """Return the next output; b"" if the process has ended or was closed."""
        data = b""
        with self._read_lock, suppress(OSError):  # it is reset if the process left input unread
            data = self._pipe.recv(_CHUNK_BYTES)
        if not data:
            self._wait_for_exit(EXIT_SECONDS)
            self._stderr_reader.join(EXIT_SECONDS)
        return data

    def write(self, data: bytes) -> None:
        """Write to the process's input. Raises OSError if the process is gone."""
        with self._write_lock:
            self._pipe.sendall(data)

    def close(self) -> None:
        """End the process and its group: close its input, then send SIGTERM, then SIGKILL."""
        opened, self._opened = self._opened, None
        if opened is None:
            return
        with suppress(OSError):
            self._pipe.shutdown(socket.SHUT_RDWR)  # ends a waiting `read` and `write`
        self._wait_for_exit(self._end_seconds)
        self._signal(signal.SIGTERM)
        self._wait_for_exit(self._end_seconds)
        self._signal(signal.SIGKILL)
        # The watcher ends before the process is waited for: afterwards the process's number may
        # belong to another one.
        self._watcher.kill()
        self._watcher.communicate()
        self._process.wait()
        with suppress(OSError):
            self._stderr.shutdown(socket.SHUT_RDWR)
        self._stderr_reader.join()
        with self._read_lock, self._write_lock:
            opened.close()

    @property
    def exit_details(self) -> str:
        """Return how the process has ended, and the end of what it wrote to standard error."""
        stderr = self._stderr_tail.decode(errors="replace").strip()
        return ": ".join(part for part in (self._exit_description(), stderr) if part)

    def _read_stderr(self) -> None:
        with suppress(OSError):
            while data := self._stderr.recv(_CHUNK_BYTES):
                self._stderr_tail = (self._stderr_tail + data)[-KEPT_STDERR_BYTES:]

    def _exit_description(self) -> str:
        code = self._process.returncode
        if code is None:
            state = self._exit_state()
            if state is None:
                return ""
            code = state.si_status if state.si_code == os.CLD_EXITED else -state.si_status
        return f"exit code {code}" if code >= 0 else f"signal {-code}"

    def _exit_state(self) -> "os.waitid_result | None":
        """Return how the process has ended, or None while it runs.

        The process is not reaped (WNOWAIT in waitid(2)): until it is, its number stays reserved,
        and a signal to its group can't reach another process.
        """
        with suppress(ChildProcessError):
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return None

    def _wait_for_exit(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._exit_state() is None and time.monotonic() < deadline:
            time.sleep(0.01)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
