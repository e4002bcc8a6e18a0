"""The active runs of this process by conversation, so that comments reach them."""

import threading
from dataclasses import dataclass, field

from resolver.controller.control import Control, Request
from resolver.models.run import Command, Trigger
from resolver.runs.conversation.control import control_requests


@dataclass
class ActiveRun:
    """One active run. trigger: started it. asked: the commands that were sent to it, with their
    requests."""

    trigger: Trigger
    control: Control
    asked: list[tuple[Trigger, list[Request]]] = field(default_factory=list)


class ActiveRuns:
    """The active runs, at most one for each conversation, because there is only one for each
    repository. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[tuple[str, int | None], ActiveRun] = {}

    def enter(self, trigger: Trigger, control: Control) -> None:
        """Register the run, so that comments reach it."""
        with self._lock:
            self._running[_key(trigger)] = ActiveRun(trigger, control)

    def leave(self, trigger: Trigger) -> list[Trigger]:
        """Remove the run. Return the commands that asked for more work and came too late for it:
        they are to be executed as new runs."""
        with self._lock:
            running = self._running.pop(_key(trigger), None)
        if running is None:
            return []
        late = []
        while (request := running.control.take()) is not None:
            late.append(request)
        return [
            asking
            for asking, sent in running.asked
            if asking.command in {Command.CONTINUE, Command.APPROVE, Command.DENY}
            # Identity, not equality: two people may have sent equal requests. "continue" ends with
            # a Resume, which does not count on its own.
            and any(s is r for s in (sent[:-1] or sent) for r in late)
        ]

    def started_by(self, asking: Trigger) -> Trigger | None:
        """Return the trigger of the active run that a comment can be addressed to, which is older
        than the comment; None if there is none."""
        with self._lock:
            running = self._running.get(_key(asking))
        found = running.trigger if running else None
        return found if found is not None and asking.came_after(found) else None

    def steer(self, asking: Trigger) -> bool:
        """Send the command to the active run. Return False if there is none (any more)."""
        with self._lock:
            running = self._running.get(_key(asking))
            if running is None or not asking.came_after(running.trigger):
                return False
            if any(known.key == asking.key for known, _ in running.asked):
                return True
            sent = control_requests(asking)
            running.asked.append((asking, sent))
            for each in sent:
                running.control.send(each)
        return True


def _key(trigger: Trigger) -> tuple[str, int | None]:
    return trigger.repository.lower(), trigger.subject
