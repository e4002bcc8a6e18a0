"""An MCP server that is a command of the operator: a process on the host.

It gets only the variables in PASSED_VARIABLES and those that the operator set for it.
"""

import os
import select
import signal
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
_MAX_READS: Final = 16


class HostProcess:
    """One process, with its own process group and its own empty folder.

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
        passed = {name: environment[name] for name in PASSED_VARIABLES if name in environment}
        self._temporary = ExitStack()
        folder = self._temporary.enter_context(temporary_directory()) / "mcp"
        folder.mkdir()
        self._wake_reader, self._wake_writer = os.pipe()
        self._stderr_tail = b""
        self._read_lock, self._write_lock = threading.Lock(), threading.Lock()
        self._closing = threading.Event()
        try:
            self._process = subprocess.Popen(
                [command, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env={**passed, **variables},
                cwd=folder,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            os.close(self._wake_reader)
            os.close(self._wake_writer)
            self._temporary.close()
            raise OSError(f"it can't be started: {error}") from error
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._stderr = self._process.stderr
        os.set_blocking(self._stdin.fileno(), False)
        self._watcher = self._start_watcher()

    def read(self) -> bytes:
        """Return the next output; b"" if the process has ended or was closed."""
        with self._read_lock:
            if self._closing.is_set():
                return b""
            out, err, wake = self._stdout.fileno(), self._stderr.fileno(), self._wake_reader
            poll = select.poll()
            for descriptor in (out, err, wake):
                poll.register(descriptor, select.POLLIN)
            while True:
                ready = {descriptor for descriptor, _ in poll.poll()}
                if err in ready and not self._read_stderr():
                    poll.unregister(err)
                if wake in ready:
                    return b""
                if out in ready:
                    data = os.read(out, _CHUNK_BYTES)
                    if not data:
                        self._drain_stderr()
                    return data

    def write(self, data: bytes) -> None:
        """Write to the process's input. Raises OSError if the process is gone."""
        remaining = memoryview(data)
        with self._write_lock:
            if self._closing.is_set():
                return
            descriptor = self._stdin.fileno()
            poll = select.poll()
            poll.register(descriptor, select.POLLOUT)
            poll.register(self._wake_reader, select.POLLIN)
            while remaining:
                if self._wake_reader in {ready for ready, _ in poll.poll()}:
                    return
                with suppress(BlockingIOError):
                    remaining = remaining[os.write(descriptor, remaining) :]

    def close(self) -> None:
        """End the process and its group: close its input, then send SIGTERM, then SIGKILL."""
        if self._closing.is_set():
            return
        self._closing.set()
        os.write(self._wake_writer, b"x")
        with self._write_lock:  # the waker ends a `write` that holds this lock
            self._stdin.close()
        self._wait_for_exit(self._end_seconds)
        self._signal(signal.SIGTERM)
        self._wait_for_exit(self._end_seconds)
        self._signal(signal.SIGKILL)
        self._stop_watcher()
        self._process.wait()
        with self._read_lock:
            self._stdout.close()
            self._stderr.close()
            os.close(self._wake_reader)
            os.close(self._wake_writer)
        self._temporary.close()

    def _start_watcher(self) -> "subprocess.Popen[bytes] | None":
        """Start the watcher that kills the group if this process is killed.

        None without a shell.
        """
        try:
            return subprocess.Popen(
                ["/bin/sh", "-c", _WATCHER_SCRIPT, "sh", str(self._process.pid)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        except OSError:
            return None

    def _stop_watcher(self) -> None:
        """End the watcher.

        Call it before the process is waited for: afterwards its number may belong to another
        process.
        """
        if self._watcher is not None:
            self._watcher.kill()
            self._watcher.wait()
            assert self._watcher.stdin
            self._watcher.stdin.close()

    @property
    def exit_details(self) -> str:
        """Return how the process has ended, and the end of what it wrote to standard error."""
        stderr = self._stderr_tail.decode(errors="replace").strip()
        return ": ".join(part for part in (self._exit_description(), stderr) if part)

    def _read_stderr(self) -> bool:
        """Read a piece of standard error. Return False at its end."""
        data = os.read(self._stderr.fileno(), _CHUNK_BYTES)
        self._stderr_tail = (self._stderr_tail + data)[-KEPT_STDERR_BYTES:]
        return bool(data)

    def _drain_stderr(self) -> None:
        """Read the rest of standard error of a process that has closed its output and will end."""
        self._wait_for_exit(EXIT_SECONDS)
        poll = select.poll()
        poll.register(self._stderr.fileno(), select.POLLIN)
        for _ in range(_MAX_READS):
            if not poll.poll(0) or not self._read_stderr():
                return

    def _exit_description(self) -> str:
        code = self._process.returncode
        if code is None:
            state = self._exit_state()
            if state is None:
                return ""
            killed = state.si_code != os.CLD_EXITED
            code = -state.si_status if killed else state.si_status
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
