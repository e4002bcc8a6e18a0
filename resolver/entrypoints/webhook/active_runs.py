"""The runs at work in this process, by thread: how a comment reaches one."""

import threading
from dataclasses import dataclass, field

from resolver.controller.control import Control, Request
from resolver.models.run import Command, Trigger
from resolver.runs.conversation.control import control_requests


@dataclass
class ActiveRun:
    """One run at work. trigger: what started it. asked: what was asked of it since."""

    trigger: Trigger
    control: Control
    asked: list[tuple[Trigger, list[Request]]] = field(default_factory=list)


class ActiveRuns:
    """At most one run a thread, because there is one a repository; safe to use from several
    threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[tuple[str, int | None], ActiveRun] = {}

    def enter(self, trigger: Trigger, control: Control) -> None:
        """From now on comments reach the run."""
        with self._lock:
            self._running[_key(trigger)] = ActiveRun(trigger, control)

    def leave(self, trigger: Trigger) -> list[Trigger]:
        """The run has ended. What asked for more work and came too late for it, to be done now."""
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
            and any(s is r for s in (sent[:-1] or sent) for r in late)
        ]

    def started_by(self, asking: Trigger) -> Trigger | None:
        """What started the run at work that a comment can be meant for: it is older."""
        with self._lock:
            running = self._running.get(_key(asking))
        found = running.trigger if running else None
        return found if found is not None and asking.came_after(found) else None

    def steer(self, asking: Trigger) -> bool:
        """Ask it of the run at work; False when there is none (any more)."""
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
