"""The active runs of this process, which comments reach past the queue."""

import threading
from dataclasses import dataclass, field

from resolver.controller.control import Control, Request
from resolver.models.run import Trigger
from resolver.runs.conversation.watch import control_requests, request_of_late_command


@dataclass
class ActiveRun:
    """One active run. trigger: started it. commands: were sent to it, with their requests."""

    trigger: Trigger
    control: Control
    commands: list[tuple[Trigger, list[Request]]] = field(default_factory=list)


class ActiveRuns:
    """The active runs, at most one for each conversation, because there is only one for each
    repository. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._running: dict[tuple[str, int | None], ActiveRun] = {}

    def register(self, trigger: Trigger, control: Control) -> None:
        """Register the run, so that comments reach it."""
        with self._lock:
            self._running[_key(trigger)] = ActiveRun(trigger, control)

    def unregister(self, trigger: Trigger) -> list[Trigger]:
        """Remove the run. Return the requests for runs of their own that its commands become which
        asked for more work and came too late for it."""
        with self._lock:
            running = self._running.pop(_key(trigger), None)
        if running is None:
            return []
        unread = []
        while (request := running.control.take()) is not None:
            unread.append(request)
        return [
            late
            for command, sent in running.commands
            if (late := request_of_late_command(command)) is not None
            # Identity, not equality: two people may have sent equal requests. "continue" ends with
            # a Resume, which does not count on its own.
            and any(sent_request is r for sent_request in (sent[:-1] or sent) for r in unread)
        ]

    def find_older_run(self, command: Trigger) -> Trigger | None:
        """Return the trigger of the active run that a comment can be addressed to, which is older
        than the comment; None if there is none."""
        with self._lock:
            running = self._running.get(_key(command))
        trigger = running.trigger if running else None
        return trigger if trigger is not None and command.came_after(trigger) else None

    def has_received(self, command: Trigger) -> bool:
        """Return True if the command was sent to the active run of its conversation."""
        with self._lock:
            running = self._running.get(_key(command))
            commands = running.commands if running else []
            return any(earlier.key == command.key for earlier, _ in commands)

    def send(self, command: Trigger) -> bool:
        """Send the command to the active run. Return False if there is none (any more)."""
        with self._lock:
            running = self._running.get(_key(command))
            if running is None or not command.came_after(running.trigger):
                return False
            if self.has_received(command):
                return True
            sent = control_requests(command)
            running.commands.append((command, sent))
            for request in sent:
                running.control.send(request)
        return True


def _key(trigger: Trigger) -> tuple[str, int | None]:
    return trigger.repository.lower(), trigger.subject
