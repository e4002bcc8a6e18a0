"""Ends this process (SIGKILL) at a moment of a run, when the world changes: right after an event of
some kind is durable, or right before a step that Python itself announces (an audit event: a
request, a child, a rename). Runs in the forks of `prefork_server.py`, for `killer.py`.
"""

import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from resolver.events.log import Event
from resolver.events.stores import JsonlStore


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_after_kind(kind: str) -> None:
    """Die right after the first event of the kind is on the disk."""
    append = JsonlStore.append

    def deadly(store: JsonlStore, event: Event) -> None:
        append(store, event)
        if event.kind == kind:
            _die()

    JsonlStore.append = deadly  # type: ignore[method-assign]


def kill_at_step(name: str, word: str) -> None:
    """Die right before the first audit event `name` whose arguments hold `word`."""

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == name and word in " ".join(map(str, args)):
            _die()

    sys.addaudithook(hook)


def arm(moment: Mapping[str, Any]) -> None:
    """Die at this moment, given as `Killer.run` describes it."""
    if "kind" in moment:
        kill_after_kind(moment["kind"])
    elif "audit" in moment:
        kill_at_step(moment["audit"], moment["word"])
