"""The endless tasks of a server's process, each in a thread that does not end silently."""

import logging
import threading
import time
from collections.abc import Callable

from resolver.entrypoints.webhook.metrics import FAILED_TASKS
from resolver.errors import ResolverError

logger = logging.getLogger("resolver.entrypoints.webhook")

RESTART_SECONDS = 5.0
"""Time in seconds after which a task that failed is started again."""


class BackgroundThreads:
    """Starts tasks in threads. A task that raises an exception is logged, counted, and started
    again. Thread-safe.

    down: names of the tasks that have failed and not been started again yet.
    """

    def __init__(self, restart_seconds: float = RESTART_SECONDS) -> None:
        self._restart_seconds = restart_seconds
        self.down: frozenset[str] = frozenset()

    def start(self, name: str, task: Callable[[], None]) -> None:
        """Start the task, which is to run until the process ends, or to return when its work is
        done."""
        thread = threading.Thread(target=self._run, args=(name, task), name=name, daemon=True)
        thread.start()

    def _run(self, name: str, task: Callable[[], None]) -> None:
        message = None
        while True:
            try:
                return task()
            except ResolverError as error:
                if error.what != message:  # an outage is logged once
                    logger.error("the task %s has to wait: %s", name, error.what)
                message = error.what
            except Exception:
                logger.exception("the task %s failed and is started again", name)
            FAILED_TASKS.labels(name).inc()
            self.down |= {name}
            time.sleep(self._restart_seconds)
            self.down -= {name}
