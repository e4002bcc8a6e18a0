"""An MCP server that is a command of the operator: a process on the host.

It gets only the variables in PASSED_VARIABLES and those that the operator set for it.
"""

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Final

from resolver.config.temporary_directory import temporary_directory

END_SECONDS: Final = 2.0
"""Time that the process has to end after its input has ended, and again after SIGTERM."""

KEPT_STDERR_BYTES: Final = 2_000
"""Number of bytes of its standard error that are kept."""

PASSED_VARIABLES: Final = ("PATH", "HOME", "LANG")

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
        passed = {name: environment[name] for name in PASSED_VARIABLES if name in environment}
        self._pipe, pipe = socket.socketpair()
        self._stderr, stderr = socket.socketpair()
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
            self._opened: ExitStack | None = opened.pop_all()
        self._stderr_reader = threading.Thread(target=self._read_stderr, name="mcp-stderr")
        self._stderr_reader.daemon = True
        self._stderr_reader.start()

    def read(self) -> bytes:
        """Return the next output; b"" if the process has ended or was closed."""
        with suppress(OSError):  # it is reset if the process left input unread
            return self._pipe.recv(_CHUNK_BYTES)
        return b""

    def write(self, data: bytes) -> None:
        """Write to the process's input. Raises OSError if the process is gone."""
        self._pipe.sendall(data)

    def close(self) -> None:
        """End the process and its group: close its input, then send SIGTERM, then SIGKILL."""
        opened, self._opened = self._opened, None
        if opened is None:
            return
        with suppress(OSError):
            self._pipe.shutdown(socket.SHUT_RDWR)  # ends a waiting `read` and `write`
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(self._end_seconds)
            # The group may have more members than the process, which it outlives then.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)
        self._process.wait()
        with suppress(OSError):
            self._stderr.shutdown(socket.SHUT_RDWR)
        self._stderr_reader.join()
        opened.close()

    @property
    def exit_details(self) -> str:
        """Return how the process has ended, and the end of what it wrote to standard error."""
        with suppress(subprocess.TimeoutExpired):  # it may have closed its output only
            self._process.wait(self._end_seconds)
        self._stderr_reader.join(self._end_seconds if self._process.returncode is not None else 0)
        code = self._process.returncode
        how = () if code is None else (f"exit code {code}" if code >= 0 else f"signal {-code}",)
        return ": ".join(
            (*how, *filter(None, [self._stderr_tail.decode(errors="replace").strip()]))
        )

    def _read_stderr(self) -> None:
        with suppress(OSError):
            while data := self._stderr.recv(_CHUNK_BYTES):
                self._stderr_tail = (self._stderr_tail + data)[-KEPT_STDERR_BYTES:]
