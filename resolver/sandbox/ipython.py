"""The agent's IPython session, seen from the server: a child process that runs cells.

kernel.py is that process. Output comes through a pipe, the end of a cell through another one.
"""

import json
import os
import secrets
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from .processes import Family, MemoryKills, end_session, signal_group
from .pump import Pump, wide_pipe
from .spool import Spool, readable
from .wire import CellResult

PATIENCE: Final = 2.0
"""Seconds that an interrupted cell gets to end before the kernel is killed."""

START_TIME: Final = 60.0
"""Seconds that a kernel may take until it is ready."""


@dataclass(frozen=True)
class KernelCommand:
    """How a kernel is started: the program, its first arguments, where, and with what."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    root: str


class _Kernel:
    """A live kernel process and its pipes."""

    def __init__(
        self, family: Family, command: KernelCommand, new_spool: Callable[[], Spool]
    ) -> None:
        self._family = family
        cells, self._cells = os.pipe()
        control, control_writer = os.pipe()
        self._output, output_writer = wide_pipe()
        os.set_blocking(self._output, False)
        nothing = os.open(os.devnull, os.O_RDONLY)
        try:
            self.process = family.spawn(
                [*command.arguments, str(cells), str(control_writer)],
                environment=command.environment,
                folder=command.root if os.path.isdir(command.root) else "/",
                stdin=nothing,
                output=output_writer,
                passed=(cells, control_writer),
            )
        finally:
            for descriptor in (cells, control_writer, output_writer, nothing):
                os.close(descriptor)
        self.pump = Pump(self.process, [self._output], control, new_spool)

    def send(self, code: str) -> None:
        token = secrets.token_hex(16)
        self.pump.expect(f"\0{token}\0".encode())
        data = json.dumps({"code": code, "token": token}).encode() + b"\n"
        with suppress(BrokenPipeError):  # the kernel is gone: `wait` says so
            while data:
                data = data[os.write(self._cells, data) :]

    def interrupt(self) -> None:
        signal_group(self.process.pid, signal.SIGINT)

    def close(self) -> None:
        end_session(self.process.pid)
        self.process.wait()
        self._family.forget(self.process)
        self.pump.close()
        os.close(self._cells)
        os.close(self._output)


class IPython:
    """Not for two threads at once, but for `interrupt`, which any thread may call."""

    def __init__(
        self, family: Family, command: KernelCommand, new_spool: Callable[[], Spool]
    ) -> None:
        self._family = family
        self._command = command
        self._new_spool = new_spool
        self._memory = MemoryKills()
        self._kernel: _Kernel | None = None
        self._busy = False
        self._interrupted = False

    def run(self, code: str, timeout: float) -> CellResult:
        """See CellResult. A cell that does not end in `timeout` seconds is interrupted; one that
        does not give up then ends with its kernel. Raises OSError when none can be started."""
        notices = []
        if self._kernel and self._kernel.pump.ended:
            notices.append(self._drop(self._kernel))
        if self._kernel is None:
            self._kernel = self._family.with_room(
                lambda: _Kernel(self._family, self._command, self._new_spool)
            )
            self._kernel.send("")
            if self._kernel.pump.wait(START_TIME) != "done":
                said = self._kernel.pump.take().excerpt().text
                self._drop(self._kernel)
                text = f"The IPython session could not be started.\n{said}"
                return CellResult(output=text, error=True, images=[], omitted=0)
        kernel = self._kernel
        self._busy, self._interrupted = True, False
        kernel.send(code)
        event = kernel.pump.wait(timeout)
        if event == "timeout":
            notices.append(f"The cell was interrupted after {timeout:g} s.")
            kernel.interrupt()
            event = kernel.pump.wait(PATIENCE)
        self._busy = False
        excerpt = kernel.pump.take().excerpt()
        error, images = True, []
        if event == "done":
            answer = json.loads(kernel.pump.message)
            error, images = bool(answer["error"]), [str(image) for image in answer["images"]]
        else:
            notices.append(self._drop(kernel))
            if self._memory.more():
                notices.append("The sandbox reached its memory limit.")
        text = "\n".join(part for part in (excerpt.text.rstrip("\n"), *notices) if part)
        return CellResult(
            output=text,
            error=error or event != "done",
            images=[readable(image) for image in images],
            omitted=excerpt.omitted,
        )

    def interrupt(self) -> bool:
        """KeyboardInterrupt in the running cell, the second time the end of its kernel; False
        when there is none."""
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
        """Kill the kernel and what it started."""
        if self._kernel:
            self._kernel.close()
            self._kernel = None

    def _drop(self, kernel: _Kernel) -> str:
        code = kernel.process.poll()
        how = "did not answer and was killed" if code is None else f"died (exit code {code})"
        kernel.close()
        self._kernel = None
        self._busy = False
        return f"The IPython session {how}; the next cell starts a new one without its variables."
