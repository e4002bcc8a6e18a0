"""Programs whose input and output the host controls: the MCP servers of the repository.

The host polls for output and sends input. A program whose output is not polled blocks on a full
pipe.
"""

import base64
import binascii
import itertools
import os
import select
import shlex
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from .processes import Family
from .wire import MAX_PROGRAMS, PROGRAM_CHUNK, ActionFailed

WRITE_SECONDS: Final = 20.0
"""Seconds that a program may leave its input unread."""

END_SECONDS: Final = 1.0
"""Seconds that a program has to end by itself after the end of its input."""

KEPT_STDERR_BYTES: Final = 2_000
"""Bytes of the end of a program's standard error that are kept."""

_POLL_SECONDS: Final = 0.5


class Programs:
    """All programs of the sandbox. Every method may be called from any thread.

    environment: environment variables of each program.
    folder: the folder each program starts in.
    """

    def __init__(self, family: Family, environment: Mapping[str, str], folder: str) -> None:
        self._family = family
        self._environment = environment
        self._folder = folder
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._running: dict[int, _Program] = {}

    def start(self, command: str, arguments: Sequence[str]) -> int:
        """Start a program and return its number.

        Raises ActionFailed if too many are running or if it can't be started.
        """
        with self._lock:
            if len(self._running) >= MAX_PROGRAMS:
                raise ActionFailed(f"{MAX_PROGRAMS} programs run already")
            number = next(self._numbers)
            self._running[number] = _Program(
                self._family, [command, *arguments], self._environment, self._folder
            )
            return number

    def read(self, number: int, seconds: float) -> tuple[bytes, bool, str]:
        """Return (output, ended, stderr) of a program.

        output: the next bytes, as soon as there are some; b"" if `seconds` pass without any.
        ended: True if the program has closed its output.
        stderr: the end of what it wrote to standard error.
        """
        return self._find(number).read(seconds)

    def write(self, number: int, data: str) -> None:
        """Send base64-encoded input to a program. Raises ActionFailed if it does not accept it."""
        try:
            content = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ActionFailed(f"the input is not base64: {error}") from error
        self._find(number).write(content)

    def end(self, number: int) -> None:
        """End a program and everything that it has started; an unknown number counts as ended."""
        with self._lock:
            program = self._running.pop(number, None)
        if program is not None:
            program.end()

    def close(self) -> None:
        """End all programs."""
        for number in tuple(self._running):
            self.end(number)

    def _find(self, number: int) -> "_Program":
        with self._lock:
            program = self._running.get(number)
        if program is None:
            raise ActionFailed(f"there is no program {number}")
        return program


class _Program:
    """One running program. One thread may read and one may write at the same time."""

    def __init__(
        self, family: Family, command: list[str], environment: Mapping[str, str], folder: str
    ) -> None:
        self._family = family
        self._read_lock, self._write_lock = threading.Lock(), threading.Lock()
        self._ending = threading.Event()
        self._stderr_tail = b""
        program_stdin, self._stdin = os.pipe()
        self._stdout, program_stdout = os.pipe()
        self._stderr, program_stderr = os.pipe()
        try:
            with family.starting(
                command,
                environment=environment,
                folder=folder,
                stdin=program_stdin,
                output=program_stdout,
                errors=program_stderr,
                kept=(self._stdin, self._stdout, self._stderr),
                given=(program_stdin, program_stdout, program_stderr),
            ) as self._process:
                os.set_blocking(self._stdin, False)
        except (OSError, ValueError) as error:  # ValueError: an argument contains a NUL
            raise ActionFailed(f"{shlex.join(command)} can't be started: {error}") from error

    def read(self, seconds: float) -> tuple[bytes, bool, str]:
        """See Programs.read."""
        deadline = time.monotonic() + seconds
        with self._read_lock:
            descriptors = [self._stdout, self._stderr]
            while not self._ending.is_set():
                pause = min(_POLL_SECONDS, deadline - time.monotonic())
                if pause <= 0:
                    return b"", False, self._stderr_text
                ready = select.select(descriptors, [], [], pause)[0]
                if self._stderr in ready and not self._read_stderr():
                    descriptors.remove(self._stderr)
                if self._stdout in ready:
                    data = os.read(self._stdout, PROGRAM_CHUNK)
                    return data, not data, self._stderr_text
            return b"", True, self._stderr_text

    def write(self, data: bytes) -> None:
        """Write all of the data. Raises ActionFailed if the program does not read it in time."""
        deadline = time.monotonic() + WRITE_SECONDS
        remaining = memoryview(data)
        with self._write_lock:
            while remaining and not self._ending.is_set():
                try:
                    remaining = remaining[os.write(self._stdin, remaining) :]
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise ActionFailed("the program does not read its input") from None
                    select.select([], [self._stdin], [], _POLL_SECONDS)
                except OSError as error:
                    raise ActionFailed(f"the program accepts no input: {error}") from error

    def end(self) -> None:
        """End the program: close its input, and after END_SECONDS kill its session."""
        self._ending.set()
        with self._write_lock:
            os.close(self._stdin)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        self._family.end(self._process)
        with self._read_lock:
            os.close(self._stdout)
            os.close(self._stderr)

    def _read_stderr(self) -> bool:
        data = os.read(self._stderr, PROGRAM_CHUNK)
        self._stderr_tail = (self._stderr_tail + data)[-KEPT_STDERR_BYTES:]
        return bool(data)

    @property
    def _stderr_text(self) -> str:
        return self._stderr_tail.decode(errors="replace").strip()
