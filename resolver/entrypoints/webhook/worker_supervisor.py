"""The child process in which `resolver serve` executes its runs: how it is started, woken,
observed, restarted and stopped.

Its standard input is a pipe: the first line is its `ChildConfig`, each byte after it wakes it, and
the end of the pipe is the end of `resolver serve`, however that ended. Its standard output is a
pipe, too, with a `ChildMessage` in each line.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import IO, Any

from pydantic import ValidationError

from resolver.entrypoints.webhook.metrics import Observation
from resolver.models.base import FrozenModel

logger = logging.getLogger("resolver.entrypoints.webhook")

CHILD_MODULE = "resolver.entrypoints.webhook.worker_child"

CHILD_NICENESS = 5
"""The niceness of the child, and with it of its threads and processes, if that of the server is not
higher."""

CHILD_VARIABLE = "TEST_CHILD_PROGRAM"
"""Environment variable with the program that starts the child in place of the Python interpreter,
for tests. It is no setting."""

LEASE_LOST_EXIT = 75
"""Exit code of a child that has lost its lease. A new one starts at once: this is no crash."""

FIRST_RESTART_SECONDS = 0.5
"""Delay before a child that died is started again; doubled for each one that dies soon after."""

MAX_RESTART_SECONDS = 60.0

STABLE_SECONDS = 60.0
"""If a child lives at least this long, its later end is not attributed to its start."""


class ChildConfig(FrozenModel):
    """The configuration of the child. options: settings from the command line."""

    options: dict[str, Any]
    concurrency: int


class ChildMessage(FrozenModel):
    """A report of the child: that it has started to process requests, or an observation."""

    ready: bool = False
    observation: Observation | None = None


class WorkerState(StrEnum):
    """The state of the child: RESTARTING if it died and is not ready again."""

    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"


def child_command(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command that starts the child."""
    # -P: no module of the current folder is imported.
    interpreter = (sys.executable, "-P")
    program = environment.get(CHILD_VARIABLE, "")
    return (*((program,) if program else interpreter), "-m", CHILD_MODULE)


class WorkerSupervisor:
    """Keeps one child process running until `stop` is called. Thread-safe.

    command: starts the child, see `child_command`.
    """

    def __init__(self, command: tuple[str, ...]) -> None:
        self._command = command
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopping = threading.Event()
        self._state = WorkerState.STARTING
        self._restarts = 0

    @property
    def state(self) -> WorkerState:
        """The state of the child."""
        return self._state

    @property
    def is_running(self) -> bool:
        """True while the child processes requests."""
        return self._state is WorkerState.RUNNING

    @property
    def restarts(self) -> int:
        """How often the child died and was started again."""
        return self._restarts

    @property
    def pid(self) -> int:
        """The id of the child's process; 0 while there is none."""
        process = self._process
        return process.pid if process is not None else 0

    def start(
        self,
        environment: Mapping[str, str],
        options: Mapping[str, Any],
        concurrency: int,
        record: Callable[[Observation], None],
    ) -> None:
        """Start the child in the background. record: is called with each of its observations."""
        given = {name: value for name, value in options.items() if value is not None}
        config = ChildConfig(options=given, concurrency=concurrency)
        arguments = (dict(environment), config.model_dump_json().encode() + b"\n", record)
        threading.Thread(
            target=self._supervise, args=arguments, name="worker-supervisor", daemon=True
        ).start()

    def wake(self) -> None:
        """Let the child look for new requests at once. Never blocks or raises: it looks for them
        every second anyway."""
        with self._lock, suppress(OSError, ValueError):
            if self._process is not None and self._process.stdin is not None:
                os.write(self._process.stdin.fileno(), b"\n")

    def stop(self, seconds: float) -> None:
        """Ask the child to hand its runs back, and wait until it has ended; kill it after this
        time. No other one is started."""
        self._is_stopping.set()
        with self._lock:
            process = self._process
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            logger.warning("the process of the runs did not end in time and is killed")
            self.kill()

    def kill(self) -> None:
        """End the child at once. No other one is started."""
        self._is_stopping.set()
        with self._lock:
            process = self._process
        if process is not None:
            process.kill()
            process.wait()

    def _supervise(
        self, environment: dict[str, str], config: bytes, record: Callable[[Observation], None]
    ) -> None:
        """Start the child, and start it again whenever it ends, until it is to stop."""
        wait = FIRST_RESTART_SECONDS
        while True:
            began = time.monotonic()
            code = self._run_child(environment, config, record)
            if self._is_stopping.is_set():
                return
            self._state = WorkerState.RESTARTING
            self._restarts += 1
            if time.monotonic() - began >= STABLE_SECONDS:
                wait = FIRST_RESTART_SECONDS
            delay = 0.0 if code == LEASE_LOST_EXIT else wait
            logger.error(
                "the process of the runs ended (%s); it starts again in %.1f s, and its runs"
                " continue from their logs",
                _describe_end(code),
                delay,
            )
            if self._is_stopping.wait(delay):
                return
            wait = min(2 * wait, MAX_RESTART_SECONDS)

    def _run_child(
        self, environment: dict[str, str], config: bytes, record: Callable[[Observation], None]
    ) -> int | None:
        """Start the child and return its exit code once it has ended; None if it can't be
        started."""
        with self._lock:
            if self._is_stopping.is_set():
                return None
            try:
                # In a process group of its own, because Ctrl-C in a terminal goes to the whole
                # group: `resolver serve` alone gets it, and asks its child to end, once.
                process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=environment,
                    process_group=0,
                    bufsize=0,
                )
            except OSError as error:
                logger.error("the process of the runs can't be started: %s", error.strerror)
                return None
            self._process = process
            assert process.stdin is not None
            with suppress(OSError):
                # Deliveries go before runs: GitHub waits 10 seconds for an answer, and the child's
                # imports alone take seconds of processor time.
                niceness = max(CHILD_NICENESS, os.getpriority(os.PRIO_PROCESS, 0))
                os.setpriority(os.PRIO_PROCESS, process.pid, niceness)
            with suppress(OSError):
                process.stdin.write(config)
            # Nobody waits for a child that does not read: one byte in the pipe is enough.
            os.set_blocking(process.stdin.fileno(), False)
        assert process.stdout is not None
        self._read_messages(process.stdout, record)
        code = process.wait()
        with self._lock:
            self._process = None
            process.stdin.close()
            process.stdout.close()
        return code

    def _read_messages(self, lines: IO[bytes], record: Callable[[Observation], None]) -> None:
        """Handle the messages of the child until it ends. A killed one may leave half a line."""
        with os.fdopen(os.dup(lines.fileno()), "rb") as buffered:
            for line in buffered:
                try:
                    message = ChildMessage.model_validate_json(line)
                except ValidationError:
                    continue
                if message.ready:
                    self._state = WorkerState.RUNNING
                if message.observation is not None:
                    record(message.observation)


def _describe_end(code: int | None) -> str:
    if code is None:
        return "it could not be started"
    if code == LEASE_LOST_EXIT:
        return "it lost its lease"
    return f"signal {-code}" if code < 0 else f"exit code {code}"
