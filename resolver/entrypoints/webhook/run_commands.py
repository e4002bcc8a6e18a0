"""The commands for one active run of this process, which are left for it in the queue."""

import logging
import threading
from collections.abc import Callable, Sequence

from resolver.controller.control import Control, Request
from resolver.models.run import Trigger
from resolver.runs.conversation.watch import control_requests

logger = logging.getLogger("resolver.entrypoints.webhook")


class RunCommands:
    """Passes the commands for a run on to its control. Thread-safe.

    take: returns those that were left for the run. It may return one again.
    """

    def __init__(self, take: Callable[[], Sequence[Trigger]] = tuple) -> None:
        self.control = Control()
        self._take = take
        self._lock = threading.Lock()
        self._passed: dict[str, tuple[Trigger, list[Request]]] = {}
        self._is_over = False

    def pass_on(self) -> None:
        """Send the run what was left for it. Has no effect after its end. Raises DatabaseError."""
        with self._lock:
            for command in () if self._is_over else self._take():
                if command.key in self._passed:
                    continue
                self._passed[command.key] = (command, control_requests(command))
                for request in self._passed[command.key][1]:
                    self.control.send(request)
                place = f"{command.repository}#{command.number}"
                logger.info("%s on %s has reached the run", command.command.value, place)

    def end(self) -> list[Trigger]:
        """Send nothing more, and return the commands that the run has not read."""
        with self._lock:
            self._is_over = True
        unread = []
        while (request := self.control.take()) is not None:
            unread.append(request)
        return [
            command
            for command, sent in self._passed.values()
            # Identity, not equality: two people may have sent equal requests. "continue" ends with
            # a Resume, which does not count on its own.
            if any(sent_request is r for sent_request in (sent[:-1] or sent) for r in unread)
        ]
