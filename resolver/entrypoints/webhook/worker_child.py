"""The process that executes the runs of `resolver serve`, which starts it with
`worker_supervisor.WorkerSupervisor`."""

import logging
import os
import select
import signal
import sys
import threading
from collections.abc import Callable

from resolver.entrypoints.webhook.executors import ExecutorKind
from resolver.entrypoints.webhook.metrics import Observation
from resolver.entrypoints.webhook.process import open_process
from resolver.entrypoints.webhook.worker_supervisor import ChildConfig, ChildMessage
from resolver.errors import ResolverError
from resolver.runs.wiring.models import preload_models

logger = logging.getLogger("resolver.entrypoints.webhook")

MAX_CONFIG_BYTES = 1_000_000

WAKE_MILLISECONDS = 50
"""Minimum interval between two wakes. The parent writes a byte for each delivery; those that arrive
meanwhile stay in the pipe, where they cost nothing."""


class ParentChannel:
    """The pipes to `resolver serve`. They are moved away from the standard streams, which programs
    that this process starts inherit."""

    def __init__(self) -> None:
        self._input, self._output = os.dup(0), os.dup(1)  # not inheritable
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        self._lock = threading.Lock()
        self.on_wake: Callable[[], None] = lambda: None

    def read_config(self) -> ChildConfig:
        """Return what this process is to do. Ends the process if its parent has ended."""
        line = b""
        while not line.endswith(b"\n") and len(line) < MAX_CONFIG_BYTES:
            line += self._read(1)  # no byte of what follows
        return ChildConfig.model_validate_json(line)

    def start(self) -> None:
        """Call `on_wake` in the background whenever the parent says so."""
        threading.Thread(target=self._listen, name="parent", daemon=True).start()

    def send(self, message: ChildMessage) -> None:
        """Send a message to the parent. Never raises: without a parent, this process ends."""
        line = message.model_dump_json().encode() + b"\n"
        with self._lock:
            try:
                os.write(self._output, line)  # atomic, because it is shorter than PIPE_BUF
            except OSError:
                logger.debug("the parent reads no messages any more")

    def observe(self, observation: Observation) -> None:
        """Send an observation to the parent, whose metrics have it."""
        self.send(ChildMessage(observation=observation))

    def _listen(self) -> None:
        hangup = select.poll()
        hangup.register(self._input, 0)  # no event but the end of the parent, which is always one
        while True:
            self._read(4096)
            self.on_wake()
            hangup.poll(WAKE_MILLISECONDS)

    def _read(self, count: int) -> bytes:
        data = os.read(self._input, count)
        if not data:
            # The parent was killed. Another `resolver serve` may continue the runs from now on.
            os.kill(os.getpid(), signal.SIGKILL)
        return data


def run_child(channel: ParentChannel) -> None:
    """Execute requests until the parent asks to end, or ends itself. Raises what `open_process`
    raises."""
    config = channel.read_config()
    channel.start()
    process = open_process(
        os.environ,
        config.options,
        ExecutorKind.WORKER,
        config.concurrency,
        forward=channel.observe,
    )
    channel.on_wake = process.worker.wake
    process.start()
    channel.send(ChildMessage(ready=True))
    preload_models(process.settings)
    threading.Event().wait()


def run_child_process() -> None:
    """Execute requests until the parent ends this process. Exits with 2 if that is not possible."""
    try:
        run_child(ParentChannel())
    except ResolverError as error:
        logger.error("the runs can't be executed: %s: %s", error.what, error.next_step)
        sys.exit(2)


if __name__ == "__main__":
    run_child_process()
