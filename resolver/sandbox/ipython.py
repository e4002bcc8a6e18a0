"""The agent's IPython session as the server sees it: a child process that runs cells.

kernel.py is that process. Its output comes through one pipe and the report of a cell's end through
another.
"""

import json
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from .processes import Family, MemoryKills, end_session, signal_group
from .pump import Pump, wide_pipe
from .spool import Spool, readable
from .wire import CellResult

INTERRUPT_SECONDS: Final = 2.0
"""Seconds that an interrupted cell has to end before the kernel is killed."""

START_SECONDS: Final = 60.0
"""Seconds that a kernel may take to become ready."""


class KernelCommand(NamedTuple):
    """The start of a kernel: program and first arguments, environment variables, and folder."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    root: str


class _Kernel:
    """A running kernel process and its pipes."""

    def __init__(
        self, family: Family, command: KernelCommand, new_spool: Callable[[], Spool]
    ) -> None:
        self._family = family
        cells, self._cells = os.pipe()
        control, control_writer = os.pipe()
        self._output, output_writer = wide_pipe()
        os.set_blocking(self._output, False)
        null_input = os.open(os.devnull, os.O_RDONLY)
        with family.starting(
            [*command.arguments, str(cells), str(control_writer)],
            environment=command.environment,
            folder=command.root if os.path.isdir(command.root) else "/",
            stdin=null_input,
            output=output_writer,
            passed=(cells, control_writer),
            kept=(self._cells, control, self._output),
            given=(cells, control_writer, output_writer, null_input),
        ) as self.process:
            self.pump = Pump(self.process, [self._output], control, new_spool)

    def send(self, code: str) -> None:
        """Send a cell to the kernel, with a new token that marks the end of its answer."""
        token = os.urandom(16).hex()
        self.pump.expect(f"\0{token}\0".encode())
        data = json.dumps({"code": code, "token": token}).encode() + b"\n"
        with suppress(BrokenPipeError):  # the kernel is gone; `wait` reports it
            while data:
                data = data[os.write(self._cells, data) :]

    def interrupt(self) -> None:
        """Send SIGINT to the kernel's process group, and so to programs of the cell."""
        signal_group(self.process.pid, signal.SIGINT)

    def close(self) -> None:
        """Kill the kernel's session and close the pipes."""
        self._family.end(self.process)
        self.pump.close()
        os.close(self._cells)
        os.close(self._output)


class IPython:
    """The IPython session.

    Use it from one thread at a time; `interrupt` may be called from any thread.
    """

    def __init__(
        self, family: Family, command: KernelCommand, new_spool: Callable[[], Spool]
    ) -> None:
        self._family = family
        self._command = command
        self._new_spool = new_spool
        self._memory_kills = MemoryKills()
        self._kernel: _Kernel | None = None
        self._busy = False
        self._interrupted = False

    def run(self, code: str, timeout: float) -> CellResult:
        """Run a cell; see CellResult.

        A cell that runs longer than `timeout` seconds is interrupted; if it does not end then, its
        kernel is killed. A kernel that can't be reached within START_SECONDS seconds gives an error
        result. Raises OSError if the process can't be started.
        """
        notices = []
        if self._kernel and self._kernel.pump.ended:
            notices.append(self._drop(self._kernel))
        if self._kernel is None:
            self._kernel = self._family.with_room(
                lambda: _Kernel(self._family, self._command, self._new_spool)
            )
            # An empty cell: its answer means that the kernel has imported IPython and is ready.
            self._kernel.send("")
            if self._kernel.pump.wait(START_SECONDS) != "done":
                output = self._kernel.pump.take().excerpt().text
                self._drop(self._kernel)
                text = f"The IPython session could not be started.\n{output}"
                return CellResult(output=text, error=True, images=[], omitted=0)
        kernel = self._kernel
        self._busy, self._interrupted = True, False
        kernel.send(code)
        event = kernel.pump.wait(timeout)
        if event == "timeout":
            notices.append(f"The cell was interrupted after {timeout:g} s.")
            kernel.interrupt()
            event = kernel.pump.wait(INTERRUPT_SECONDS)
        self._busy = False
        excerpt = kernel.pump.take().excerpt()
        error, images = True, []
        if event == "done":
            answer = json.loads(kernel.pump.message)
            error, images = bool(answer["error"]), [str(image) for image in answer["images"]]
        else:
            notices.append(self._drop(kernel))
            if self._memory_kills.more():
                notices.append("The sandbox reached its memory limit.")
        text = "\n".join(part for part in (excerpt.text.rstrip("\n"), *notices) if part)
        return CellResult(
            output=text,
            error=error or event != "done",
            images=[readable(image) for image in images],
            omitted=excerpt.omitted,
        )

    def interrupt(self) -> bool:
        """Raise KeyboardInterrupt in the running cell; a second call kills its kernel.

        Return False if no cell is running.
        """
        kernel = self._kernel
        if kernel is None or not self._busy:
            return False
        if self._interrupted:
            end_session(kernel.process.pid)
        else:
            kernel.interrupt()
        self._interrupted = True
        return True

    def close(self) -> None:
        """Kill the kernel and everything that it has started."""
        if self._kernel:
            self._kernel.close()
            self._kernel = None

    def _drop(self, kernel: _Kernel) -> str:
        code = kernel.process.poll()
        ending = "did not answer and was killed" if code is None else f"died (exit code {code})"
        kernel.close()
        self._kernel = None
        self._busy = False
        return (
            f"The IPython session {ending}; the next cell starts a new one without its variables."
        )
