"""Reads a program's output and its control pipe together, in one thread and without polling.

The program reports on the control pipe that a request is done, so nothing that it prints can be
mistaken for that.
"""

import array
import fcntl
import os
import selectors
import subprocess
import termios
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal

from .spool import Spool

CHUNK_BYTES: Final = 1 << 16
SET_PIPE_SIZE_COMMAND: Final = 1031  # F_SETPIPE_SZ of fcntl.h
PIPE_BYTES: Final = 1 << 20

MAX_PENDING_BYTES: Final = 1 << 24
"""Bytes on the control pipe without a terminator after which they are discarded as garbage."""

Event = Literal["done", "ended", "timeout", "quiet"]
"""Result of `wait`.

done: the terminator arrived on the control pipe.
ended: the process has ended.
timeout: neither happened in time.
quiet: there was no output for the given time.
"""


def wide_pipe() -> tuple[int, int]:
    """Return a pipe (reader, writer) with a 1 MiB buffer if the kernel permits it."""
    reader, writer = os.pipe()
    with suppress(OSError):  # over the user's limit: the default of 64 kB is enough
        fcntl.fcntl(writer, SET_PIPE_SIZE_COMMAND, PIPE_BYTES)
    return reader, writer


DRAIN_SECONDS = 5.0
"""Seconds to wait until the last output of a process that has ended is read."""


def _has_exited(pid: int) -> bool:
    """Return True if a child process has ended, without waiting for it as waitpid(2) would."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # it was waited for
        return True


class Pump:
    """Copies output to the current spool until a message on the control pipe ends the request.

    process: the process that writes; its end is an event too.
    outputs: descriptors to read, owned by the caller.
    control: read end of the control pipe, owned and closed by the pump.
    new_spool: returns the spool for the next output.

    Raises RuntimeError if a thread can't be started; `control` is the caller's then.
    """

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        outputs: list[int],
        control: int,
        new_spool: Callable[[], Spool],
    ) -> None:
        self._process = process
        self._outputs = outputs
        self._control = control
        self._new_spool = new_spool
        self._changed = threading.Condition()
        self._spool = new_spool()
        self._pending = bytearray()
        self._terminator = b""
        self._message: bytes | None = None
        self._ended = False
        self._last_output = time.monotonic()
        self._wake_reader, self._wake_writer = os.pipe()
        self._thread = threading.Thread(target=self._read, daemon=True)
        try:
            self._thread.start()
            threading.Thread(target=self._await_end, daemon=True).start()
        except RuntimeError:
            self._stop_reading()
            raise

    def expect(self, terminator: bytes) -> bool:
        """Begin a request that ends with `terminator` on the control pipe.

        Return True if there is output from before, since the last `take`.
        """
        with self._changed:
            self._pending.clear()
            self._message = None
            self._terminator = terminator
            # The reading thread may not have run since the last output was written.
            for source in self._outputs:
                self._drain(source)
            self._last_output = time.monotonic()
            return self._spool.total > 0

    def reset_silence(self) -> None:
        """Restart the measurement of silence."""
        with self._changed:
            self._last_output = time.monotonic()

    def wait(self, timeout: float, quiet: float | None = None) -> Event:
        """Wait until the request is done, the process has ended, or `timeout` seconds have passed.

        quiet: also return after this many seconds without output.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                if self._message is not None:
                    return "done"
                if self._ended:
                    return "ended"
                now = time.monotonic()
                if now >= deadline:
                    return "timeout"
                pause = deadline - now
                if quiet is not None:
                    silence_left = self._last_output + quiet - now
                    if silence_left <= 0:
                        return "quiet"
                    pause = min(pause, silence_left)
                self._changed.wait(pause)

    @property
    def ended(self) -> bool:
        """True if the process has ended. Then it was waited for, and its output is complete."""
        with self._changed:
            # The thread that waits for the process may not have run since it ended.
            if not self._ended and _has_exited(self._process.pid):
                self._changed.wait_for(lambda: self._ended, DRAIN_SECONDS)
            return self._ended

    @property
    def message(self) -> bytes:
        """The bytes on the control pipe before the terminator; empty while the request runs."""
        with self._changed:
            return self._message or b""

    def take(self) -> Spool:
        """Return the spool with the output so far; later output goes to a new one."""
        with self._changed:
            spool, self._spool = self._spool, self._new_spool()
            return spool

    def close(self) -> None:
        """Stop reading. Ending the process is up to the caller."""
        self._stop_reading()
        os.close(self._control)

    def _stop_reading(self) -> None:
        os.write(self._wake_writer, b"x")
        if self._thread.ident is not None:
            self._thread.join()
        os.close(self._wake_writer)
        os.close(self._wake_reader)

    def _await_end(self) -> None:
        self._process.wait()
        with self._changed:
            for source in self._outputs:
                self._drain(source)
            self._ended = True
            self._changed.notify_all()

    def _read(self) -> None:
        """Read outputs and control pipe until `close`."""
        with selectors.DefaultSelector() as selector:
            for source in (*self._outputs, self._control, self._wake_reader):
                selector.register(source, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select()}
                if self._wake_reader in ready:
                    return
                with self._changed:
                    for source in self._outputs:
                        if source in ready and not self._collect(source, CHUNK_BYTES):
                            selector.unregister(source)
                    if self._control in ready and not self._read_control():
                        selector.unregister(self._control)

    def _read_control(self) -> bool:
        """Read the control pipe and look for the terminator; return False at its end."""
        data = os.read(self._control, CHUNK_BYTES)
        if len(self._pending) > MAX_PENDING_BYTES:
            self._pending.clear()
        self._pending += data
        end = self._pending.find(self._terminator) if self._terminator else -1
        if end >= 0:
            # The command's output was written before this message, so it is in the pipes already.
            # It must be read before "done" is reported, although select may not have returned it
            # yet.
            for source in self._outputs:
                self._drain(source)
            self._message = bytes(self._pending[:end])
            self._terminator = b""
            self._changed.notify_all()
        return bool(data)

    def _drain(self, source: int) -> None:
        """Read only the bytes that are in the pipe now: a background job may write forever."""
        size = array.array("i", [0])
        try:
            fcntl.ioctl(source, termios.FIONREAD, size)
        except OSError:
            return
        bytes_left = size[0]
        while bytes_left > 0:
            count = self._collect(source, min(bytes_left, CHUNK_BYTES))
            if not count:
                return
            bytes_left -= count

    def _collect(self, source: int, max_bytes: int) -> int:
        """Read up to `max_bytes` bytes into the spool, and return their number; 0 at the end."""
        try:
            data = os.read(source, max_bytes)
        except BlockingIOError:
            return max_bytes  # no data now: stay registered
        except OSError:
            return 0  # a terminal whose other side is closed
        self._last_output = time.monotonic()
        self._spool.add(data)
        return len(data)
